//! The files of one agent's log: their names, how they are opened, and the head.
//!
//! Every file is opened owner-only, without following a link and without waiting for the other end of a FIFO.

use super::line::Link;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

pub const CURRENT: &str = "audit.jsonl";
pub const HEAD: &str = "audit.head";
pub const LOCK: &str = "audit.lock";

const CAREFUL: i32 = libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK;

/// The files put away, oldest first.
pub fn rotated(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        found.extend(number(&path).map(|number| (number, path)));
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

pub(super) fn number(path: &Path) -> Option<u64> {
    let digits = path.file_name()?.to_str()?.strip_prefix("audit.")?.strip_suffix(".jsonl")?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// Waits for whoever is writing.
pub(super) fn hold(directory: &Path) -> io::Result<Flock<File>> {
    let path = directory.join(LOCK);
    let file = OpenOptions::new().write(true).create(true).mode(0o600).custom_flags(CAREFUL).open(path)?;
    let mut file = regular(file, LOCK)?;
    loop {
        match Flock::lock(file, FlockArg::LockExclusive) {
            Ok(held) => return Ok(held),
            Err((again, Errno::EINTR)) => file = again,
            Err((_, errno)) => return Err(errno.into()),
        }
    }
}

pub(super) fn open_current(directory: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600).custom_flags(CAREFUL);
    regular(options.open(directory.join(CURRENT))?, CURRENT)
}

/// Opens a file of the log to read it.
pub fn open_to_read(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(CAREFUL).open(path)?;
    regular(file, &path.display().to_string())
}

fn regular(file: File, name: &str) -> io::Result<File> {
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::other(format!("`{name}` is not a regular file; move it away")))
}

/// `None`: there is none. An unreadable head is an error: it must not be taken for a young log.
pub fn read_head(directory: &Path) -> io::Result<Option<Link>> {
    let mut text = String::new();
    match open_to_read(&directory.join(HEAD)) {
        Ok(file) => file.take(4096).read_to_string(&mut text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let head = serde_json::from_str(&text);
    head.map(Some).map_err(|error| {
        io::Error::new(io::ErrorKind::InvalidData, format!("`{HEAD}` is not what was written: {error}"))
    })
}

/// Keeps a head that cannot be read, so that it can be looked into; the log must go on.
pub(super) fn set_head_aside(directory: &Path) -> io::Result<()> {
    let free =
        (1..).map(|n| directory.join(format!("{HEAD}.damaged-{n}"))).find(|path| fs::symlink_metadata(path).is_err());
    fs::rename(directory.join(HEAD), free.unwrap_or_default())
}

pub(super) fn write_head(directory: &Path, link: &Link) -> io::Result<Link> {
    let fresh = directory.join("audit.head.new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).custom_flags(CAREFUL);
    let mut file = regular(options.open(&fresh)?, "audit.head.new")?;
    file.write_all(&serde_json::to_vec(link)?)?;
    file.sync_data()?;
    fs::rename(&fresh, directory.join(HEAD))?;
    Ok(link.clone())
}
