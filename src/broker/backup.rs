//! What `fs_write`, `fs_edit` and `fs_restore` replaced, kept for a while under ids nobody can guess.
//!
//! One file each in `backups/` of the agent's directory: a line of JSON, then the bytes. Brokers of one agent share it.
//! A backup that cannot be kept never undoes the write it belongs to; the reason is told instead.

use super::desk::BACKUP_BYTES;
use super::output::folder::{Files, Folder};
use super::refused::{Code, Refused};
use super::state::new_id;
use crate::worker::ask::Previous;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::DirBuilder;
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

const FOLDER: &str = "backups";
const PREFIX: &str = "b";

/// Files, whatever their size: more would make every look at the directory slow.
const MOST_FILES: usize = 1000;

/// Of all backups, whatever the policy lets an agent keep altogether.
const MOST_BYTES: u64 = 256 << 20;

/// So much of what an agent may keep is for backups.
const SHARE: u64 = 4;

/// A header is a path and a few numbers.
const MOST_HEADER: u64 = 64 << 10;

#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub age: Duration,
    pub files: usize,
    pub bytes: u64,
}

impl Limits {
    /// Out of what the policy lets an agent keep.
    pub fn of(age: Duration, kept_bytes: u64) -> Self {
        Limits { age, files: MOST_FILES, bytes: (kept_bytes / SHARE).min(MOST_BYTES) }
    }
}

#[derive(Debug)]
pub struct Backups {
    /// The agent's directory, or why there is none.
    place: Result<PathBuf, String>,
    limits: Limits,
    /// What is there, as far as this broker knows; a look at the directory corrects it.
    tally: Mutex<Tally>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    files: usize,
    bytes: u64,
}

/// A file as it was.
#[derive(Debug, PartialEq, Eq)]
pub struct Backup {
    /// As the cell names it, from the root on.
    pub path: String,
    pub mode: u32,
    pub content: Vec<u8>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    path: String,
    mode: u32,
    bytes: u64,
    sha256: String,
}

impl Backups {
    pub fn new(place: Result<PathBuf, String>, limits: Limits) -> Self {
        let backups = Backups { place, limits, tally: Mutex::default() };
        backups.sweep(SystemTime::now());
        backups
    }

    /// Keeps what was replaced, and returns its id; or says why it is not kept.
    pub fn keep(&self, path: &str, previous: &Previous) -> Result<String, String> {
        let Some(content) = &previous.content else {
            return Err(format!("the {} bytes before are unreadable or more than {BACKUP_BYTES}", previous.size));
        };
        let bytes = content.len() as u64;
        if bytes > self.limits.bytes {
            return Err(format!("{bytes} bytes are more than the {} that backups may take", self.limits.bytes));
        }
        let header = Header { path: path.into(), mode: previous.mode, bytes, sha256: hash(content) };
        let name = new_id(PREFIX);
        self.write(&name, &header, content).map_err(|error| error.to_string())?;
        let is_over = {
            let mut tally = self.tally();
            tally.files += 1;
            tally.bytes += bytes;
            tally.files > self.limits.files || tally.bytes > self.limits.bytes
        };
        if is_over {
            self.sweep(SystemTime::now());
        }
        Ok(name)
    }

    fn write(&self, name: &str, header: &Header, content: &[u8]) -> io::Result<()> {
        let folder = self.folder()?;
        let mut file = folder.create(name)?;
        let mut first = serde_json::to_vec(header)?;
        first.push(b'\n');
        file.write_all(&first).and_then(|()| file.write_all(content)).inspect_err(|_| {
            // Half a backup is none.
            let _ = folder.remove(name);
        })
    }

    pub fn find(&self, id: &str) -> Result<Backup, Refused> {
        let absent = || {
            let shown: String = id.escape_debug().take(80).collect();
            let message = format!("no backup `{shown}`; it was never made, or is older than what is kept");
            Refused::new(Code::NotFound, message)
        };
        // An id is a name of ours before it is a name in the directory.
        if !is_name(id) {
            return Err(absent());
        }
        let read = || -> io::Result<Option<Backup>> {
            let mut bytes = Vec::new();
            let most = MOST_HEADER + BACKUP_BYTES;
            self.folder()?.read(id)?.take(most + 1).read_to_end(&mut bytes)?;
            Ok(parse(bytes))
        };
        match read() {
            Ok(Some(backup)) => Ok(backup),
            Ok(None) => Err(absent()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(absent()),
            Err(error) => Err(Refused::new(Code::IoError, format!("the backup cannot be read: {error}"))),
        }
    }

    /// Deletes what is too old, then the oldest beyond the bounds, with a tenth to spare so that not every backup
    /// after it has to look again.
    pub fn sweep(&self, now: SystemTime) {
        let Ok((folder, mut kept)) = self.folder().and_then(|folder| Ok((folder, self.entries()?))) else { return };
        kept.sort_unstable();
        let mut tally = Tally { files: kept.len(), bytes: kept.iter().map(|(_, bytes, _)| bytes).sum() };
        let is_over = tally.files > self.limits.files || tally.bytes > self.limits.bytes;
        let most = if is_over {
            Tally { files: self.limits.files / 10 * 9, bytes: self.limits.bytes / 10 * 9 }
        } else {
            Tally { files: self.limits.files, bytes: self.limits.bytes }
        };
        for (at, bytes, name) in kept {
            let is_old = now.duration_since(at).is_ok_and(|age| age > self.limits.age);
            if !is_old && tally.files <= most.files && tally.bytes <= most.bytes {
                break;
            }
            if folder.remove(&name).is_ok() {
                tally.files -= 1;
                tally.bytes -= bytes;
            }
        }
        *self.tally() = tally;
    }

    fn entries(&self) -> io::Result<Vec<(SystemTime, u64, String)>> {
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(self.path()?)? {
            let entry = entry?;
            // One that another broker has just deleted is none.
            let Ok(about) = entry.metadata() else { continue };
            if let Some(name) = entry.file_name().to_str().filter(|name| is_name(name)) {
                entries.push((about.modified()?, about.len(), name.to_owned()));
            }
        }
        Ok(entries)
    }

    fn path(&self) -> io::Result<PathBuf> {
        self.place.as_ref().map(|agent| agent.join(FOLDER)).map_err(|why| io::Error::other(why.clone()))
    }

    fn folder(&self) -> io::Result<Folder> {
        let path = self.path()?;
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Folder::open(&path),
        }
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `None` for a file that is not whole.
fn parse(mut bytes: Vec<u8>) -> Option<Backup> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let header: Header = serde_json::from_slice(&bytes[..end]).ok()?;
    let content = bytes.split_off(end + 1);
    let is_whole = content.len() as u64 == header.bytes && hash(&content) == header.sha256;
    is_whole.then_some(Backup { path: header.path, mode: header.mode & 0o777, content })
}

fn is_name(id: &str) -> bool {
    let digits = id.strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix('_'));
    digits.is_some_and(|digits| {
        digits.len() == 16 && digits.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'2'..=b'7'))
    })
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |text, byte| format!("{text}{byte:02x}"))
}

#[cfg(test)]
#[path = "backup_tests.rs"]
mod tests;
