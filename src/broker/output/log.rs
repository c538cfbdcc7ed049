//! The log of one process: segment files written in order, the oldest used again for the newest.
//!
//! What is written becomes visible with its last step, the header of the first new frame (or the length of the frame that
//! grew): a broker killed at any instant leaves frames that are whole, or none. A renamed segment is recognised by the number
//! in it, frames left from its earlier life by their offsets.

use super::folder::{Files, Folder, write_all};
use super::frame::{FILE_HEADER, FileHeader, HEADER, Header, LENGTH_AT, aligned};
use super::held::{Mark, Segment};
use super::ring::{PIECE, Run};
use std::collections::VecDeque;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, IoSlice};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// Into how many files the kept bytes are divided.
const SEGMENTS: u64 = 8;

/// Below this a segment is not worth a file.
const MIN_SEGMENT: u64 = 16 << 10;

/// Marks are at least this far apart.
const MARK_EVERY: u64 = 32 << 10;

/// Smaller runs are gathered into one buffer, because a system call takes only so many slices.
const SMALL: usize = 4096;

/// Where an output is written.
#[derive(Debug)]
pub struct Log {
    pub(super) files: Arc<dyn Files>,
    pub(super) name: String,
    pub(super) writer: Mutex<Writer>,
}

impl Log {
    pub(in crate::broker) fn new(folder: Arc<Folder>, proc_id: &str) -> Log {
        Self::on(folder, proc_id)
    }

    pub(super) fn on(files: Arc<dyn Files>, proc_id: &str) -> Log {
        Log { files, name: proc_id.to_owned(), writer: Mutex::new(Writer::default()) }
    }
}

pub(in crate::broker) fn segment_name(proc_id: &str, number: u64) -> String {
    format!("{proc_id}.{number}.log")
}

/// What the writer knows: which files it made, and where the last frame ends.
#[derive(Debug)]
pub(super) struct Writer {
    key: u64,
    /// The number of the next file.
    next: u64,
    /// Files that exist, the oldest first.
    live: VecDeque<u64>,
    /// One of them that nobody reads any more.
    spare: Option<u64>,
    open: Option<Open>,
    pub epoch: u64,
}

#[derive(Debug)]
struct Open {
    file: File,
    segment: Segment,
    /// Bytes of output in it.
    data: u64,
    last: Option<Last>,
    marked: u64,
}

/// The frame that may still grow.
#[derive(Debug, Clone, Copy)]
struct Last {
    position: u64,
    len: u32,
    /// The offset of the piece it is made from.
    piece: u64,
}

/// What a write brought to disk.
#[derive(Debug)]
pub(super) struct Batch {
    pub used: usize,
    pub segment: Segment,
    pub marks: Vec<Mark>,
}

/// What each file is made for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub kept: u64,
    pub window: u64,
    pub lines: Option<u64>,
}

impl Default for Writer {
    fn default() -> Self {
        let key = RandomState::new().build_hasher().finish();
        Writer { key, next: 0, live: VecDeque::new(), spare: None, open: None, epoch: 0 }
    }
}

impl Writer {
    /// Writes as many runs as fit into the current file; `retired` gives a file that may be used again.
    pub(super) fn write(
        &mut self,
        files: &dyn Files,
        name: &str,
        shape: Shape,
        runs: &[Run],
        retired: impl FnOnce() -> Option<u64>,
    ) -> io::Result<Batch> {
        let most = (shape.kept / SEGMENTS).max(MIN_SEGMENT);
        let bytes_most = most.saturating_mul(4).saturating_add(PIECE as u64);
        if self.open.as_ref().is_some_and(|open| open.data >= most || open.segment.bytes >= bytes_most) {
            self.open = None;
        }
        let mut open = match self.open.take() {
            Some(open) => open,
            None => {
                let retired = if self.spare.is_none() { retired() } else { None };
                self.next_file(files, name, retired)?
            }
        };
        let header = FileHeader {
            number: open.segment.number,
            key: self.key,
            kept: shape.window,
            lines: shape.lines.unwrap_or(0),
        };
        let room = Room { data: most.saturating_sub(open.data), end: bytes_most };
        let written = open.write(files, header, runs, room);
        self.open = Some(open);
        written
    }

    fn next_file(&mut self, files: &dyn Files, name: &str, retired: Option<u64>) -> io::Result<Open> {
        let number = self.next;
        let path = segment_name(name, number);
        self.spare = self.spare.or(retired);
        let made = match self.spare {
            // Its pages are in memory already: overwriting them is faster than asking for new ones.
            Some(old) => files.rename(&segment_name(name, old), &path).map(|()| None),
            None => files.create(&path).map(Some),
        };
        if made.is_ok() {
            self.live.retain(|live| Some(*live) != self.spare);
            self.live.push_back(number);
            self.spare = None;
        }
        if made.is_ok() || made.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists) {
            self.next += 1;
        }
        let file = made?.map_or_else(|| files.reopen(&path), Ok);
        let segment = Segment { number, first: 0, end: 0, bytes: 0 };
        Ok(Open { file: file?, segment, data: 0, last: None, marked: 0 })
    }

    /// No more will come.
    pub(super) fn close(&mut self) {
        self.open = None;
    }

    /// Deletes every file.
    pub(super) fn wipe(&mut self, files: &dyn Files, name: &str) {
        self.open = None;
        self.spare = None;
        self.live.retain(|number| files.remove(&segment_name(name, *number)).is_err());
    }
}

/// What a file still takes, frame by frame.
#[derive(Debug, Clone, Copy)]
struct Room {
    data: u64,
    /// No frame begins behind this position.
    end: u64,
}

/// Bytes on their way to the file: those of the runs themselves, and small ones gathered.
enum Part {
    Gathered(Range<usize>),
    Run(usize),
}

/// A write before it is done.
#[derive(Default)]
struct Draft {
    gathered: Vec<u8>,
    parts: Vec<Part>,
    marks: Vec<Mark>,
}

impl Draft {
    fn gather(&mut self, bytes: &[u8]) {
        let start = self.gathered.len();
        self.gathered.extend_from_slice(bytes);
        match self.parts.last_mut() {
            Some(Part::Gathered(range)) => range.end = self.gathered.len(),
            _ => self.parts.push(Part::Gathered(start..self.gathered.len())),
        }
    }

    fn slices<'a>(&'a self, runs: &'a [Run]) -> Vec<IoSlice<'a>> {
        let slice = |part: &Part| match part {
            Part::Gathered(range) => IoSlice::new(&self.gathered[range.clone()]),
            Part::Run(index) => IoSlice::new(runs[*index].bytes()),
        };
        self.parts.iter().map(slice).collect()
    }
}

impl Open {
    fn write(&mut self, files: &dyn Files, header: FileHeader, runs: &[Run], room: Room) -> io::Result<Batch> {
        let mut draft = Draft::default();
        let (start, mut last, lead) = self.lead(header, &runs[0], &mut draft);
        let lead_at = if lead.len() == size_of::<u32>() {
            last.position + LENGTH_AT
        } else if self.segment.bytes == 0 {
            0
        } else {
            last.position
        };
        let mut at = start;
        let mut data = 0;
        let mut used = 0;
        for (index, run) in runs.iter().enumerate() {
            if index > 0 {
                if data >= room.data || at >= room.end {
                    break;
                }
                at = self.next_frame(header.key, run, at, &mut draft);
                last = Last { position: at - HEADER as u64, len: run.range.len() as u32, piece: run.piece.offset };
            }
            match run.range.len() {
                0..SMALL => draft.gather(run.bytes()),
                _ => draft.parts.push(Part::Run(index)),
            }
            at += run.range.len() as u64;
            data += run.range.len() as u64;
            used += 1;
        }
        write_all(files, &self.file, &mut draft.slices(runs), start)?;
        write_all(files, &self.file, &mut [IoSlice::new(&lead)], lead_at)?;
        let first = if self.segment.bytes == 0 { runs[0].offset() } else { self.segment.first };
        let bytes = at;
        self.segment = Segment { first, end: runs[used - 1].end(), bytes, ..self.segment };
        self.data += data;
        self.last = Some(last);
        self.marked = draft.marks.last().map_or(self.marked, |mark| mark.offset);
        Ok(Batch { used, segment: self.segment, marks: draft.marks })
    }

    /// Where the first run's bytes go, and what makes them visible in the end.
    fn lead(&self, header: FileHeader, run: &Run, draft: &mut Draft) -> (u64, Last, Vec<u8>) {
        let more = run.range.len() as u32;
        if let Some(last) = self.last
            && last.piece == run.piece.offset
            && self.segment.end == run.offset()
        {
            let grown = Last { len: last.len + more, ..last };
            let end = last.position + HEADER as u64 + u64::from(last.len);
            return (end, grown, grown.len.to_le_bytes().to_vec());
        }
        let mut lead = Vec::new();
        if self.segment.bytes == 0 {
            lead.extend_from_slice(&header.encode());
        }
        let position = aligned(self.segment.bytes.max(FILE_HEADER as u64));
        lead.extend_from_slice(&frame_of(run).encode(header.key));
        self.mark(run, position, draft);
        (position + HEADER as u64, Last { position, len: more, piece: run.piece.offset }, lead)
    }

    /// Begins a frame behind the one that ends at `at`; says where its bytes go.
    fn next_frame(&self, key: u64, run: &Run, at: u64, draft: &mut Draft) -> u64 {
        let position = aligned(at);
        draft.gather(&[0; 8][..(position - at) as usize]);
        draft.gather(&frame_of(run).encode(key));
        self.mark(run, position, draft);
        position + HEADER as u64
    }

    fn mark(&self, run: &Run, position: u64, draft: &mut Draft) {
        let last = draft.marks.last().map_or(self.marked, |mark| mark.offset);
        let is_first = self.segment.bytes == 0 && draft.marks.is_empty();
        if is_first || run.offset() - last >= MARK_EVERY {
            let mark = Mark { offset: run.offset(), line: run.line(), segment: self.segment.number, position };
            draft.marks.push(mark);
        }
    }
}

fn frame_of(run: &Run) -> Header {
    let (piece, len) = (&run.piece, run.range.len() as u32);
    Header { len, offset: run.offset(), at: piece.at, line: run.line(), stdout: run.stdout(), stream: piece.stream }
}
