//! What a person would see: a terminal of one size, fed with the output of a process.
//!
//! It also says what a real terminal would have replied; fish, vim and other programs wait for that. Whatever it is
//! fed, it neither panics nor grows: sizes are clamped, nothing is scrolled back to, titles are cut, a repeat count is
//! held to the width, no cell is widened (see `watch.rs`). The emulator is the `vt100` crate, which nobody else names.

mod picture;
mod watch;

pub use picture::Picture;

use super::answer::Screen;
use crate::sys::terminal::Size;
use std::fmt;
use std::num::NonZeroU16;
use std::panic::{AssertUnwindSafe, catch_unwind};
use vt100::{Callbacks, Parser};
use watch::{Ended, Selectors, TEXT_SELECTOR, Tamer, Watch};

/// A cell takes 32 bytes and there are two grids: 6 MB at most.
pub const MAX_ROWS: u16 = 200;
pub const MAX_COLS: u16 = 500;
/// A program that asks more often than this within one feed is not waiting for the answers.
const MAX_REPLIES: usize = 64;
const MAX_TITLE: usize = 256;
/// What takes some milliseconds at worst: a caller with other things to do feeds no more at once.
pub const FEED_PIECE: usize = 4096;

/// A terminal without a person.
pub struct Terminal {
    parser: Parser<Notes>,
    tamer: Tamer,
    selectors: Selectors,
    faults: u64,
}

impl fmt::Debug for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminal").field("size", &self.parser.screen().size()).finish_non_exhaustive()
    }
}

impl Terminal {
    pub fn new(size: Size) -> Self {
        Terminal {
            parser: blank(size, Notes::default()),
            tamer: Tamer::default(),
            selectors: Selectors::default(),
            faults: 0,
        }
    }

    pub fn feed(&mut self, bytes: &[u8]) {
        self.parser.callbacks_mut().replies_left = MAX_REPLIES;
        let (rows, cols) = self.parser.screen().size();
        let narrow = self.selectors.narrow(bytes);
        let tamed = self.tamer.tame(&narrow, Size { rows: rows.get(), cols: cols.get() });
        for piece in tamed.chunks(FEED_PIECE) {
            self.guarded(|parser| parser.process(piece));
        }
    }

    pub fn resize(&mut self, size: Size) {
        let (rows, cols) = clamp(size);
        self.guarded(|parser| parser.set_size(rows, cols));
    }

    pub fn show(&self) -> Screen {
        let screen = self.parser.screen();
        let (rows, cols) = screen.size();
        let line = |row: String| row.replace(TEXT_SELECTOR, "").trim_end_matches(' ').to_owned();
        Screen {
            rows: rows.get(),
            cols: cols.get(),
            lines: screen.rows(0, cols.get()).map(line).collect(),
            cursor: within(screen.cursor_position(), screen.size()),
            title: self.parser.callbacks().title.clone(),
        }
    }

    /// What a window of this size shows; a smaller one keeps the cursor in sight.
    pub fn picture(&self, window: Size) -> Picture {
        Picture::of(self.parser.screen(), window)
    }

    /// What a terminal would have replied to what was fed since the last call.
    pub fn answers(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.parser.callbacks_mut().replies)
    }

    /// How often the emulator had to be begun anew because it gave up; for the log.
    pub fn faults(&self) -> u64 {
        self.faults
    }

    /// The last resort: an emulator that panics is replaced by a blank one, and the process goes on.
    fn guarded(&mut self, act: impl FnOnce(&mut Parser<Notes>)) {
        if catch_unwind(AssertUnwindSafe(|| act(&mut self.parser))).is_err() {
            let (rows, cols) = self.parser.screen().size();
            let notes = std::mem::take(self.parser.callbacks_mut());
            self.parser = blank(Size { rows: rows.get(), cols: cols.get() }, notes);
            self.faults += 1;
        }
    }
}

/// Whether these bytes hold a question that [`Terminal::answers`] replies to. Output without one can be fed later.
///
/// A sequence may be cut at either end: of a stream, ask a [`QueryWatch`].
pub fn has_query(bytes: &[u8]) -> bool {
    QueryWatch::default().sees(bytes)
}

/// Looks for questions in a stream, without a terminal.
#[derive(Debug, Default)]
pub struct QueryWatch(Watch);

impl QueryWatch {
    /// Whether a question ended in these bytes.
    pub fn sees(&mut self, bytes: &[u8]) -> bool {
        let mut found = false;
        self.0.sequences(bytes, |ended, _| found |= matches!(ended, Ended::Sequence(b'n' | b'c', _)));
        found
    }
}

fn clamp(size: Size) -> (NonZeroU16, NonZeroU16) {
    let within = |number: u16, most: u16| NonZeroU16::new(number.min(most)).unwrap_or(NonZeroU16::MIN);
    (within(size.rows, MAX_ROWS), within(size.cols, MAX_COLS))
}

fn blank(size: Size, notes: Notes) -> Parser<Notes> {
    let (rows, cols) = clamp(size);
    Parser::new_with_callbacks(rows, cols, 0, notes)
}

/// Behind the last column the emulator counts one more, where a terminal waits to wrap.
fn within((row, col): (u16, u16), (rows, cols): (NonZeroU16, NonZeroU16)) -> (u16, u16) {
    (row.min(rows.get() - 1), col.min(cols.get() - 1))
}

/// What the emulator tells besides the screen.
#[derive(Default)]
struct Notes {
    title: String,
    replies: Vec<u8>,
    replies_left: usize,
}

impl Notes {
    fn reply(&mut self, text: &str) {
        // Nobody took the earlier ones: more would only grow.
        if self.replies_left > 0 && self.replies.len() < MAX_REPLIES * 16 {
            self.replies_left -= 1;
            self.replies.extend_from_slice(text.as_bytes());
        }
    }
}

impl Callbacks for Notes {
    fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
        let title = String::from_utf8_lossy(title);
        self.title = title.chars().filter(|c| !c.is_control()).take(MAX_TITLE).collect();
    }

    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        first: Option<u8>,
        second: Option<u8>,
        parameters: &[&[u16]],
        last: char,
    ) {
        let number = match parameters {
            [] | [[]] => 0,
            [[number]] => *number,
            _ => return,
        };
        match (first, second, number, last) {
            (None, None, 5, 'n') => self.reply("\x1b[0n"),
            (None, None, 6, 'n') => {
                let (row, col) = within(screen.cursor_position(), screen.size());
                self.reply(&format!("\x1b[{};{}R", row + 1, col + 1));
            }
            (None, None, 0, 'c') => self.reply("\x1b[?62;22c"),
            (Some(b'>'), None, 0, 'c') => self.reply("\x1b[>0;0;0c"),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
