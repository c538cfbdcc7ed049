//! What is changed in a stream before the emulator sees it, so that no output can stall or break it.
//!
//! Ten bytes may ask for 65535 repeats, and two bytes for a screen cleared anew; a program that sends nothing else would
//! keep the broker busy for hours. Ordinary output passes as it is.

use crate::sys::terminal::Size;
use std::borrow::Cow;

/// Follows the control sequences of a stream, as far as is needed to know where each ends.
#[derive(Debug, Default)]
pub struct Watch(State);

#[derive(Debug, Default, Clone, Copy)]
enum State {
    #[default]
    Text,
    Escape,
    Sequence(Seen),
}

/// What was seen of a control sequence.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    number: u16,
    /// Still in the first parameter; only that one counts here.
    first: bool,
    /// No private marker and no intermediate, with which `b` would mean something else.
    plain: bool,
}

/// The last byte of what ended.
#[derive(Debug, Clone, Copy)]
pub enum Ended {
    Escape(u8),
    Sequence(u8, Seen),
}

impl Watch {
    /// Calls `ended` for every escape and every control sequence, with where it ends. Where in doubt, a sequence goes
    /// on: as in the emulator's parser, only ESC, CAN and SUB break one off.
    pub fn sequences(&mut self, bytes: &[u8], mut ended: impl FnMut(Ended, usize)) {
        let mut at = 0;
        while at < bytes.len() {
            if let State::Text = self.0 {
                let Some(escape) = memchr::memchr(0x1b, &bytes[at..]) else { return };
                at += escape;
            }
            let byte = bytes[at];
            at += 1;
            self.0 = match (self.0, byte) {
                (_, 0x1b) => State::Escape,
                (_, 0x18 | 0x1a) => State::Text,
                (State::Escape, b'[') => State::Sequence(Seen { number: 0, first: true, plain: true }),
                (state @ State::Escape, 0..0x20 | 0x7f..) => state,
                (State::Escape, _) => {
                    ended(Ended::Escape(byte), at);
                    State::Text
                }
                (State::Sequence(seen), b'@'..=b'~') => {
                    ended(Ended::Sequence(byte, seen), at);
                    State::Text
                }
                (State::Sequence(seen), _) => State::Sequence(seen.with(byte)),
                (State::Text, _) => State::Text,
            };
        }
    }
}

impl Seen {
    fn with(mut self, byte: u8) -> Self {
        match byte {
            b'0'..=b'9' if self.first => {
                self.number = self.number.saturating_mul(10).saturating_add(u16::from(byte - b'0'));
            }
            b';' | b':' => self.first = false,
            0x20..=0x2f | 0x3c..=0x3f => self.plain = false,
            _ => {}
        }
        self
    }
}

/// Cells that may be cleared on credit: some fifty milliseconds of work, thousands of screens of the usual size.
const MOST_CREDIT: u64 = 1 << 24;
/// Cells that may be cleared for every byte: programs that clear the screen then draw on it.
const CREDIT_PER_BYTE: u64 = 200;
/// Drops the sequence that was begun.
const CAN: u8 = 0x18;

/// Keeps the work a stream asks for in proportion to its length.
#[derive(Debug)]
pub struct Tamer {
    watch: Watch,
    credit: u64,
}

impl Default for Tamer {
    fn default() -> Self {
        Tamer { watch: Watch::default(), credit: MOST_CREDIT }
    }
}

impl Tamer {
    /// Holds "repeat the last character" to one line, and drops what clears the screen when the credit is used up.
    pub fn tame<'a>(&mut self, bytes: &'a [u8], size: Size) -> Cow<'a, [u8]> {
        let cells = u64::from(size.rows) * u64::from(size.cols);
        let mut credit = MOST_CREDIT.min(self.credit + CREDIT_PER_BYTE * bytes.len() as u64);
        let mut tamed = Vec::new();
        let mut copied = 0;
        self.watch.sequences(bytes, |ended, end| {
            let mut instead = |text: &[u8]| {
                tamed.extend_from_slice(&bytes[copied..end - 1]);
                tamed.extend_from_slice(text);
                copied = end;
            };
            match ended {
                Ended::Sequence(b'b', seen) if seen.plain && seen.number > size.cols => {
                    instead(format!("{}\x1b[{}b", char::from(CAN), size.cols).as_bytes());
                }
                // Reset; erase, insert, delete and scroll lines; change of screens.
                Ended::Escape(b'c') | Ended::Sequence(b'J' | b'L' | b'M' | b'S' | b'T' | b'h' | b'l', _) => {
                    match credit.checked_sub(cells) {
                        Some(left) => credit = left,
                        None => instead(&[CAN]),
                    }
                }
                Ended::Escape(_) | Ended::Sequence(..) => {}
            }
        });
        self.credit = credit;
        if copied == 0 {
            return bytes.into();
        }
        tamed.extend_from_slice(&bytes[copied..]);
        tamed.into()
    }
}

/// Asks for the narrow form of the character before it.
pub const TEXT_SELECTOR: char = '\u{fe0e}';
/// U+FE0F, which asks for the wide form, without its last byte.
const SELECTOR: [u8; 2] = [0xef, 0xb8];
const EMOJI: u8 = 0x8f;
const TEXT: u8 = 0x8e;

/// Turns "as an emoji" into "as text": the emulator panics when a cell that is already drawn becomes wide and does not
/// fit any more. The two differ in one byte, so nothing moves.
#[derive(Debug, Default)]
pub struct Selectors {
    /// The end of what was fed before.
    before: [u8; 2],
}

impl Selectors {
    pub fn narrow<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let mut narrow = Cow::Borrowed(bytes);
        for at in memchr::memchr_iter(EMOJI, bytes) {
            let before = match at {
                0 => self.before,
                1 => [self.before[1], bytes[0]],
                _ => [bytes[at - 2], bytes[at - 1]],
            };
            if before == SELECTOR {
                narrow.to_mut()[at] = TEXT;
            }
        }
        self.before = match bytes {
            [] => self.before,
            [only] => [self.before[1], *only],
            [.., first, second] => [*first, *second],
        };
        narrow
    }
}
