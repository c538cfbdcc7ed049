//! The newest output in memory: pieces of one stream each, and the tally that numbers bytes and lines.
//!
//! Pieces are shared, so that a reader or the scribe takes them out by reference and looks at them without the lock.

use crate::broker::answer::Stream;
use crate::broker::request::Filter;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What fits into one piece, and so into one frame on disk: what a pipe gives in one read.
pub(super) const PIECE: usize = 64 << 10;

/// Writes of one stream within this time are one piece, so that a program that writes single bytes costs no more.
const TOGETHER: Duration = Duration::from_millis(100);

/// Bytes of one stream that came together.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub offset: u64,
    pub stream: Stream,
    /// Microseconds since 1970.
    pub at: u64,
    /// The number of the line its first byte is in.
    pub line: u64,
    /// Bytes of stdout before it.
    pub stdout: u64,
    pub data: Arc<Vec<u8>>,
}

impl Piece {
    pub(super) fn end(&self) -> u64 {
        self.offset + self.data.len() as u64
    }

    /// The part of it between two offsets, which overlap it.
    pub(super) fn part(&self, from: u64, to: u64) -> Run {
        let start = from.saturating_sub(self.offset).min(self.data.len() as u64) as usize;
        let end = (to.min(self.end()).saturating_sub(self.offset) as usize).max(start);
        Run { piece: self.clone(), range: start..end }
    }
}

/// A part of a piece.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub piece: Piece,
    pub range: Range<usize>,
}

impl Run {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.piece.data[self.range.clone()]
    }

    pub(super) fn offset(&self) -> u64 {
        self.piece.offset + self.range.start as u64
    }

    pub(super) fn end(&self) -> u64 {
        self.piece.offset + self.range.end as u64
    }

    /// The number of the line its first byte is in.
    pub(super) fn line(&self) -> u64 {
        self.piece.line + newlines(&self.piece.data[..self.range.start])
    }

    /// Bytes of stdout before it.
    pub(super) fn stdout(&self) -> u64 {
        let inside = if self.piece.stream == Stream::Stdout { self.range.start as u64 } else { 0 };
        self.piece.stdout + inside
    }

    pub(super) fn passes(&self, filter: Filter) -> bool {
        match filter {
            Filter::All => true,
            Filter::Stdout => self.piece.stream == Stream::Stdout,
            Filter::Stderr => self.piece.stream == Stream::Stderr,
        }
    }
}

pub(super) fn newlines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

pub(super) fn micros(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

pub(super) fn wall(micros: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(micros)
}

/// Counts of everything that ever came.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    pub total: u64,
    pub stdout: u64,
    pub stderr: u64,
    pub lines: u64,
    /// The last byte's stream, and whether it was a newline.
    last: Option<(Stream, bool)>,
}

impl Tally {
    /// Counts bytes that came (at least one) and says which line the first is in.
    pub(super) fn count(&mut self, stream: Stream, bytes: &[u8]) -> u64 {
        let goes_on = self.last == Some((stream, false));
        let first = if goes_on { self.lines } else { self.lines + 1 };
        let (&last, before) = bytes.split_last().expect("a piece has bytes");
        self.lines = first + newlines(before);
        self.last = Some((stream, last == b'\n'));
        self.total += bytes.len() as u64;
        match stream {
            Stream::Stdout => self.stdout += bytes.len() as u64,
            Stream::Stderr => self.stderr += bytes.len() as u64,
        }
        first
    }
}

#[derive(Debug, Default)]
pub(super) struct Ring {
    pieces: VecDeque<Piece>,
    bytes: usize,
    /// When the last piece began.
    began: Option<Instant>,
}

impl Ring {
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// The offset of the oldest byte held.
    pub(super) fn start(&self) -> Option<u64> {
        self.pieces.front().map(|piece| piece.offset)
    }

    /// How many bytes of `stream` the last piece still takes.
    pub(super) fn joinable(&self, stream: Stream, now: Instant) -> usize {
        let young = self.began.is_some_and(|began| now.saturating_duration_since(began) < TOGETHER);
        match self.pieces.back() {
            Some(last) if young && last.stream == stream => PIECE.saturating_sub(last.data.len()),
            _ => 0,
        }
    }

    pub(super) fn extend(&mut self, bytes: &[u8]) {
        if let Some(last) = self.pieces.back_mut() {
            // Copies the piece when the scribe or a reader looks at it just now.
            Arc::make_mut(&mut last.data).extend_from_slice(bytes);
            self.bytes += bytes.len();
        }
    }

    pub(super) fn push(&mut self, piece: Piece, now: Instant) {
        self.bytes += piece.data.len();
        self.began = Some(now);
        self.pieces.push_back(piece);
    }

    pub(super) fn front(&self) -> Option<&Piece> {
        self.pieces.front()
    }

    pub(super) fn pop(&mut self) -> Option<Piece> {
        let piece = self.pieces.pop_front()?;
        self.bytes -= piece.data.len();
        Some(piece)
    }

    /// Gives all memory back.
    pub(super) fn free(&mut self) {
        *self = Ring::default();
    }

    /// What is held from an offset on: at most about `max` bytes, and whole pieces after the first.
    pub(super) fn from(&self, offset: u64, max: usize) -> Vec<Run> {
        let first = self.pieces.partition_point(|piece| piece.end() <= offset);
        let mut runs = Vec::new();
        let mut bytes = 0;
        for piece in self.pieces.range(first..) {
            if bytes >= max {
                break;
            }
            let run = piece.part(offset, piece.end());
            bytes += run.range.len();
            runs.push(run);
        }
        runs
    }

    /// How many pieces reach beyond an offset.
    pub(super) fn beyond(&self, offset: u64) -> usize {
        self.pieces.len() - self.pieces.partition_point(|piece| piece.end() <= offset)
    }

    /// The offset of the last piece that begins before a line does.
    pub(super) fn before_line(&self, line: u64) -> Option<u64> {
        let after = self.pieces.partition_point(|piece| piece.line < line);
        after.checked_sub(1).map(|last| self.pieces[last].offset)
    }
}
