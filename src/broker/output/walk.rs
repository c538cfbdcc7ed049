//! Walking through an output from an offset on, in memory or on disk, without holding a lock while files are read.
//!
//! A file may be used again while it is read: after the read, the walk looks whether the file still meant what it did, and
//! otherwise goes on at what is now the oldest byte.

use super::Output;
use super::folder::Files;
use super::frame::{FILE_HEADER, FileHeader, HEADER, Header, aligned};
use super::log::segment_name;
use super::ring::{PIECE, Piece, Run};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Read from disk at once: a frame always fits.
const WINDOW: usize = 2 * PIECE;

/// Taken out of the ring at once.
const TAKE: usize = 256 << 10;

/// How often a file may be used again under our eyes before the walk goes on in memory.
const TRIES: usize = 8;

#[derive(Debug)]
pub(super) struct Walk<'a> {
    output: &'a Output,
    /// The next byte.
    pub at: u64,
    /// Bytes that could not be found on the way.
    pub skipped: u64,
    runs: VecDeque<Run>,
    place: Option<Place>,
}

/// Where in a file the next frame is.
#[derive(Debug)]
struct Place {
    number: u64,
    file: File,
    key: u64,
    position: u64,
    /// Frames with smaller offsets are left from an earlier life of the file.
    least: u64,
}

/// What to do next, decided under the lock.
enum Step {
    Over(u64),
    Memory(Vec<Run>),
    Disk { mark_segment: u64, position: u64, from: u64, limit: u64, epoch: u64 },
}

impl<'a> Walk<'a> {
    /// Begins at an offset, or at the oldest byte that is shown.
    pub(super) fn new(output: &'a Output, from: u64, oldest: u64) -> Self {
        let at = from.max(oldest);
        Walk { output, at, skipped: at - from, runs: VecDeque::new(), place: None }
    }

    /// The next bytes of one stream.
    pub(super) fn next(&mut self) -> Option<Run> {
        if self.runs.is_empty() {
            self.fill();
        }
        let run = self.runs.pop_front()?;
        self.skipped += run.offset() - self.at;
        self.at = run.end();
        Some(run)
    }

    fn fill(&mut self) {
        let mut from = self.at;
        let mut tries = 0;
        loop {
            if tries > TRIES {
                from = from.max(self.output.held().ring.start().unwrap_or(u64::MAX));
            }
            let (segment, position, limit, epoch) = match self.step(from) {
                Step::Over(end) => {
                    self.skipped += end.saturating_sub(self.at);
                    self.at = self.at.max(end);
                    return;
                }
                Step::Memory(runs) => {
                    self.runs = runs.into();
                    return;
                }
                Step::Disk { mark_segment, position, from: start, limit, epoch } => {
                    from = start;
                    (mark_segment, position, limit, epoch)
                }
            };
            let place = self.place.take().filter(|place| place.number >= segment);
            let had_place = place.is_some();
            let read = self.read(place, segment, position, from, limit);
            if !self.still(segment, epoch) {
                self.place = None;
                tries += 1;
                continue;
            }
            match read {
                Ok(runs) if !runs.is_empty() => {
                    self.runs = runs.into();
                    return;
                }
                // The end of that file: the marks know the next one.
                Ok(_) if had_place => {}
                _ => from = self.beyond(segment),
            }
            self.place = None;
        }
    }

    fn step(&self, from: u64) -> Step {
        let held = self.output.held();
        let from = held.available(from);
        if from >= held.tally.total {
            return Step::Over(held.tally.total);
        }
        if held.ring.start().is_some_and(|start| start <= from) {
            return Step::Memory(held.ring.from(from, TAKE));
        }
        let after = held.marks.partition_point(|mark| mark.offset <= from);
        let limit = held.segments.back().map_or(0, |segment| segment.end);
        match after.checked_sub(1).map(|index| held.marks[index]) {
            Some(mark) if from < limit => {
                Step::Disk { mark_segment: mark.segment, position: mark.position, from, limit, epoch: held.epoch }
            }
            _ => match held.ring.start() {
                Some(start) => Step::Memory(held.ring.from(start, TAKE)),
                None => Step::Over(held.tally.total),
            },
        }
    }

    /// Whether a file still holds what it held.
    fn still(&self, segment: u64, epoch: u64) -> bool {
        let held = self.output.held();
        held.epoch == epoch && held.segments.front().is_some_and(|first| first.number <= segment)
    }

    /// The first byte behind a file that cannot be read.
    fn beyond(&self, segment: u64) -> u64 {
        let held = self.output.held();
        let next = held.segments.iter().find(|other| other.number > segment);
        let next = next.map(|next| next.first).or(held.ring.start());
        next.unwrap_or(held.tally.total)
    }

    fn read(
        &mut self,
        place: Option<Place>,
        segment: u64,
        position: u64,
        from: u64,
        limit: u64,
    ) -> io::Result<Vec<Run>> {
        let Some((files, name)) = self.output.shelf() else { return Err(io::ErrorKind::NotFound.into()) };
        let mut place = match place {
            Some(place) => place,
            None => Place::open(files, name, segment, position)?,
        };
        let runs = place.read(from, limit)?;
        self.place = Some(place);
        Ok(runs)
    }
}

impl Place {
    fn open(files: &dyn Files, name: &str, number: u64, position: u64) -> io::Result<Place> {
        let (file, header) = open_segment(files, name, number)?;
        Ok(Place { number, file, key: header.key, position, least: 0 })
    }

    /// Frames of one window, as far as they lie between two offsets.
    fn read(&mut self, from: u64, limit: u64) -> io::Result<Vec<Run>> {
        let mut runs = Vec::new();
        let mut at = from;
        // Frames before `from` may fill a window.
        while runs.is_empty() {
            let window = read_window(&self.file, self.position, WINDOW)?;
            let start = self.position;
            let mut next = 0;
            while let Some(header) = window.get(next..).and_then(|rest| Header::decode(rest, self.key)) {
                let data = next + HEADER;
                let end = data + header.len as usize;
                let is_whole = end <= window.len();
                let is_stale = header.offset < self.least;
                if is_stale || header.offset >= limit || !is_whole && next > 0 && window.len() == WINDOW {
                    break;
                }
                self.least = header.end();
                // Of a frame that was cut short with its file, what is there.
                let bytes = &window[data..end.min(window.len())];
                if header.offset + bytes.len() as u64 > at {
                    let run = piece_of(&header, bytes).part(at, limit);
                    at = run.end();
                    runs.push(run);
                }
                next = aligned(end as u64) as usize;
            }
            self.position = start + next as u64;
            if next == 0 {
                break;
            }
        }
        runs.retain(|run| !run.range.is_empty());
        Ok(runs)
    }
}

fn piece_of(header: &Header, bytes: &[u8]) -> Piece {
    Piece {
        offset: header.offset,
        stream: header.stream,
        at: header.at,
        line: header.line,
        stdout: header.stdout,
        data: Arc::new(bytes.to_vec()),
    }
}

/// A segment file, if it is what its name says.
pub(super) fn open_segment(files: &dyn Files, name: &str, number: u64) -> io::Result<(File, FileHeader)> {
    let file = files.read(&segment_name(name, number))?;
    let start = read_window(&file, 0, FILE_HEADER)?;
    let header = FileHeader::decode(&start).filter(|header| header.number == number);
    match header {
        Some(header) => Ok((file, header)),
        None => Err(io::Error::new(io::ErrorKind::InvalidData, "not a segment, or one not yet written")),
    }
}

/// As many bytes as there are, up to `len`.
pub(super) fn read_window(file: &File, position: u64, len: usize) -> io::Result<Vec<u8>> {
    let mut window = vec![0; len];
    let mut filled = 0;
    while filled < len {
        match file.read_at(&mut window[filled..], position + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    window.truncate(filled);
    Ok(window)
}
