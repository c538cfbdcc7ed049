//! The output of an earlier broker's process: read back from its segments when somebody asks, and then like any other.

use super::Output;
use super::bounds::{Bounds, Overflow, Totals};
use super::folder::{Files, Folder};
use super::frame::{FILE_HEADER, HEADER, Header, aligned};
use super::held::{Held, Mark, Segment};
use super::log::segment_name;
use super::ring::{PIECE, newlines};
use super::walk::{open_segment, read_window};
use crate::broker::answer::Stream;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

/// Marks are at least this far apart.
const MARK_EVERY: u64 = 32 << 10;

/// Read at once when only headers are wanted.
const GLANCE: usize = 4096;

/// What is known of an old log before it is read.
#[derive(Debug)]
pub(super) struct Old {
    files: Arc<Folder>,
    name: String,
    /// Numbers and sizes of its files, by number.
    segments: Vec<(u64, u64)>,
    known: Option<Totals>,
    loaded: OnceLock<()>,
    deleted: AtomicBool,
}

/// A log to be read back.
#[derive(Debug)]
pub(in crate::broker) struct Remains {
    pub folder: Arc<Folder>,
    pub proc_id: String,
    /// Numbers and sizes of its files.
    pub segments: Vec<(u64, u64)>,
    /// What its end was journaled with.
    pub known: Option<Totals>,
    pub active: SystemTime,
}

impl Output {
    /// The output of a process that ended with its broker. Nothing is read before somebody asks.
    pub(in crate::broker) fn recovered(remains: Remains) -> Arc<Output> {
        let Remains { folder, proc_id, mut segments, known, active } = remains;
        segments.sort_unstable();
        let mut held = Held::new(Bounds { kept: u64::MAX, lines: None, overflow: Overflow::DropOldest });
        held.closed = true;
        held.active.1 = active;
        let known = known.map(|known| Totals { closed: true, ..known });
        let (loaded, deleted) = (OnceLock::new(), AtomicBool::new(false));
        let old = Old { files: folder, name: proc_id, segments, known, loaded, deleted };
        Arc::new(Output::with(held, None, Some(old), None))
    }

    /// Reads an old log's headers, once.
    pub(super) fn load(&self) {
        let Some(old) = &self.old else { return };
        old.loaded.get_or_init(|| {
            let mut held = self.held();
            let (active, bounds) = (held.active, held.bounds);
            drop(held);
            let mut read = Held::new(bounds);
            (read.active, read.closed) = (active, true);
            old.scan(&mut read);
            held = self.held();
            *held = read;
        });
    }

    /// Where its segments are, and what they are called.
    pub(super) fn shelf(&self) -> Option<(&dyn Files, &str)> {
        match (&self.log, &self.old) {
            (Some(log), _) => Some((&*log.files, &log.name)),
            (None, Some(old)) => Some((&*old.files, &old.name)),
            (None, None) => None,
        }
    }
}

impl Old {
    /// The totals as journaled, as long as the log was not read.
    pub(super) fn known(&self) -> Option<Totals> {
        if self.loaded.get().is_some() { None } else { self.known }
    }

    pub(super) fn unread_bytes(&self) -> Option<u64> {
        if self.deleted.load(Ordering::Relaxed) {
            return Some(0);
        }
        Some(self.segments.iter().map(|segment| segment.1).sum())
    }

    pub(super) fn delete(&self) {
        self.deleted.store(true, Ordering::Relaxed);
        for (number, _) in &self.segments {
            // What cannot be deleted now is found by the sweep of a later broker.
            let _ = self.files.remove(&segment_name(&self.name, *number));
        }
    }

    fn scan(&self, held: &mut Held) {
        let mut last = None;
        for (number, _) in &self.segments {
            // A file that is no segment leaves a hole, like one that is missing.
            if let Ok((file, header)) = open_segment(&*self.files, &self.name, *number) {
                held.bounds.kept = header.kept;
                held.bounds.lines = Some(header.lines).filter(|lines| *lines > 0);
                let mut scan = Scan { file: &file, number: *number, key: header.key, held: &mut *held };
                // Where it cannot be read, it ends.
                let _ = scan.run(&mut last);
            }
        }
        let end = held.segments.back().map_or(0, |segment| segment.end);
        held.tally.total = end;
        if let Some((header, data)) = &last {
            let stdout = if header.stream == Stream::Stdout { data.len() as u64 } else { 0 };
            held.tally.stdout = header.stdout + stdout;
            held.tally.stderr = end - held.tally.stdout.min(end);
            held.tally.lines = header.line + newlines(&data[..data.len().saturating_sub(1)]);
        }
        if let Some(known) = self.known {
            held.tally.total = known.total_bytes.max(end);
            held.tally.stdout = known.stdout_bytes;
            held.tally.stderr = known.stderr_bytes;
            held.tally.lines = known.total_lines;
        }
        let total = held.tally.total;
        held.gap(end, total);
        held.done = total;
    }
}

struct Scan<'a> {
    file: &'a File,
    number: u64,
    key: u64,
    held: &'a mut Held,
}

impl Scan<'_> {
    /// Notes the frames of one file; leaves the last one's header and bytes.
    fn run(&mut self, last: &mut Option<(Header, Vec<u8>)>) -> io::Result<()> {
        let size = self.file.metadata()?.len();
        let mut at = FILE_HEADER as u64;
        let mut glance = (0, Vec::new());
        let mut newest = None;
        while let Some(header) = self.header(at, &mut glance)? {
            let end = self.held.segments.back().map_or(0, |segment| segment.end);
            let data = at + HEADER as u64;
            let there = u64::from(header.len).min(size.saturating_sub(data));
            if header.offset < end || there == 0 {
                break;
            }
            self.note(&header, there, at, size);
            newest = Some((header, data, there));
            at = aligned(data + u64::from(header.len));
        }
        if let Some((header, data, there)) = newest {
            let mut bytes = vec![0; there.min(PIECE as u64) as usize];
            self.file.read_exact_at(&mut bytes, data)?;
            *last = Some((header, bytes));
        }
        Ok(())
    }

    fn header(&self, at: u64, glance: &mut (u64, Vec<u8>)) -> io::Result<Option<Header>> {
        let inside = |glance: &(u64, Vec<u8>)| {
            let skip = at.checked_sub(glance.0)? as usize;
            glance.1.get(skip..skip + HEADER).map(|bytes| Header::decode(bytes, self.key))
        };
        if let Some(header) = inside(glance) {
            return Ok(header);
        }
        *glance = (at, read_window(self.file, at, GLANCE)?);
        Ok(inside(glance).flatten())
    }

    fn note(&mut self, header: &Header, there: u64, position: u64, size: u64) {
        let held = &mut *self.held;
        let end = held.segments.back().map(|segment| segment.end);
        match end {
            Some(end) => held.gap(end, header.offset),
            None => held.floor = header.offset,
        }
        let until = header.offset + there;
        let is_first = held.segments.back().is_none_or(|segment| segment.number != self.number);
        match held.segments.back_mut() {
            Some(last) if !is_first => last.end = until,
            _ => {
                held.segments.push_back(Segment { number: self.number, first: header.offset, end: until, bytes: size });
            }
        }
        let is_far = held.marks.back().is_none_or(|mark| header.offset - mark.offset >= MARK_EVERY);
        if is_first || is_far {
            held.marks.push_back(Mark { offset: header.offset, line: header.line, segment: self.number, position });
        }
    }
}
