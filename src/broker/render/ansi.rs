//! Text without terminal codes, and where in the raw bytes each part of it came from.
//!
//! It reads as a person would have read the lines: `\r\n` is a newline, a line that was written anew after `\r` keeps
//! its last version, a backspace takes a character away, and text put elsewhere on the screen begins a new line. It is
//! no terminal: whoever wants to know what stands where asks for the screen.

/// A sequence cut at the end waits for its rest; one longer than this is no sequence anybody writes.
pub const MAX_HELD: usize = 4096;

/// Text without terminal codes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stripped {
    pub bytes: Vec<u8>,
    /// How many raw bytes were read to their end; a sequence that was cut begins here.
    pub complete: usize,
    /// Stretches that were taken over as they are: where each begins in `bytes`, and where in the raw bytes.
    runs: Vec<(usize, usize)>,
    raw_len: usize,
}

impl Stripped {
    /// Where in the raw bytes the first `end` bytes of the text end.
    pub fn raw_end(&self, end: usize) -> usize {
        let Some(last) = end.min(self.bytes.len()).checked_sub(1) else { return 0 };
        let run = self.runs.partition_point(|(start, _)| *start <= last);
        match run.checked_sub(1).map(|at| self.runs[at]) {
            Some((start, raw)) => (raw + last - start + 1).min(self.raw_len),
            None => 0,
        }
    }
}

pub fn strip_ansi(raw: &[u8]) -> Stripped {
    let mut line = Writer { out: Stripped { raw_len: raw.len(), ..Stripped::default() }, start: 0, returned: false };
    let mut at = 0;
    while at < raw.len() {
        let plain = raw[at..].iter().position(|byte| SPECIAL[usize::from(*byte)]).unwrap_or(raw.len() - at);
        line.print(&raw[at..at + plain], at);
        at += plain;
        let Some(&byte) = raw.get(at) else { break };
        if byte != ESC {
            at += line.control(&raw[at..], at);
            continue;
        }
        match sequence(&raw[at..]) {
            Sequence::Whole(length, meaning) => {
                line.obey(meaning, at + length);
                at += length;
            }
            Sequence::Cut if raw.len() - at <= MAX_HELD => {
                line.out.complete = at;
                return line.out;
            }
            // What was never ended would swallow all that follows: only its introducer is taken for one.
            Sequence::Cut => at += 2,
        }
    }
    line.out.complete = raw.len();
    line.out
}

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;
const DEL: u8 = 0x7f;
/// The first byte of the C1 controls, U+0080 to U+009F.
const C1_LEAD: u8 = 0xC2;

/// Per byte: whether it is more than text.
const SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        special[byte] = byte != b'\t' as usize;
        byte += 1;
    }
    special[DEL as usize] = true;
    special[C1_LEAD as usize] = true;
    special
};

/// The text so far, and the line that is still being written.
struct Writer {
    out: Stripped,
    /// Where the current line begins in the text.
    start: usize,
    /// The cursor went back to the line's beginning: what is printed next replaces the line.
    returned: bool,
}

impl Writer {
    fn print(&mut self, bytes: &[u8], raw: usize) {
        if bytes.is_empty() {
            return;
        }
        if self.returned {
            self.cut_to(self.start);
            self.returned = false;
        }
        let at = self.out.bytes.len();
        let follows = self.out.runs.last().is_some_and(|(start, origin)| origin + (at - start) == raw);
        if !follows {
            self.out.runs.push((at, raw));
        }
        self.out.bytes.extend_from_slice(bytes);
    }

    fn newline(&mut self, raw: usize) {
        self.returned = false;
        self.print(b"\n", raw);
        self.start = self.out.bytes.len();
    }

    /// Does what a control character means; how many bytes it had.
    fn control(&mut self, raw: &[u8], at: usize) -> usize {
        match raw[0] {
            b'\n' => self.newline(at),
            b'\r' => self.returned = true,
            0x08 if !self.returned => self.erase_character(),
            C1_LEAD => match raw.get(1) {
                Some(0x80..=0x9f) => return 2,
                _ => self.print(&raw[..1], at),
            },
            _ => {}
        }
        1
    }

    fn obey(&mut self, meaning: Meaning, raw_end: usize) {
        match meaning {
            Meaning::Nothing => {}
            Meaning::LineStart => self.returned = true,
            Meaning::EraseAfterCursor if self.returned => self.cut_to(self.start),
            Meaning::EraseAfterCursor => {}
            Meaning::EraseLine => self.cut_to(self.start),
            // Stands for the sequence itself, whose last byte is where the text before it ends.
            Meaning::Elsewhere if self.out.bytes.len() > self.start => self.newline(raw_end - 1),
            Meaning::Elsewhere => self.returned = false,
        }
    }

    fn erase_character(&mut self) {
        let line = &self.out.bytes[self.start..];
        let continuation = line.iter().rev().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
        let end = self.out.bytes.len().saturating_sub(continuation + 1);
        self.cut_to(end.max(self.start));
    }

    fn cut_to(&mut self, end: usize) {
        self.out.bytes.truncate(end);
        while self.out.runs.last().is_some_and(|(start, _)| *start >= end) {
            self.out.runs.pop();
        }
    }
}

enum Sequence {
    /// So many bytes, and what it means for a reader of lines.
    Whole(usize, Meaning),
    /// The bytes end before it does.
    Cut,
}

#[derive(Clone, Copy)]
enum Meaning {
    Nothing,
    LineStart,
    EraseAfterCursor,
    EraseLine,
    Elsewhere,
}

/// The sequence that begins with the escape at `raw[0]`. One that is broken off ends before the byte that breaks it.
fn sequence(raw: &[u8]) -> Sequence {
    match raw.get(1) {
        None => Sequence::Cut,
        Some(b'[') => control_sequence(raw),
        Some(b']' | b'P' | b'X' | b'^' | b'_') => string(raw),
        Some(_) => {
            let between = raw[1..].iter().take_while(|byte| (0x20..=0x2f).contains(*byte)).count();
            match raw.get(1 + between) {
                None => Sequence::Cut,
                Some(0x30..=0x7e) => Sequence::Whole(2 + between, Meaning::Nothing),
                Some(_) => Sequence::Whole(1 + between, Meaning::Nothing),
            }
        }
    }
}

/// `ESC [ parameters intermediates final`.
fn control_sequence(raw: &[u8]) -> Sequence {
    let body = raw[2..].iter().take_while(|byte| (0x20..=0x3f).contains(*byte)).count();
    let parameters = &raw[2..2 + body];
    match raw.get(2 + body) {
        None => Sequence::Cut,
        Some(last @ 0x40..=0x7e) => Sequence::Whole(3 + body, meaning(parameters, *last)),
        Some(_) => Sequence::Whole(2 + body, Meaning::Nothing),
    }
}

fn meaning(parameters: &[u8], last: u8) -> Meaning {
    match (last, parameters) {
        (b'G', b"" | b"0" | b"1") => Meaning::LineStart,
        (b'K' | b'J', b"" | b"0") => Meaning::EraseAfterCursor,
        (b'K', b"2") => Meaning::EraseLine,
        (b'H' | b'f' | b'd', _) => Meaning::Elsewhere,
        _ => Meaning::Nothing,
    }
}

/// `ESC ] … BEL` or `ESC ] … ESC \`, and the strings that begin with `P`, `X`, `^` and `_`.
fn string(raw: &[u8]) -> Sequence {
    let Some(body) = raw[2..].iter().position(|byte| matches!(*byte, BEL | ESC | CAN | SUB)) else {
        return Sequence::Cut;
    };
    let end = 2 + body;
    match (raw[end], raw.get(end + 1)) {
        (ESC, None) => Sequence::Cut,
        (ESC, Some(b'\\')) => Sequence::Whole(end + 2, Meaning::Nothing),
        // Another sequence begins here; this one was given up.
        (ESC, Some(_)) => Sequence::Whole(end, Meaning::Nothing),
        _ => Sequence::Whole(end + 1, Meaning::Nothing),
    }
}
