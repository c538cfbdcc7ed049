//! What the output's tests share: a seeded generator, a directory that goes away, a naive model, a disk that fails.

use super::folder::{Files, Folder};
use super::{Bounds, Log, Output, Overflow, Scribe};
use crate::broker::answer::{Line, Stream};
use crate::broker::request::Filter;
use std::fs::File;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// xorshift64*: the same numbers on every machine.
pub(in crate::broker) struct Dice(pub u64);

impl Dice {
    pub(in crate::broker) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % limit
    }
}

/// A directory of its own, gone at the end.
pub(in crate::broker) struct Scratch(pub PathBuf);

impl Scratch {
    pub(in crate::broker) fn new(name: &str) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("stockade-{name}-{}-{count}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub(in crate::broker) fn folder(&self) -> Arc<Folder> {
        Arc::new(Folder::open(&self.0).unwrap())
    }

    /// The sizes of the files in it.
    pub(in crate::broker) fn bytes(&self) -> u64 {
        let files = std::fs::read_dir(&self.0).unwrap();
        files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
    }

    pub(in crate::broker) fn segments(&self, proc_id: &str) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        for file in std::fs::read_dir(&self.0).unwrap() {
            let file = file.unwrap();
            let name = file.file_name().into_string().unwrap();
            let number = name.strip_prefix(&format!("{proc_id}.")).and_then(|rest| rest.strip_suffix(".log"));
            if let Some(number) = number {
                found.push((number.parse().unwrap(), file.metadata().unwrap().len()));
            }
        }
        found.sort_unstable();
        found
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(super) fn output(path: &Path, bounds: Bounds, scribe: &Scribe) -> Arc<Output> {
    let folder = Arc::new(Folder::open(path).unwrap());
    Output::new(bounds, Some(Log::new(folder, "p_1")), scribe)
}

pub(super) fn keep(kept: u64) -> Bounds {
    Bounds { kept, lines: None, overflow: Overflow::DropOldest }
}

/// Runs a future that other threads complete.
pub(super) fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

/// Brings everything to disk as a reply does: at once, or when the scribe is at it, with the scribe.
pub(in crate::broker) fn persist(output: &Output) {
    if !output.flush_small() {
        wait(output.persisted(u64::MAX));
    }
}

/// Everything that was appended, in the simplest form.
#[derive(Default, Clone)]
pub(super) struct Model {
    pub bytes: Vec<u8>,
    pub streams: Vec<Stream>,
}

impl Model {
    pub(super) fn append(&mut self, stream: Stream, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.streams.extend(std::iter::repeat_n(stream, bytes.len()));
    }

    /// The number of the line each byte is in.
    pub(super) fn numbers(&self) -> Vec<u64> {
        let mut number = 0;
        let mut numbers = Vec::new();
        for at in 0..self.bytes.len() {
            if at == 0 || self.bytes[at - 1] == b'\n' || self.streams[at - 1] != self.streams[at] {
                number += 1;
            }
            numbers.push(number);
        }
        numbers
    }

    /// Number, stream, start and text of every line that is shown.
    pub(super) fn lines(&self, oldest: usize, filter: Filter) -> Vec<(u64, Stream, u64, Vec<u8>)> {
        let numbers = self.numbers();
        let mut lines: Vec<(u64, Stream, u64, Vec<u8>)> = Vec::new();
        for at in (oldest..self.bytes.len()).filter(|at| shows(filter, self.streams[*at])) {
            if lines.last().is_none_or(|last| last.0 != numbers[at]) {
                lines.push((numbers[at], self.streams[at], at as u64, Vec::new()));
            }
            if self.bytes[at] != b'\n'
                && let Some(last) = lines.last_mut()
            {
                last.3.push(self.bytes[at]);
            }
        }
        lines
    }

    pub(super) fn filtered(&self, from: usize, filter: Filter) -> Vec<u8> {
        let range = from.min(self.bytes.len())..self.bytes.len();
        range.filter(|at| shows(filter, self.streams[*at])).map(|at| self.bytes[at]).collect()
    }
}

pub(super) fn shows(filter: Filter, stream: Stream) -> bool {
    match filter {
        Filter::All => true,
        Filter::Stdout => stream == Stream::Stdout,
        Filter::Stderr => stream == Stream::Stderr,
    }
}

pub(super) fn plain(line: &Line) -> (u64, Stream, Vec<u8>) {
    (line.number, line.stream, line.text.clone())
}

/// A directory whose disk can be full, and which writes a little at a time.
#[derive(Debug)]
pub(super) struct Flaky {
    pub folder: Arc<Folder>,
    pub is_full: AtomicBool,
    /// At most so many bytes per write.
    pub sip: usize,
    pub attempts: AtomicU64,
}

impl Flaky {
    pub(super) fn new(folder: Arc<Folder>, sip: usize) -> Arc<Self> {
        Arc::new(Flaky { folder, is_full: AtomicBool::new(false), sip, attempts: AtomicU64::new(0) })
    }

    fn check(&self) -> io::Result<()> {
        if self.is_full.load(Ordering::SeqCst) {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        Ok(())
    }
}

impl Files for Flaky {
    fn create(&self, name: &str) -> io::Result<File> {
        self.attempts.fetch_add(1, Ordering::SeqCst);
        self.check()?;
        self.folder.create(name)
    }

    fn reopen(&self, name: &str) -> io::Result<File> {
        self.folder.reopen(name)
    }

    fn read(&self, name: &str) -> io::Result<File> {
        self.folder.read(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.check()?;
        self.folder.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.folder.remove(name)
    }

    fn write(&self, file: &File, slices: &[IoSlice], position: u64) -> io::Result<usize> {
        let attempt = self.attempts.fetch_add(1, Ordering::SeqCst);
        if attempt % 5 == 4 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let first = slices.iter().find(|slice| !slice.is_empty()).unwrap();
        let sip = &first[..first.len().min(self.sip)];
        // A disk fills up in the midst of a write.
        let written = self.folder.write(file, &[IoSlice::new(&sip[..sip.len().div_ceil(2)])], position)?;
        self.check()?;
        Ok(written)
    }
}
