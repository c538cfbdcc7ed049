//! Output kept within a bound: the head, the tail, and between them the lines that look like errors.

use super::render::{self, Highlights};
use std::collections::VecDeque;

pub use super::render::Highlight;

/// How much of a line is looked at for signs of an error.
const MAX_LOOK: usize = 1024;

/// One stream, bounded.
#[derive(Debug)]
pub struct Capture {
    limit: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    lines: u64,
    current: Vec<u8>,
    highlights: Highlights,
}

/// What a reply shows of a stream.
#[derive(Debug)]
pub struct Shown {
    pub text: String,
    pub bytes: u64,
    pub truncated: bool,
    pub invalid_utf8: usize,
    pub highlights: Vec<Highlight>,
}

impl Capture {
    /// Keeps at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Capture {
            limit,
            head: Vec::new(),
            tail: VecDeque::new(),
            total: 0,
            lines: 0,
            current: Vec::new(),
            highlights: Highlights::default(),
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        self.scan(bytes);
        let half = self.limit / 2;
        let room = half.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        let rest = &bytes[room..];
        let keep = self.limit - half;
        let rest = &rest[rest.len().saturating_sub(keep)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(keep);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    fn scan(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = MAX_LOOK.saturating_sub(self.current.len()).min(piece.len());
            self.current.extend_from_slice(&piece[..room]);
            if piece.ends_with(b"\n") {
                self.judge_line();
            }
        }
    }

    fn judge_line(&mut self) {
        self.lines += 1;
        self.highlights.look(self.lines, &self.current);
        self.current.clear();
    }

    pub fn show(mut self) -> Shown {
        let kept = (self.head.len() + self.tail.len()) as u64;
        let truncated = kept < self.total;
        let tail: Vec<u8> = self.tail.drain(..).collect();
        let mut invalid = 0;
        let mut decode = |bytes: &[u8]| {
            let decoded = render::text(bytes);
            invalid += decoded.invalid_utf8;
            decoded.text
        };
        let text = if truncated {
            let cut = self.total - kept;
            format!("{}\n[... {cut} bytes left out ...]\n{}", decode(&self.head), decode(&tail))
        } else {
            self.head.extend(tail);
            decode(&self.head)
        };
        if !self.current.is_empty() {
            self.judge_line();
        }
        let highlights = if truncated { self.highlights.finish() } else { Vec::new() };
        Shown { text, bytes: self.total, truncated, invalid_utf8: invalid, highlights }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_output_is_kept_whole() {
        let mut capture = Capture::new(64);
        capture.push(b"one\n");
        capture.push(b"two\n");
        let shown = capture.show();
        assert_eq!((shown.text.as_str(), shown.bytes, shown.truncated), ("one\ntwo\n", 8, false));
    }

    #[test]
    fn long_output_keeps_head_tail_and_errors_and_counts_the_rest() {
        let mut capture = Capture::new(20);
        capture.push(b"0123456789");
        capture.push("x\n".repeat(500).as_bytes());
        capture.push(b"Error: the middle\n");
        capture.push("y".repeat(30).as_bytes());
        let shown = capture.show();
        assert!(shown.text.starts_with("0123456789\n[... 1038 bytes left out ...]\nyyyyyyyyyy"), "{}", shown.text);
        assert_eq!(shown.bytes, 1058);
        assert_eq!(shown.highlights, [Highlight { line: 501, text: "Error: the middle".into() }]);
    }

    #[test]
    fn a_character_split_between_two_pushes_is_whole_again() {
        let mut capture = Capture::new(1024);
        capture.push(&"é".as_bytes()[..1]);
        capture.push(&"é".as_bytes()[1..]);
        capture.push(&[0xff]);
        let shown = capture.show();
        assert_eq!((shown.text.as_str(), shown.invalid_utf8), ("é\u{fffd}", 1));
    }
}
