//! Bytes into lines: one message per line, none longer than [`LONGEST_LINE`], whatever is sent.

use memchr::memchr;

/// A message carries at most 1 MiB of input for a process, as base64 in JSON; more is a mistake or an attack.
pub const LONGEST_LINE: usize = 4 << 20;

/// What may be kept for the next message.
const SMALL: usize = 128 << 10;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

#[derive(Debug, PartialEq, Eq)]
pub enum Framed {
    /// Neither blank nor with its line end.
    Line(Vec<u8>),
    /// Said once, as soon as it is certain; the rest up to the newline is dropped as it comes.
    TooLong,
}

#[derive(Debug, Default)]
pub struct Framing {
    bytes: Vec<u8>,
    /// Lines before this byte were handed out.
    start: usize,
    /// No newline between `start` and here.
    searched: usize,
    discarding: bool,
}

impl Framing {
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        // One long line must not hold its memory for the rest of the session.
        if self.bytes.len() + bytes.len() < SMALL && self.bytes.capacity() > 4 * SMALL {
            self.bytes.shrink_to(SMALL);
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole line, if it is there.
    pub fn next(&mut self) -> Option<Framed> {
        loop {
            let Some(at) = memchr(b'\n', &self.bytes[self.searched..]) else {
                self.searched = self.bytes.len();
                return self.unfinished();
            };
            let line = self.start..self.searched + at;
            self.start = line.end + 1;
            self.searched = self.start;
            if std::mem::take(&mut self.discarding) {
                continue;
            }
            if line.len() > LONGEST_LINE {
                return Some(Framed::TooLong);
            }
            if let Some(line) = trimmed(&self.bytes[line]) {
                return Some(Framed::Line(line));
            }
        }
    }

    /// What stands after the last newline when no more will come.
    pub fn last(&mut self) -> Option<Framed> {
        let rest = std::mem::take(self);
        if rest.discarding {
            return None;
        }
        trimmed(&rest.bytes[rest.start..]).map(Framed::Line)
    }

    fn unfinished(&mut self) -> Option<Framed> {
        let length = self.bytes.len() - self.start;
        if !self.discarding && length <= LONGEST_LINE {
            return None;
        }
        self.bytes.clear();
        self.start = 0;
        self.searched = 0;
        let said = std::mem::replace(&mut self.discarding, true);
        (!said).then_some(Framed::TooLong)
    }
}

/// Without a byte order mark and white space around; `None` when nothing is left.
fn trimmed(line: &[u8]) -> Option<Vec<u8>> {
    let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line).trim_ascii();
    (!line.is_empty()).then(|| line.to_vec())
}

#[cfg(test)]
mod tests {
    use super::{Framed, Framing, LONGEST_LINE};

    fn feed(framing: &mut Framing, bytes: &[u8]) -> Vec<Framed> {
        let mut found = Vec::new();
        for piece in bytes.chunks(64 << 10) {
            framing.push(piece);
            found.extend(std::iter::from_fn(|| framing.next()));
        }
        found
    }

    fn line(text: &str) -> Framed {
        Framed::Line(text.as_bytes().to_vec())
    }

    #[test]
    fn a_line_may_come_in_any_number_of_pieces() {
        let text = b"\xef\xbb\xbf{\"a\":1}\r\n\n \t\n{}\n{\"half\"";
        for step in 1..text.len() {
            let mut framing = Framing::default();
            let mut found = Vec::new();
            for piece in text.chunks(step) {
                found.extend(feed(&mut framing, piece));
            }
            assert_eq!(found, [line("{\"a\":1}"), line("{}")], "in steps of {step}");
            assert_eq!(framing.last(), Some(line("{\"half\"")));
        }
    }

    #[test]
    fn a_line_beyond_the_cap_is_told_once_and_never_held() {
        let mut framing = Framing::default();
        let piece = vec![b'a'; 1 << 20];
        let mut found = Vec::new();
        for _ in 0..64 {
            found.extend(feed(&mut framing, &piece));
            assert!(framing.bytes.capacity() <= 2 * LONGEST_LINE + (1 << 20));
        }
        assert_eq!(found, [Framed::TooLong]);
        assert_eq!(feed(&mut framing, b"tail\nnext\n"), [line("next")]);
        framing.push(b"");
        assert!(framing.bytes.capacity() < 1 << 20);
    }

    #[test]
    fn the_cap_is_exact() {
        let mut framing = Framing::default();
        let mut text = vec![b'a'; LONGEST_LINE];
        text.push(b'\n');
        assert_eq!(feed(&mut framing, &text).len(), 1);
        text.insert(0, b'a');
        assert_eq!(feed(&mut framing, &text), [Framed::TooLong]);
        assert_eq!(feed(&mut framing, b"{}\n"), [line("{}")]);
    }
}
