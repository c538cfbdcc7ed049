//! The directory segments live in, held open so that no rename can swap it. Nothing in it is followed or blocked upon.

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, renameat};
use nix::sys::stat::Mode;
use nix::sys::uio::pwritev;
use nix::unistd::{UnlinkatFlags, unlinkat};
use std::fmt;
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// What the log does with files: a seam, so that a full disk can be had without one.
pub(in crate::broker) trait Files: Send + Sync + fmt::Debug {
    /// A file that was not there.
    fn create(&self, name: &str) -> io::Result<File>;
    /// An existing regular file, to be written.
    fn reopen(&self, name: &str) -> io::Result<File>;
    fn read(&self, name: &str) -> io::Result<File>;
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    fn remove(&self, name: &str) -> io::Result<()>;
    /// May write less than it was given.
    fn write(&self, file: &File, slices: &[IoSlice], position: u64) -> io::Result<usize>;
}

#[derive(Debug)]
pub(in crate::broker) struct Folder {
    pub(in crate::broker) directory: OwnedFd,
}

impl Folder {
    /// Opens a directory itself, never what a link points to.
    pub(in crate::broker) fn open(path: &Path) -> io::Result<Folder> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        Ok(Folder { directory: nix::fcntl::open(path, flags, Mode::empty())? })
    }

    /// Opens a regular file without following a link or waiting for the other end of a FIFO.
    pub(in crate::broker) fn regular(&self, name: &str, access: OFlag) -> io::Result<File> {
        let flags = access | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = File::from(openat(self.directory.as_fd(), name, flags, Mode::from_bits_truncate(0o600))?);
        if file.metadata()?.is_file() {
            return Ok(file);
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, format!("`{name}` is not a regular file")))
    }
}

impl Files for Folder {
    fn create(&self, name: &str) -> io::Result<File> {
        self.regular(name, OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL)
    }

    fn reopen(&self, name: &str) -> io::Result<File> {
        self.regular(name, OFlag::O_WRONLY)
    }

    fn read(&self, name: &str) -> io::Result<File> {
        self.regular(name, OFlag::O_RDONLY)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(self.directory.as_fd(), from, self.directory.as_fd(), to)?)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match unlinkat(self.directory.as_fd(), name, UnlinkatFlags::NoRemoveDir) {
            Err(Errno::ENOENT) => Ok(()),
            other => Ok(other?),
        }
    }

    fn write(&self, file: &File, slices: &[IoSlice], position: u64) -> io::Result<usize> {
        Ok(pwritev(file, slices, position as i64)?)
    }
}

/// Writes everything, however often that takes.
pub(super) fn write_all(files: &dyn Files, file: &File, mut slices: &mut [IoSlice], mut at: u64) -> io::Result<()> {
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        match files.write(file, slices, at) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                at += written as u64;
                IoSlice::advance_slices(&mut slices, written);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
