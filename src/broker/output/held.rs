//! What an output holds under its lock: counts, the ring, and where on disk the rest is. Nothing here touches a file.

use super::bounds::{Bounds, Overflow, RING, Room};
use super::ring::{PIECE, Piece, Ring, Run, Tally, micros};
use crate::broker::answer::Stream;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

/// Pieces in memory, so that two streams taking turns byte by byte cannot make the ring's own weight grow.
const MAX_PIECES: usize = 8192;

/// What a piece costs on disk besides its bytes.
const PIECE_COST: u64 = 48;

/// Holes that are remembered; they come from a disk that fails and recovers. Beyond, the oldest output is given up.
const MAX_GAPS: usize = 256;

/// Files an output may have at once; more than `kept` needs, unless pieces are tiny.
pub(super) const MAX_SEGMENTS: usize = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    pub number: u64,
    /// Of its first byte of output.
    pub first: u64,
    pub end: u64,
    /// The file's size.
    pub bytes: u64,
}

/// A place to begin reading: a frame's offset and line, and where it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub offset: u64,
    pub line: u64,
    pub segment: u64,
    pub position: u64,
}

#[derive(Debug)]
pub(super) struct Held {
    pub tally: Tally,
    pub ring: Ring,
    pub closed: bool,
    /// Everything before is on disk, or lost for good.
    pub done: u64,
    /// Nothing before can be found any more.
    pub floor: u64,
    gaps: VecDeque<(u64, u64)>,
    pub segments: VecDeque<Segment>,
    pub marks: VecDeque<Mark>,
    /// Why the log cannot be written.
    pub trouble: Option<String>,
    /// Rises when everything stored is forgotten.
    pub epoch: u64,
    /// On the scribe's list.
    pub queued: bool,
    pub hurried: bool,
    /// For which number of lines the start of the oldest shown one is known.
    pub line_floor: (u64, u64),
    pub active: (Instant, SystemTime),
    pub bounds: Bounds,
    pub logged: bool,
    /// Bytes stored and what their pieces cost, since the output was last cleared.
    weight: u64,
    cleared: u64,
}

impl Held {
    pub(super) fn new(bounds: Bounds) -> Self {
        Held {
            tally: Tally::default(),
            ring: Ring::default(),
            closed: false,
            done: 0,
            floor: 0,
            gaps: VecDeque::new(),
            segments: VecDeque::new(),
            marks: VecDeque::new(),
            trouble: None,
            epoch: 0,
            queued: false,
            hurried: false,
            line_floor: (0, 0),
            active: (Instant::now(), SystemTime::now()),
            bounds,
            logged: false,
            weight: 0,
            cleared: 0,
        }
    }

    pub(super) fn append(&mut self, stream: Stream, mut bytes: &[u8]) {
        let now = (Instant::now(), SystemTime::now());
        self.active = now;
        while !bytes.is_empty() {
            let joinable = self.ring.joinable(stream, now.0);
            let take = bytes.len().min(if joinable > 0 { joinable } else { PIECE });
            let (part, rest) = bytes.split_at(take);
            let (offset, stdout) = (self.tally.total, self.tally.stdout);
            let line = self.tally.count(stream, part);
            self.weight += take as u64;
            if joinable > 0 {
                self.ring.extend(part);
            } else {
                self.weight += PIECE_COST;
                let data = Arc::new(part.to_vec());
                self.ring.push(Piece { offset, stream, at: micros(now.1), line, stdout, data }, now.0);
            }
            bytes = rest;
        }
        self.evict();
    }

    /// Keeps the ring within its bounds. What is not on disk stays, unless it cannot get there.
    fn evict(&mut self) {
        while self.ring.len() > 1 && (self.ring.bytes() > RING || self.ring.len() > MAX_PIECES) {
            let Some(end) = self.ring.front().map(Piece::end) else { return };
            let twice_too_much = self.ring.bytes() > 2 * RING || self.ring.len() > 2 * MAX_PIECES;
            if end > self.done && self.heals() && !twice_too_much {
                return;
            }
            self.ring.pop();
            if end > self.done {
                self.lose(self.done, end);
                self.done = end;
            }
        }
    }

    /// Whether bytes in memory will get to disk.
    fn heals(&self) -> bool {
        self.logged && self.trouble.is_none()
    }

    fn lose(&mut self, from: u64, to: u64) {
        if from <= self.floor {
            self.floor = self.floor.max(to);
            return;
        }
        match self.gaps.back_mut() {
            Some(last) if last.1 == from => last.1 = to,
            _ => self.gaps.push_back((from, to)),
        }
        if self.gaps.len() > MAX_GAPS
            && let Some((_, end)) = self.gaps.pop_front()
        {
            self.floor = self.floor.max(end);
        }
    }

    /// A hole in what was read back from disk.
    pub(super) fn gap(&mut self, from: u64, to: u64) {
        if from < to {
            self.lose(from, to);
        }
    }

    pub(super) fn waiting(&self) -> u64 {
        self.tally.total - self.done
    }

    /// How many bytes may be appended now.
    pub(super) fn room(&self) -> usize {
        let in_ring = match self.heals() {
            true if self.ring.beyond(self.done) >= MAX_PIECES => 0,
            true => RING.saturating_sub(self.waiting() as usize),
            false => RING,
        };
        match self.bounds.overflow {
            Overflow::DropOldest | Overflow::Kill => in_ring,
            Overflow::Pause => in_ring.min(usize::try_from(self.unused()).unwrap_or(usize::MAX)),
        }
    }

    pub(super) fn verdict(&self) -> Room {
        if self.bounds.overflow == Overflow::Kill && (self.stored() > self.limit() || self.overweight()) {
            return Room::Exceeded;
        }
        match self.room() {
            0 => Room::Full,
            left => Room::Left(left),
        }
    }

    fn unused(&self) -> u64 {
        if self.overweight() { 0 } else { self.limit().saturating_sub(self.stored()) }
    }

    fn stored(&self) -> u64 {
        self.tally.total - self.cleared
    }

    fn limit(&self) -> u64 {
        if self.logged { self.bounds.kept } else { self.bounds.kept.min(RING as u64) }
    }

    /// Tiny pieces weigh more than their bytes; four times the bound is where that ends.
    fn overweight(&self) -> bool {
        self.weight > self.bounds.kept.saturating_mul(4).saturating_add(PIECE as u64)
    }

    /// The oldest byte that may be shown, holes aside and bounds of lines aside.
    pub(super) fn oldest(&self) -> u64 {
        self.floor.max(self.tally.total.saturating_sub(self.bounds.window()))
    }

    /// The first offset from `at` on where there is a byte; the end, if there is none.
    pub(super) fn available(&self, at: u64) -> u64 {
        let at = at.max(self.oldest());
        let hole = self.gaps.iter().find(|gap| gap.0 <= at && at < gap.1);
        hole.map_or(at, |gap| gap.1)
    }

    /// Bytes that no read can find, given the oldest that is shown.
    pub(super) fn dropped(&self, oldest: u64) -> u64 {
        let holes: u64 = self.gaps.iter().map(|gap| gap.1.saturating_sub(gap.0.max(oldest))).sum();
        oldest + holes
    }

    /// What is not on disk yet.
    pub(super) fn gather(&self, limit: usize) -> Vec<Run> {
        if self.waiting() == 0 { Vec::new() } else { self.ring.from(self.done, limit) }
    }

    /// Takes note that runs reached the disk.
    pub(super) fn commit(&mut self, segment: Segment, marks: &[Mark], from: u64) {
        match self.segments.back_mut() {
            Some(last) if last.number == segment.number => *last = segment,
            _ => self.segments.push_back(segment),
        }
        self.marks.extend(marks);
        // Given up in memory while they were being written: found again.
        while let Some(last) = self.gaps.back_mut()
            && last.1 > from
            && last.0 < segment.end
        {
            if last.0 < from {
                last.1 = from;
                break;
            }
            self.gaps.pop_back();
        }
        self.done = self.done.max(segment.end);
        self.trouble = None;
    }

    /// Gives up the oldest file for reuse when nothing in it is shown any more, or when there are too many.
    pub(super) fn retire(&mut self, epoch: u64) -> Option<u64> {
        let oldest = self.oldest();
        let crowded = self.segments.len() >= MAX_SEGMENTS;
        let first = self.segments.front().filter(|first| first.end <= oldest || crowded);
        let number = first.filter(|_| epoch == self.epoch)?.number;
        self.segments.pop_front();
        let next = self.segments.front().map_or(self.done, |segment| segment.first);
        self.floor = self.floor.max(next);
        while self.marks.front().is_some_and(|mark| mark.segment == number) {
            self.marks.pop_front();
        }
        while self.gaps.front().is_some_and(|gap| gap.1 <= self.floor) {
            self.gaps.pop_front();
        }
        Some(number)
    }

    /// Forgets everything stored.
    pub(super) fn clear(&mut self) {
        let total = self.tally.total;
        (self.done, self.floor, self.cleared) = (total, total, total);
        self.weight = 0;
        self.ring.free();
        self.gaps.clear();
        self.segments.clear();
        self.marks.clear();
        self.epoch += 1;
        self.trouble = None;
    }

    /// Finished processes cost little: what is on disk need not be in memory too.
    pub(super) fn settle(&mut self) {
        if self.closed && self.logged && self.waiting() == 0 && self.trouble.is_none() {
            self.ring.free();
            self.marks.shrink_to_fit();
        }
    }
}
