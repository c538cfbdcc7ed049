//! Reading: bytes, chunks and lines, from an offset, from a line, or from the end.

use super::Output;
use super::ring::{Run, wall};
use super::walk::Walk;
use crate::broker::answer::{Chunk, Line};
use crate::broker::request::Filter;

/// How far one call looks for bytes of the stream it wants: far less than a client would notice.
const LOOK: u64 = 16 << 20;

/// How far back the search for the last lines of a stream begins.
const TAIL: u64 = 64 << 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    pub chunks: Vec<Chunk>,
    /// Where to read on.
    pub next: u64,
    /// Bytes on the way that are gone.
    pub skipped: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lines {
    pub lines: Vec<Line>,
    /// The offset of the first byte of the first line.
    pub start: u64,
    /// Where to read on.
    pub next: u64,
}

impl Output {
    /// At most `max` bytes from an offset on, as they came. Other streams' bytes are passed over.
    pub fn read(&self, from: u64, max: usize, filter: Filter) -> Page {
        let mut chunks = Vec::new();
        let (next, skipped) = self.each(from, max, filter, |run| {
            chunks.push(Chunk {
                seq: run.offset(),
                stream: run.piece.stream,
                at: wall(run.piece.at),
                data: run.bytes().to_vec(),
            });
        });
        Page { chunks, next, skipped }
    }

    /// The bytes alone, and where to read on.
    pub fn bytes(&self, from: u64, max: usize, filter: Filter) -> (Vec<u8>, u64) {
        let mut bytes = Vec::new();
        let (next, _) = self.each(from, max, filter, |run| bytes.extend_from_slice(run.bytes()));
        (bytes, next)
    }

    fn each(&self, from: u64, max: usize, filter: Filter, mut take: impl FnMut(&Run)) -> (u64, u64) {
        let mut walk = Walk::new(self, from, self.oldest());
        let mut left = max;
        let start = walk.at;
        let mut next = walk.at;
        while let Some(mut run) = walk.next() {
            if run.passes(filter) {
                if left == 0 {
                    // It may lie behind a hole, which is then reported by the read that gets there.
                    let skipped = walk.skipped.saturating_sub(run.offset() - next);
                    return (next, skipped);
                }
                run.range.end = run.range.end.min(run.range.start.saturating_add(left));
                left -= run.range.len();
                take(&run);
            }
            let is_cut = run.end() < walk.at;
            next = run.end();
            if is_cut || next - start > LOOK.max(max as u64) {
                return (next, walk.skipped);
            }
        }
        (walk.at, walk.skipped)
    }

    /// At most `count` lines, from the line `from_line` on, with at most `max` bytes. A single line that is longer is cut.
    pub fn lines(&self, from_line: u64, count: usize, filter: Filter, max: usize) -> Lines {
        let start = self.line_start(from_line, self.oldest());
        self.lines_from(start, count, filter, max)
    }

    /// The lines from an offset on, with at most `max` bytes; the first may be the rest of one.
    pub fn lines_at(&self, from: u64, filter: Filter, max: usize) -> Lines {
        self.lines_from(from, usize::MAX, filter, max)
    }

    fn lines_from(&self, start: u64, count: usize, filter: Filter, max: usize) -> Lines {
        let mut found = Found::default();
        let mut walk = Walk::new(self, start, self.oldest());
        while let Some(run) = walk.next() {
            if !run.passes(filter) {
                if walk.at - start > LOOK {
                    break;
                }
                continue;
            }
            if let Some(next) = found.feed(&run, count, max) {
                return found.finish(start, next);
            }
        }
        found.finish(start, walk.at)
    }

    /// The last `count` lines, with at most `max` bytes; of a last line that is longer, its end.
    pub fn tail_lines(&self, count: usize, filter: Filter, max: usize) -> Lines {
        let oldest = self.oldest();
        let total = self.held().tally.total;
        if count == 0 {
            return Lines { lines: Vec::new(), start: total, next: total };
        }
        let mut reach = TAIL;
        loop {
            let start = total.saturating_sub(reach).max(oldest);
            let found = self.window(start, total, filter, oldest);
            let is_all = start == oldest || reach > LOOK;
            // One that began before the window is not whole.
            let is_cut = start > oldest && found.starts.first() == Some(&start);
            let whole = found.lines.len() - usize::from(is_cut);
            if whole >= count || found.size >= max || is_all {
                let hidden = if start == oldest { 0 } else { usize::from(is_cut) };
                return found.last(count, max, hidden, total);
            }
            reach *= 4;
        }
    }

    fn window(&self, start: u64, end: u64, filter: Filter, oldest: u64) -> Found {
        let mut found = Found::default();
        let mut walk = Walk::new(self, start, oldest);
        while let Some(run) = walk.next() {
            if run.offset() >= end {
                break;
            }
            let run = run.piece.part(run.offset(), run.end().min(end));
            if run.passes(filter) {
                found.feed(&run, usize::MAX, usize::MAX);
            }
        }
        found
    }

    /// The oldest byte that is shown.
    pub(super) fn oldest(&self) -> u64 {
        self.load();
        let (oldest, lines) = {
            let held = self.held();
            let oldest = held.oldest();
            let Some(shown) = held.bounds.lines.filter(|shown| held.tally.lines > *shown) else { return oldest };
            if held.line_floor.0 == held.tally.lines {
                return oldest.max(held.line_floor.1);
            }
            (oldest, (held.tally.lines, held.tally.lines - shown + 1))
        };
        let start = self.line_start(lines.1, oldest);
        self.held().line_floor = (lines.0, start);
        start
    }

    /// The offset where a line begins, or the oldest byte of it.
    fn line_start(&self, line: u64, oldest: u64) -> u64 {
        let before = {
            let held = self.held();
            let marked = held.marks.partition_point(|mark| mark.line < line);
            let marked = marked.checked_sub(1).map(|last| held.marks[last].offset);
            held.ring.before_line(line).max(marked).unwrap_or(oldest)
        };
        let mut walk = Walk::new(self, before, oldest);
        while let Some(run) = walk.next() {
            let Some(missing) = line.checked_sub(run.line()).filter(|missing| *missing > 0) else {
                return run.offset();
            };
            let mut ends = memchr::memchr_iter(b'\n', run.bytes());
            if let Some(end) = ends.nth(missing as usize - 1) {
                return run.offset() + end as u64 + 1;
            }
        }
        walk.at
    }
}

/// Lines found so far.
#[derive(Debug, Default)]
struct Found {
    lines: Vec<Line>,
    /// Where each begins.
    starts: Vec<u64>,
    /// Bytes, newlines included.
    size: usize,
    /// Of these, in the last line.
    last: usize,
}

impl Found {
    /// Takes the lines of a run; says where to read on when there is no room for more.
    fn feed(&mut self, run: &Run, count: usize, max: usize) -> Option<u64> {
        let mut offset = run.offset();
        let parts = run.bytes().split_inclusive(|byte| *byte == b'\n');
        for (number, part) in (run.line()..).zip(parts) {
            let is_new = self.lines.last().is_none_or(|last| last.number != number);
            if is_new && (self.lines.len() >= count || !self.lines.is_empty() && self.size + part.len() > max) {
                return Some(offset);
            }
            if is_new {
                self.begin(run, number, offset);
            }
            let fits = max - self.size;
            if part.len() > fits && self.lines.len() > 1 {
                self.lines.pop();
                return self.starts.pop();
            }
            self.take(&part[..part.len().min(fits)]);
            if part.len() > fits {
                return Some(offset + fits as u64);
            }
            offset += part.len() as u64;
        }
        None
    }

    fn begin(&mut self, run: &Run, number: u64, offset: u64) {
        self.lines.push(Line { number, stream: run.piece.stream, at: wall(run.piece.at), text: Vec::new() });
        self.starts.push(offset);
        self.last = 0;
    }

    fn take(&mut self, part: &[u8]) {
        self.size += part.len();
        self.last += part.len();
        if let Some(line) = self.lines.last_mut() {
            line.text.extend_from_slice(part.strip_suffix(b"\n").unwrap_or(part));
        }
    }

    fn finish(self, start: u64, next: u64) -> Lines {
        let start = self.starts.first().copied().unwrap_or(start);
        Lines { lines: self.lines, start, next }
    }

    /// The last of them; the first `hidden` are not whole.
    fn last(mut self, count: usize, max: usize, hidden: usize, next: u64) -> Lines {
        let mut first = self.lines.len();
        let mut left = max;
        while first > hidden && self.lines.len() - first < count {
            // All but the last have a newline, or end where the other stream cut in.
            let size = if first == self.lines.len() { self.last } else { self.lines[first - 1].text.len() + 1 };
            if size > left {
                break;
            }
            left -= size;
            first -= 1;
        }
        if first == self.lines.len()
            && let (Some(mut line), Some(start)) = (self.lines.pop(), self.starts.pop())
        {
            let cut = line.text.len().saturating_sub(max);
            line.text.drain(..cut);
            return Lines { lines: vec![line], start: start + cut as u64, next };
        }
        let start = self.starts.get(first).copied().unwrap_or(next);
        Lines { lines: self.lines.split_off(first), start, next }
    }
}
