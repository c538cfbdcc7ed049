//! cgroup files are one short text each: read whole at offset 0, written in a single call.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;

/// The longest file read here is `memory.events` or `cpu.stat`, well below this.
const LONGEST: usize = 2048;

pub(super) fn open_dir(path: &Path) -> io::Result<OwnedFd> {
    open(nix::fcntl::AT_FDCWD, path, OFlag::O_DIRECTORY | OFlag::O_RDONLY)
}

pub(super) fn open(dir: impl AsFd, path: impl AsRef<Path>, flags: OFlag) -> io::Result<OwnedFd> {
    Ok(openat(dir, path.as_ref(), flags | OFlag::O_CLOEXEC, Mode::empty())?)
}

/// One write: the kernel parses each one on its own.
pub(super) fn write(dir: impl AsFd, path: impl AsRef<Path>, text: &str) -> io::Result<()> {
    let file = open(dir, path, OFlag::O_WRONLY)?;
    nix::unistd::write(&file, text.as_bytes())?;
    Ok(())
}

/// As [`write`], for a file that not every kernel has.
pub(super) fn write_if_there(dir: impl AsFd, path: impl AsRef<Path>, text: &str) -> io::Result<()> {
    match write(dir, path, text) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// A cgroup file kept open; every read sees the value of now.
#[derive(Debug)]
pub(super) struct Gauge(File);

impl Gauge {
    pub(super) fn open(dir: impl AsFd, path: impl AsRef<Path>, flags: OFlag) -> io::Result<Gauge> {
        open(dir, path, flags).map(Gauge::from)
    }

    /// The whole content is one number.
    pub(super) fn number(&self) -> io::Result<u64> {
        self.with_text(|text| text.trim().parse().ok())
    }

    /// The number behind `key`, in a file of `key value` lines.
    pub(super) fn entry(&self, key: &str) -> io::Result<u64> {
        self.with_text(|text| entry(text, key))
    }

    pub(super) fn write(&self, text: &str) -> io::Result<()> {
        nix::unistd::write(&self.0, text.as_bytes())?;
        Ok(())
    }

    fn with_text(&self, find: impl Fn(&str) -> Option<u64>) -> io::Result<u64> {
        let mut buffer = [0; LONGEST];
        let length = self.0.read_at(&mut buffer, 0)?;
        let text = std::str::from_utf8(&buffer[..length]).unwrap_or("");
        find(text).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    }
}

impl From<OwnedFd> for Gauge {
    fn from(descriptor: OwnedFd) -> Gauge {
        Gauge(File::from(descriptor))
    }
}

impl AsFd for Gauge {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn entry(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_by_whole_key() {
        let v2 = "low 0\nhigh 0\nmax 12\noom 1\noom_kill 3\noom_group_kill 1\n";
        assert_eq!(entry(v2, "oom_kill"), Some(3));
        assert_eq!(entry(v2, "oom"), Some(1));
        let v1 = "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n";
        assert_eq!(entry(v1, "oom_kill"), Some(7));
        assert_eq!(entry(v1, "usage_usec"), None);
    }
}
