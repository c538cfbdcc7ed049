//! Reads a log back and trusts nothing: every line is held to its own hash, to the line before and to the head.
//!
//! Found are a changed, removed, inserted or repeated line, lines in another order, and lines cut off the end as far
//! as `audit.head` knows of them (it lags by a second at most). Reading needs no broker and stops none.

use super::files;
use super::line::{self, Link, Marker, Reading, Sealed};
use nix::fcntl::{Flock, FlockArg};
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Findings that are told one by one; beyond them they are counted.
const TOLD: usize = 100;

/// What a log looks like.
#[derive(Debug, Default)]
pub struct Report {
    pub files: usize,
    /// Lines that are what they were.
    pub lines: u64,
    pub calls: u64,
    /// Calls that the log itself says are missing.
    pub lost: u64,
    /// Lines that a dying writer left unfinished, as the log itself says.
    pub torn: u64,
    pub first_seq: u64,
    pub last_seq: u64,
    pub findings: Vec<Finding>,
    /// Beyond those told.
    pub more_findings: usize,
}

impl Report {
    pub fn is_intact(&self) -> bool {
        self.findings.is_empty()
    }
}

/// Something that cannot have come from the log's writer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub file: PathBuf,
    /// From 1; 0: the file as a whole.
    pub line: u64,
    pub seq: Option<u64>,
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.file.file_name().unwrap_or(self.file.as_os_str()).to_string_lossy();
        write!(f, "{name}:{}: ", self.line)?;
        if let Some(seq) = self.seq {
            write!(f, "seq {seq}: ")?;
        }
        write!(f, "{}", self.what)
    }
}

/// The whole log of an agent.
pub fn directory(directory: &Path) -> io::Result<Report> {
    let (snapshots, head) = snapshot(directory)?;
    let mut walk = Walk { head: head.as_ref().ok().cloned().flatten(), ..Walk::default() };
    for Snapshot { path, file, length } in snapshots {
        walk.file(&path, file.take(length))?;
    }
    walk.check_beginning();
    walk.check_end(&directory.join(files::CURRENT));
    match head {
        Ok(Some(_)) => {}
        Ok(None) => walk.find(&directory.join(files::HEAD), 0, None, "the head is missing"),
        Err(error) => walk.find(&directory.join(files::HEAD), 0, None, error.to_string()),
    }
    Ok(walk.report)
}

/// One file by itself, wherever its chain begins and ends.
pub fn file(path: &Path) -> io::Result<Report> {
    let mut walk = Walk::default();
    walk.file(path, files::open_to_read(path)?)?;
    walk.check_end(path);
    Ok(walk.report)
}

struct Snapshot {
    path: PathBuf,
    file: File,
    length: u64,
}

/// The files as they are at one moment, brokers or not.
fn snapshot(directory: &Path) -> io::Result<(Vec<Snapshot>, io::Result<Option<Link>>)> {
    // Without the right to lock, as on a copy that is read-only, nobody writes either.
    let lock = files::open_to_read(&directory.join(files::LOCK)).ok();
    let _held = lock.and_then(|file| Flock::lock(file, FlockArg::LockShared).ok());
    let mut snapshots = Vec::new();
    for path in files::rotated(directory)?.into_iter().chain([directory.join(files::CURRENT)]) {
        match files::open_to_read(&path) {
            Ok(file) => snapshots.push(Snapshot { length: file.metadata()?.len(), file, path }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok((snapshots, files::read_head(directory)))
}

#[derive(Default)]
struct Walk {
    report: Report,
    head: Option<Link>,
    head_seen: Option<String>,
    first: Option<(PathBuf, Sealed)>,
    before: Option<Before>,
    /// A line that is none, until the next line explains it.
    stray: Option<Stray>,
    removed: Vec<Link>,
}

/// The line before.
struct Before {
    seq: u64,
    /// `None` after a line that cannot be trusted.
    hash: Option<String>,
}

struct Stray {
    file: PathBuf,
    line: u64,
    bytes: u64,
    sha256: String,
    ended: bool,
}

impl Walk {
    fn file(&mut self, path: &Path, file: impl Read) -> io::Result<()> {
        let mut reader = BufReader::with_capacity(1 << 16, file);
        self.report.files += 1;
        let mut bytes = Vec::new();
        for number in 1.. {
            bytes.clear();
            if reader.read_until(b'\n', &mut bytes)? == 0 {
                break;
            }
            let ended = bytes.pop_if(|last| *last == b'\n').is_some();
            match line::read(&bytes) {
                Reading::Sealed(sealed) => self.sealed(path, number, sealed),
                Reading::Changed(seq) if ended => self.changed(path, number, seq),
                Reading::Changed(_) | Reading::Foreign => {
                    self.condemn_stray();
                    let (bytes, sha256) = (bytes.len() as u64, line::sha256(&bytes));
                    self.stray = Some(Stray { file: path.to_owned(), line: number, bytes, sha256, ended });
                }
            }
        }
        Ok(())
    }

    fn sealed(&mut self, path: &Path, number: u64, sealed: Sealed) {
        let seq = sealed.link.seq;
        self.explain_stray(path, number, &sealed);
        if let Some(what) = self.before.as_ref().and_then(|before| break_between(before, &sealed)) {
            self.find(path, number, Some(seq), what);
        }
        self.report.lines += 1;
        self.report.last_seq = self.report.last_seq.max(seq);
        match &sealed.marker {
            None => self.report.calls += 1,
            Some(Marker::Lost { count, .. }) => self.report.lost += count,
            Some(Marker::Removed { last, .. }) => self.removed.push(last.clone()),
            Some(Marker::Torn { .. } | Marker::Gap { .. }) => {}
        }
        if self.head.as_ref().is_some_and(|head| head.seq == seq) {
            self.head_seen = Some(sealed.link.hash.clone());
        }
        self.before = Some(Before { seq, hash: Some(sealed.link.hash.clone()) });
        if self.first.is_none() {
            self.report.first_seq = seq;
            self.first = Some((path.to_owned(), sealed));
        }
    }

    fn changed(&mut self, path: &Path, number: u64, seq: Option<u64>) {
        self.condemn_stray();
        self.find(path, number, seq, "the line was changed: its hash is not that of its bytes");
        let expected = self.before.as_ref().map_or(0, |before| before.seq) + 1;
        self.before = Some(Before { seq: expected, hash: None });
    }

    /// Only the marker that follows a torn line vouches for it, byte for byte.
    fn explain_stray(&mut self, path: &Path, number: u64, next: &Sealed) {
        let told = match &next.marker {
            Some(Marker::Torn { bytes, sha256, .. }) => Some((*bytes, sha256.as_str())),
            _ => None,
        };
        let found = self.stray.as_ref().map(|stray| (stray.bytes, stray.sha256.as_str()));
        if told == found {
            self.report.torn += u64::from(self.stray.take().is_some());
        } else if found.is_some() {
            self.condemn_stray();
        } else {
            self.find(path, number, Some(next.link.seq), "the torn line that it tells of is not there");
        }
    }

    fn condemn_stray(&mut self) {
        if let Some(Stray { file, line, .. }) = self.stray.take() {
            self.find(&file, line, None, "not a line of this log");
            // One line may stand here in the place of one that was changed beyond recognition.
            if let Some(before) = &mut self.before {
                *before = Before { seq: before.seq, hash: None };
            }
        }
    }

    fn check_beginning(&mut self) {
        let Some((path, first)) = self.first.take() else {
            return;
        };
        let before = Link { seq: first.link.seq.saturating_sub(1), hash: first.prev };
        if before != Link::start() && !self.removed.contains(&before) {
            let what = format!("the lines up to seq {} are missing before it", before.seq);
            self.find(&path, 1, Some(first.link.seq), what);
        }
    }

    fn check_end(&mut self, path: &Path) {
        // What a broker that was killed left behind, and no other has closed yet. Had it been whole, the head knows.
        if self.stray.as_ref().is_some_and(|stray| !stray.ended) {
            self.stray = None;
            self.report.torn += 1;
        }
        self.condemn_stray();
        let Some(head) = self.head.take() else {
            return;
        };
        let last = self.report.last_seq;
        if head.seq > last {
            let what = format!("the lines seq {} to {} are missing at the end", last + 1, head.seq);
            self.find(path, 0, None, what);
        } else if self.head_seen.take().is_some_and(|hash| hash != head.hash) {
            self.find(path, 0, Some(head.seq), "the line is not the one that the head names");
        }
    }

    fn find(&mut self, file: &Path, line: u64, seq: Option<u64>, what: impl Into<String>) {
        if self.report.findings.len() == TOLD {
            self.report.more_findings += 1;
            return;
        }
        self.report.findings.push(Finding { file: file.to_owned(), line, seq, what: what.into() });
    }
}

fn break_between(before: &Before, next: &Sealed) -> Option<String> {
    let (expected, seq) = (before.seq + 1, next.link.seq);
    if seq > expected {
        return Some(format!("the lines seq {expected} to {} are missing before it", seq - 1));
    }
    if seq < expected {
        return Some(format!("out of order: it stands after seq {}", before.seq));
    }
    let fits = before.hash.as_ref().is_none_or(|hash| *hash == next.prev);
    (!fits).then(|| "it does not follow the line before: one of them was put in later".into())
}
