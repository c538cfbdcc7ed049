//! From the searcher's lines to matches: columns, what is shown of a line, and the lines around it.
//!
//! Every match carries all its context lines, also those that are matches themselves.

use super::found::{Cut, Found, Hit, What};
use super::hunt::Hunt;
use super::names::Shown;
use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

/// Matches of one line whose column is told.
const COLUMNS: usize = 100;

pub struct Lines<'a> {
    pub hunt: &'a Hunt,
    pub place: usize,
    pub matcher: &'a RegexMatcher,
    pub context: usize,
    pub path: &'a dyn Fn() -> Shown,
    shown: Option<Arc<Shown>>,
    /// The last lines before this one, up to `context`.
    recent: VecDeque<String>,
    /// Matches that wait for the lines after them.
    open: VecDeque<Box<Hit>>,
    /// Matches given out, and how many of them an earlier attempt on the same file gave out before.
    given: usize,
    skip: usize,
    pub is_binary: bool,
    is_stopped: bool,
}

impl<'a> Lines<'a> {
    pub fn new(
        hunt: &'a Hunt,
        place: usize,
        matcher: &'a RegexMatcher,
        context: usize,
        path: &'a dyn Fn() -> Shown,
    ) -> Self {
        Lines {
            hunt,
            place,
            matcher,
            context,
            path,
            shown: None,
            recent: VecDeque::new(),
            open: VecDeque::new(),
            given: 0,
            skip: 0,
            is_binary: false,
            is_stopped: false,
        }
    }

    /// Begins the file anew; what was given out stays so and is not given out twice.
    pub fn again(&mut self) {
        self.skip = self.given;
        self.given = 0;
        self.recent.clear();
        self.open.clear();
    }

    fn columns(&self, line: &[u8]) -> Vec<u64> {
        // A carriage return can be part of a match, the line's end cannot.
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let mut columns = Vec::with_capacity(1);
        // A matcher of regexes has no errors.
        let _ = self.matcher.find_iter(line, |found| {
            columns.push(found.start() as u64 + 1);
            columns.len() < COLUMNS
        });
        columns
    }

    /// A line stands behind all open matches and before all later ones.
    fn pass(&mut self, line: &[u8]) {
        if self.context == 0 {
            return;
        }
        let text = Cut::new(line, 0).text;
        for hit in &mut self.open {
            if hit.after.len() < self.context {
                hit.after.push(text.clone());
            }
        }
        while self.open.front().is_some_and(|hit| hit.after.len() == self.context) {
            self.give_first();
        }
        if self.recent.len() == self.context {
            self.recent.pop_front();
        }
        self.recent.push_back(text);
    }

    fn give_first(&mut self) {
        let Some(hit) = self.open.pop_front() else {
            return;
        };
        self.given += 1;
        if self.given <= self.skip || self.is_stopped {
            return;
        }
        let path = self.shown.get_or_insert_with(|| Arc::new((self.path)())).clone();
        self.is_stopped = !self.hunt.found(self.place, Found { path, what: What::Line(hit) });
    }

    fn give_all(&mut self) {
        while !self.open.is_empty() {
            self.give_first();
        }
    }
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let line = without_end(found.bytes());
        let before = self.recent.iter().cloned().collect();
        self.pass(line);
        let columns = self.columns(found.bytes());
        let around = columns.first().map_or(0, |column| *column as usize - 1);
        let number = found.line_number().unwrap_or(0);
        let text = Cut::new(line, around);
        self.open.push_back(Box::new(Hit { line: number, columns, text, before, after: Vec::new() }));
        if self.context == 0 {
            self.give_first();
        }
        Ok(!self.is_stopped)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        self.pass(without_end(context.bytes()));
        Ok(!self.is_stopped)
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        self.give_all();
        self.recent.clear();
        Ok(!self.is_stopped)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, io::Error> {
        self.is_binary = true;
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, _: &SinkFinish) -> Result<(), io::Error> {
        self.give_all();
        Ok(())
    }
}

fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}
