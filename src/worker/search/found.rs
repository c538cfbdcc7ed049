//! A match as it is kept. Its path is shared with the other matches of the file.

use super::names::Shown;
use super::page::{Entry, EntryKind, Line, Match};
use std::sync::Arc;

#[derive(Debug)]
pub struct Found {
    pub path: Arc<Shown>,
    pub what: What,
}

#[derive(Debug)]
pub enum What {
    Line(Box<Hit>),
    Entry { kind: EntryKind, size: u64 },
}

/// A line with a match, cut to what is shown of it.
#[derive(Debug)]
pub struct Hit {
    pub line: u64,
    pub columns: Vec<u64>,
    pub text: Cut,
    pub before: Vec<String>,
    pub after: Vec<String>,
}

/// Part of a line as text.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Cut {
    pub text: String,
    /// The byte of the line that `text` begins at.
    pub start: usize,
    pub is_cut: bool,
    pub is_lossy: bool,
}

/// Characters of a line that are shown.
const SHOWN: usize = 500;
/// Of these, about how many bytes before the match.
const LEAD: usize = 150;

impl Cut {
    /// At most 500 characters of a line, from a little before `around`.
    pub fn new(line: &[u8], around: usize) -> Cut {
        let is_short = line.len() <= SHOWN || (line.len() <= 4 * SHOWN && shown_length(line) <= SHOWN);
        let mut start = if is_short { 0 } else { around.min(line.len()).saturating_sub(LEAD) };
        // Not in the middle of a character, if these are characters at all.
        for _ in 0..3 {
            if start > 0 && line.get(start).is_some_and(|byte| byte & 0xc0 == 0x80) {
                start += 1;
            }
        }
        let mut cut = Cut { text: String::new(), start, is_cut: !is_short, is_lossy: false };
        let mut room = SHOWN;
        // A character takes at most four bytes; the rest of a giant line is not looked at.
        let window = &line[start..line.len().min(start + 4 * SHOWN)];
        for chunk in window.utf8_chunks() {
            let valid = chunk.valid();
            let end = valid.char_indices().nth(room).map_or(valid.len(), |(end, _)| end);
            cut.text.push_str(&valid[..end]);
            room -= valid[..end].chars().count();
            if room > 0 && !chunk.invalid().is_empty() {
                cut.text.push(char::REPLACEMENT_CHARACTER);
                cut.is_lossy = true;
                room -= 1;
            }
        }
        cut
    }
}

fn shown_length(line: &[u8]) -> usize {
    line.utf8_chunks().map(|chunk| chunk.valid().chars().count() + usize::from(!chunk.invalid().is_empty())).sum()
}

impl Found {
    /// About what it takes in memory and in a reply.
    pub fn bytes(&self) -> usize {
        let what = match &self.what {
            What::Line(hit) => {
                let context = hit.before.iter().chain(&hit.after).map(|line| line.len() + 24);
                size_of::<Hit>() + hit.text.text.len() + 8 * hit.columns.len() + context.sum::<usize>()
            }
            What::Entry { .. } => 0,
        };
        size_of::<Found>() + self.path.bytes() + what
    }

    pub fn show(&self) -> Match {
        let path = self.path.text.clone();
        match &self.what {
            What::Entry { kind, size } => Match::Entry(Entry { path, kind: *kind, size: *size }),
            What::Line(hit) => Match::Line(Line {
                path,
                line: hit.line,
                column: hit.columns.first().copied().unwrap_or(1),
                columns: if hit.columns.len() > 1 { hit.columns.clone() } else { Vec::new() },
                text: hit.text.text.clone(),
                truncated: hit.text.is_cut,
                text_column: (hit.text.start > 0).then_some(hit.text.start as u64 + 1),
                invalid_utf8: hit.text.is_lossy,
                before: hit.before.clone(),
                after: hit.after.clone(),
            }),
        }
    }
}
