//! One of the hands of a search: takes an entry, lists it or reads it, puts down what it finds.
//!
//! Files are read, never mapped: one that shrinks while it is read is short, not a crash.

use super::directory::{Directory, Reading, Unlisted};
use super::found::{Found, What};
use super::hunt::Hunt;
use super::lines::Lines;
use super::order::Taken;
use super::page::{Bound, EntryKind, State};
use super::pattern::Pattern;
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use nix::errno::Errno;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

/// What a hand holds of a file. A line is held whole, so this is also the longest line it can search.
const HEAP: usize = 1 << 20;
/// For a longer line, one hand of the whole worker at a time may hold this much.
const WIDE_HEAP: usize = 64 << 20;

pub struct Hand {
    pub hunt: Arc<Hunt>,
    pub pattern: Pattern,
    pub context: usize,
    /// Held by the one hand that searches a very long line.
    pub wide: Arc<Mutex<()>>,
}

impl Hand {
    pub fn work(self) {
        let _alarm = Alarm(&self.hunt);
        let mut searcher = self.searcher(HEAP, BinaryDetection::quit(0));
        let mut finished = None;
        while let Some(taken) = self.hunt.next(finished) {
            match taken.of.kind(taken.index) {
                EntryKind::Directory => self.list(&taken),
                _ if self.hunt.ground.is_names() => self.name(&taken),
                _ => self.read(&taken, &mut searcher),
            }
            finished = Some(taken.place);
        }
    }

    fn list(&self, taken: &Taken<Arc<Directory>>) {
        if taken.of.is_wanted(taken.index) {
            self.name(taken);
        }
        let hunt = &*self.hunt;
        let mut problem = |message| hunt.unread(&taken.of.path(taken.index), message, None);
        let is_halted = || hunt.is_over();
        let ground = &hunt.ground;
        let mut reading = Reading { ground, is_halted: &is_halted, problem: &mut problem, looked_at: 0 };
        let entered = taken.of.enter(taken.index, &mut reading);
        hunt.searched.fetch_add(reading.looked_at, Ordering::Relaxed);
        let (message, bound) = match entered {
            Ok(directory) => return hunt.expand(taken.place, directory),
            Err(Unlisted::Halted | Unlisted::Errno(Errno::ENOENT)) => return,
            Err(Unlisted::Errno(errno)) => (errno.desc(), None),
            Err(Unlisted::Pseudo) => ("holds what the kernel tells, not files; not searched", None),
            Err(Unlisted::TooDeep) => ("is too deep in the tree; not searched", Some(Bound::Tree)),
            Err(Unlisted::TooWide) => ("has too many entries to hold at once; not searched", Some(Bound::Tree)),
        };
        hunt.unread(&taken.of.path(taken.index), message.into(), bound);
    }

    /// An entry whose name matched.
    fn name(&self, taken: &Taken<Arc<Directory>>) {
        if !taken.of.is_wanted(taken.index) {
            return;
        }
        // One that is gone by now is not there to be found.
        if let Ok((kind, size)) = taken.of.stat(taken.index) {
            let path = Arc::new(self.hunt.ground.show(&taken.of.path(taken.index)));
            self.hunt.found(taken.place, Found { path, what: What::Entry { kind, size } });
        }
    }

    fn read(&self, taken: &Taken<Arc<Directory>>, searcher: &mut Searcher) {
        let Pattern::Regex(matcher) = &self.pattern else {
            return;
        };
        let Err(error) = self.read_lines(taken, searcher, matcher) else {
            return;
        };
        if error.kind() != io::ErrorKind::NotFound && !self.hunt.is_over() {
            self.hunt.unread(&taken.of.path(taken.index), error.to_string(), None);
        }
    }

    fn read_lines(
        &self,
        taken: &Taken<Arc<Directory>>,
        searcher: &mut Searcher,
        matcher: &RegexMatcher,
    ) -> io::Result<()> {
        let hunt = &*self.hunt;
        let mut file = File::from(taken.of.open_file(taken.index)?);
        hunt.searched.fetch_add(1, Ordering::Relaxed);
        let path = || hunt.ground.show(&taken.of.path(taken.index));
        let mut lines = Lines::new(hunt, taken.place, matcher, self.context, &path);
        // A file that was named is searched whatever it holds, as by `rg --text`.
        let detection = if taken.of.is_stand_in() { BinaryDetection::none() } else { BinaryDetection::quit(0) };
        searcher.set_binary_detection(detection.clone());
        let mut result = searcher.search_reader(matcher, Watched { file: &file, hunt }, &mut lines);
        if result.as_ref().is_err_and(is_line_too_long) && !hunt.is_over() {
            let _turn = self.wide.lock().unwrap_or_else(PoisonError::into_inner);
            file.rewind()?;
            lines.again();
            let mut wide = self.searcher(WIDE_HEAP, detection);
            result = wide.search_reader(matcher, Watched { file: &file, hunt }, &mut lines);
        }
        hunt.binary.fetch_add(u64::from(lines.is_binary), Ordering::Relaxed);
        match result {
            Err(error) if is_line_too_long(&error) => {
                Err(io::Error::other(format!("has a line of more than {WIDE_HEAP} bytes; not searched from there on")))
            }
            other => other,
        }
    }

    fn searcher(&self, heap: usize, detection: BinaryDetection) -> Searcher {
        let mut builder = SearcherBuilder::new();
        builder.line_number(true).heap_limit(Some(heap)).binary_detection(detection);
        builder.before_context(self.context).after_context(self.context);
        builder.build()
    }
}

/// The searcher has no kind of its own for this.
fn is_line_too_long(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Other && error.to_string().contains("allocation limit")
}

/// Reads a file as long as its search goes on.
struct Watched<'a> {
    file: &'a File,
    hunt: &'a Hunt,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.hunt.is_over() {
            return Err(io::Error::other("the search is over"));
        }
        self.file.read(buffer)
    }
}

/// Ends the search when its hand dies of a bug, so that no reader waits for it.
struct Alarm<'a>(&'a Hunt);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.end(State::Failed, None);
        }
    }
}
