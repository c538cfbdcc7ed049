//! Bytes of a process to our stdout: as they are, or on a terminal without what it would obey.

use crate::broker::render::{MAX_HELD, strip_ansi};
use std::io::{self, IsTerminal, Write};

/// Whether a terminal may be told things by a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codes {
    Kept,
    Stripped,
}

impl Codes {
    /// Only a terminal obeys.
    pub fn for_stdout() -> Codes {
        if io::stdout().is_terminal() { Codes::Stripped } else { Codes::Kept }
    }
}

/// Where output goes. What could still change, half a line or half a sequence, waits for its rest.
#[derive(Debug)]
pub struct Sink<W> {
    to: W,
    codes: Codes,
    held: Vec<u8>,
}

impl<W: Write> Sink<W> {
    pub fn new(to: W, codes: Codes) -> Self {
        Sink { to, codes, held: Vec::new() }
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.codes == Codes::Kept {
            self.to.write_all(bytes)?;
            return self.to.flush();
        }
        self.held.extend_from_slice(bytes);
        let whole = self.held.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if whole > 0 {
            let rest = self.held.split_off(whole);
            self.release(whole)?;
            self.held = rest;
        }
        if self.held.len() > MAX_HELD { self.settle() } else { Ok(()) }
    }

    /// Whether something waits.
    pub fn is_waiting(&self) -> bool {
        !self.held.is_empty()
    }

    /// Nothing came for a while, so half a line is what there is. Half a sequence waits on.
    pub fn settle(&mut self) -> io::Result<()> {
        let complete = strip_ansi(&self.held).complete;
        let rest = self.held.split_off(complete);
        self.release(complete)?;
        self.held = rest;
        Ok(())
    }

    /// No more will come.
    pub fn finish(&mut self) -> io::Result<()> {
        self.settle()?;
        self.held.clear();
        self.to.flush()
    }

    fn release(&mut self, whole: usize) -> io::Result<()> {
        let text = strip_ansi(&self.held[..whole]).bytes;
        self.held.clear();
        self.to.write_all(&text)?;
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(codes: Codes, pieces: &[&[u8]]) -> String {
        let mut out = Vec::new();
        let mut sink = Sink::new(&mut out, codes);
        for piece in pieces {
            sink.write(piece).unwrap();
        }
        sink.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_sequence_cut_in_two_is_stripped_and_lines_are_whole() {
        let pieces: [&[u8]; 4] = [b"\x1b]52;c;aG", b"k=\x07re\x1b[3", b"1md\x1b[m\r", b"\nrest"];
        assert_eq!(written(Codes::Stripped, &pieces), "red\nrest");
        assert_eq!(written(Codes::Kept, &pieces), "\x1b]52;c;aGk=\x07re\x1b[31md\x1b[m\r\nrest");
    }

    #[test]
    fn half_a_line_is_shown_when_nothing_follows() {
        let mut out = Vec::new();
        let mut sink = Sink::new(&mut out, Codes::Stripped);
        sink.write(b"name? \x1b[").unwrap();
        assert!(sink.is_waiting());
        sink.settle().unwrap();
        assert!(sink.is_waiting(), "half a sequence waits on");
        drop(sink);
        assert_eq!(out, b"name? ");
    }
}
