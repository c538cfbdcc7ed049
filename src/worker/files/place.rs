//! Where a file is written: the directory it stands in, held open, and its name there. Symlinks are followed by hand,
//! one directory at a time, so that a rename lands on the file a shell would have written and no swap of a link moves
//! it.

use super::open;
use crate::sys::Errno;
use crate::worker::ask::Kind;
use crate::worker::failure::{Code, Failure, Result};
use crate::worker::names::Named;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, openat, readlinkat};
use nix::sys::stat::{FileStat, Mode, fstatat};
use nix::unistd::fsync;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// As many links as the kernel follows (path_resolution(7)).
const LINKS: usize = 40;

/// A directory held open, and a name in it.
#[derive(Debug)]
pub struct Place {
    pub dir: OwnedFd,
    pub name: OsString,
    /// What stands there.
    pub found: Option<FileStat>,
}

impl Place {
    /// Where a shell's `>` would write: the last link is followed.
    pub fn find(path: &Named) -> Result<Place> {
        let mut place = Place::step(AT_FDCWD, path.path(), path)?;
        for _ in 0..LINKS {
            if place.found.is_none_or(|stat| open::kind(&stat) != Kind::Symlink) {
                return Ok(place);
            }
            let target = readlinkat(&place.dir, place.name()).map_err(|errno| Failure::errno(errno, path))?;
            place = Place::step(place.dir.as_fd(), Path::new(&target), path)?;
        }
        Err(Failure::errno(Errno::ELOOP, path))
    }

    /// Where the name itself stands, be it a symlink.
    pub fn of_link(path: &Named) -> Result<Place> {
        Place::step(AT_FDCWD, path.path(), path)
    }

    fn step(from: BorrowedFd<'_>, text: &Path, path: &Named) -> Result<Place> {
        let (parent, name) = split(text, path)?;
        let how = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let dir = openat(from, parent, how, Mode::empty()).map_err(|errno| Failure::errno(errno, path))?;
        let mut place = Place { dir, name: name.to_owned(), found: None };
        place.found = place.look().map_err(|errno| Failure::errno(errno, path))?;
        Ok(place)
    }

    pub fn name(&self) -> &Path {
        Path::new(&self.name)
    }

    /// What stands there now.
    pub fn look(&self) -> std::result::Result<Option<FileStat>, Errno> {
        match fstatat(&self.dir, self.name(), AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::ENOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Makes a rename survive a crash of the machine. A directory that may be written and not read cannot be synced.
    pub fn sync(&self) {
        let how = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        // The rename has happened: to answer with an error would be wrong about the file.
        let _unsynced = openat(&self.dir, ".", how, Mode::empty()).and_then(fsync);
    }
}

/// The directory and the last name of a path; a path that ends otherwise names a directory.
fn split<'t>(text: &'t Path, path: &Named) -> Result<(&'t Path, &'t OsStr)> {
    let bytes = text.as_os_str().as_bytes();
    let (parent, name) = match memchr::memrchr(b'/', bytes) {
        Some(0) => (&b"/"[..], &bytes[1..]),
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (&b"."[..], bytes),
    };
    if name.is_empty() || name == b"." || name == b".." {
        let message =
            format!("`{path}` names a directory (it ends with `/`, `.` or `..`); a file's own name is needed");
        return Err(Failure::new(Code::NotAFile, message));
    }
    Ok((Path::new(OsStr::from_bytes(parent)), OsStr::from_bytes(name)))
}
