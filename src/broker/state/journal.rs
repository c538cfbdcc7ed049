//! The journal of a broker: JSON lines that say which processes there were and how they ended.
//!
//! Each record is one write. One that cannot be written is kept, within a bound, and goes first when there is space again; a
//! write that was cut short is taken back. A line that is torn or makes no sense is skipped by the reader and counted.

use crate::broker::answer::Reason;
use crate::broker::output::folder::{Files, Folder};
use nix::fcntl::OFlag;
use serde::{Deserialize, Serialize};
use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

pub(super) const NAME: &str = "journal.jsonl";
const DRAFT: &str = "journal.new";
const VERSION: u64 = 1;

/// Records that wait for space. More than this, and the oldest are given up: output without a record is swept.
const MAX_WAITING: usize = 1024;

/// Beyond this many records a journal is written anew when most of them are about processes that were removed.
const MAX_RECORDS: usize = 4096;

/// A journal larger than this was not written by a broker.
const MAX_BYTES: u64 = 256 << 20;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    pub proc_id: String,
    pub session: String,
    pub command: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub cwd: String,
    /// As the host counts.
    pub pid: i32,
    /// Whether it had a terminal.
    pub terminal: bool,
    /// Microseconds since 1970.
    pub started_at: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub proc_id: String,
    pub reason: Reason,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub cpu_us: u64,
    pub max_rss_kib: u64,
    pub total_bytes: u64,
    pub stdout_bytes: u64,
    pub stderr_bytes: u64,
    pub total_lines: u64,
    pub dropped_bytes: u64,
    /// Microseconds since 1970.
    pub ended_at: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub(super) enum Record {
    Started(Started),
    Ended(Ended),
    Removed { proc_id: String },
    OutputRemoved { proc_id: String },
}

impl Record {
    pub(super) fn proc_id(&self) -> &str {
        match self {
            Record::Started(Started { proc_id, .. }) | Record::Ended(Ended { proc_id, .. }) => proc_id,
            Record::Removed { proc_id } | Record::OutputRemoved { proc_id } => proc_id,
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Head {
    stockade: u64,
}

/// What a journal says.
#[derive(Debug)]
pub(super) enum Told {
    Records {
        records: Vec<Record>,
        skipped: u64,
    },
    /// Not to be touched, and why.
    Strange(String),
}

/// A journal being written. Whoever has it holds its directory's lock.
#[derive(Debug)]
pub(super) struct Journal {
    folder: Arc<Folder>,
    file: Option<File>,
    /// Where the next record goes.
    end: u64,
    waiting: VecDeque<Vec<u8>>,
    given_up: u64,
    records: usize,
    removed: HashSet<String>,
    trouble: Option<String>,
}

impl Journal {
    /// A new journal; it is made with its first record.
    pub(super) fn new(folder: Arc<Folder>) -> Journal {
        let head = serde_json::to_vec(&Head { stockade: VERSION }).map(line).unwrap_or_default();
        Journal {
            folder,
            file: None,
            end: 0,
            waiting: VecDeque::from([head]),
            given_up: 0,
            records: 0,
            removed: HashSet::new(),
            trouble: None,
        }
    }

    /// Goes on with the journal of a broker that died. A torn last line is ended first.
    pub(super) fn resume(folder: Arc<Folder>, records: usize) -> io::Result<Journal> {
        let file = folder.regular(NAME, OFlag::O_RDWR)?;
        let end = file.metadata()?.len();
        let mut last = [0];
        let is_torn = end > 0 && file.read_at(&mut last, end - 1)? == 1 && last[0] != b'\n';
        let mut journal = Journal::new(folder);
        journal.waiting.clear();
        journal.waiting.extend(is_torn.then(|| b"\n".to_vec()));
        (journal.file, journal.end, journal.records) = (Some(file), end, records);
        Ok(journal)
    }

    pub(super) fn write(&mut self, record: &Record) -> io::Result<()> {
        if self.waiting.len() >= MAX_WAITING {
            // The first is the header, if it could not be written.
            let first = usize::from(self.end == 0);
            self.waiting.remove(first);
            self.given_up += 1;
        }
        self.waiting.push_back(line(serde_json::to_vec(record)?));
        if let Record::Removed { proc_id } = record {
            self.removed.insert(proc_id.clone());
        }
        self.records += 1;
        let flushed = self.flush();
        self.trouble = flushed.as_ref().err().map(|error| {
            let given_up = match self.given_up {
                0 => String::new(),
                count => format!(", {count} given up"),
            };
            format!("the journal cannot be written: {error}; {} records wait{given_up}", self.waiting.len())
        });
        // A removal takes away three records: its own, and those of start and end.
        if flushed.is_ok() && self.records > MAX_RECORDS && self.removed.len() * 3 > self.records / 2 {
            return self.compact();
        }
        flushed
    }

    pub(super) fn trouble(&self) -> Option<String> {
        self.trouble.clone()
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.file.is_none() && !self.waiting.is_empty() {
            self.file = Some(self.folder.regular(NAME, OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL)?);
        }
        let Some(file) = &self.file else { return Ok(()) };
        while let Some(first) = self.waiting.front() {
            if let Err(error) = file.write_all_at(first, self.end) {
                // Taking back needs no space; if even that fails, the rest of the line is overwritten later.
                let _ = file.set_len(self.end);
                return Err(error);
            }
            self.end += first.len() as u64;
            self.waiting.pop_front();
        }
        Ok(())
    }

    /// Writes the journal anew without those who were removed.
    fn compact(&mut self) -> io::Result<()> {
        let Told::Records { records, .. } = read(&self.folder) else { return Ok(()) };
        let mut text = line(serde_json::to_vec(&Head { stockade: VERSION })?);
        let mut kept = 0;
        for record in records.iter().filter(|record| !self.removed.contains(record.proc_id())) {
            text.extend(line(serde_json::to_vec(record)?));
            kept += 1;
        }
        self.folder.remove(DRAFT)?;
        let draft = self.folder.regular(DRAFT, OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL)?;
        if let Err(error) = draft.write_all_at(&text, 0).and_then(|()| self.folder.rename(DRAFT, NAME)) {
            // The old journal is still whole.
            self.folder.remove(DRAFT)?;
            return Err(error);
        }
        (self.file, self.end, self.records) = (Some(draft), text.len() as u64, kept);
        self.removed.clear();
        Ok(())
    }
}

fn line(mut text: Vec<u8>) -> Vec<u8> {
    text.push(b'\n');
    text
}

/// Reads a journal. A missing or empty one is that of a broker that died before its first record.
pub(super) fn read(folder: &Folder) -> Told {
    let text = match slurp(folder) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Told::Strange(format!("`{NAME}` cannot be read: {error}")),
    };
    let mut lines = text.split_inclusive(|byte| *byte == b'\n');
    let head = lines.next().unwrap_or_default();
    if !head.ends_with(b"\n") {
        return Told::Records { records: Vec::new(), skipped: u64::from(!head.is_empty()) };
    }
    match serde_json::from_slice::<Head>(head) {
        Ok(Head { stockade: VERSION }) => {}
        Ok(Head { stockade }) => {
            return Told::Strange(format!("`{NAME}` has version {stockade}, and {VERSION} is the one known here"));
        }
        Err(_) => return Told::Strange(format!("`{NAME}` does not begin like a journal")),
    }
    let mut records = Vec::new();
    let mut skipped = 0;
    for line in lines {
        match serde_json::from_slice(line) {
            Ok(record) if line.ends_with(b"\n") => records.push(record),
            _ if line == b"\n" => {}
            // A torn last line is what a broker killed in the midst of a write leaves.
            _ => skipped += 1,
        }
    }
    Told::Records { records, skipped }
}

fn slurp(folder: &Folder) -> io::Result<Vec<u8>> {
    let file = folder.regular(NAME, OFlag::O_RDONLY)?;
    let size = file.metadata()?.len();
    if size > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{size} bytes are more than {MAX_BYTES}")));
    }
    let mut text = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut text)?;
    Ok(text)
}
