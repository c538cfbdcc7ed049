//! The file that is about to change, open and locked, so that two workers' changes of one file follow each other.
//!
//! The lock is flock(2) on the file itself: it needs no name beside the file and ends with the process. A program of
//! the agent's may hold one for ever, so waiting has an end.

use super::open::{self, Opened, QUIET};
use super::place::Place;
use crate::sys::Errno;
use crate::worker::failure::{Code, Failure, Result};
use crate::worker::names::Named;
use nix::fcntl::{Flock, FlockArg, OFlag, openat};
use nix::sys::stat::{FileStat, Mode, fstat};
use std::fs::File;
use std::time::{Duration, Instant};

/// Longer than any write of ours takes.
const PATIENCE: Duration = Duration::from_secs(2);

const BETWEEN_TRIES: Duration = Duration::from_millis(2);

/// A regular file that a shell could write, as it was under the lock.
#[derive(Debug)]
pub struct Held {
    guard: Guard,
    pub stat: FileStat,
    pub access: Access,
}

#[derive(Debug)]
enum Guard {
    Locked(Flock<File>),
    /// On a filesystem without locks.
    Open(File),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    ReadWrite,
    /// Its permissions let it be written and not read.
    WriteOnly,
    /// A program that is running: it can be replaced and not written.
    Executing,
}

impl Held {
    /// `None`: nothing stands there.
    pub fn take(place: &Place, path: &Named) -> Result<Option<Held>> {
        let until = Instant::now() + PATIENCE;
        loop {
            let Some(found) = place.look().map_err(|errno| Failure::errno(errno, path))? else {
                return Ok(None);
            };
            open::only_regular(&found, path)?;
            let (opened, access) = match open_for_writing(place, path) {
                Ok(opened) => opened,
                // Replaced or removed between the two looks.
                Err(failure) if failure.code == Code::NotFound && Instant::now() < until => continue,
                Err(failure) => return Err(failure),
            };
            let guard = lock(opened.file, until, path)?;
            let stat = fstat(guard.file()).map_err(|errno| Failure::errno(errno, path))?;
            let now = place.look().map_err(|errno| Failure::errno(errno, path))?;
            if now.is_some_and(|now| same_file(&now, &stat)) {
                return Ok(Some(Held { guard, stat, access }));
            }
            if Instant::now() >= until {
                return Err(Failure::new(Code::Conflict, format!("`{path}` is replaced again and again; try again")));
            }
        }
    }

    pub fn file(&self) -> &File {
        self.guard.file()
    }

    /// Whether the name still leads to this file, unchanged since it was locked.
    pub fn still(&self, place: &Place) -> bool {
        place
            .look()
            .is_ok_and(|now| now.is_some_and(|now| same_file(&now, &self.stat) && same_content(&now, &self.stat)))
    }
}

impl Guard {
    fn file(&self) -> &File {
        match self {
            Guard::Locked(file) => file,
            Guard::Open(file) => file,
        }
    }
}

/// The rename that replaces a file asks nothing of the file itself; this open asks what a shell's `>` would.
fn open_for_writing(place: &Place, path: &Named) -> Result<(Opened, Access)> {
    let open = |how| openat(&place.dir, place.name(), how | OFlag::O_NOFOLLOW | QUIET, Mode::empty());
    let (opened, access) = match open(OFlag::O_RDWR) {
        Err(Errno::ETXTBSY) => (open(OFlag::O_RDONLY), Access::Executing),
        Err(Errno::EACCES) => (open(OFlag::O_WRONLY), Access::WriteOnly),
        opened => (opened, Access::ReadWrite),
    };
    let fd = opened.map_err(|errno| Failure::errno(errno, path))?;
    Ok((open::admit(fd, path)?, access))
}

fn lock(mut file: File, until: Instant, path: &Named) -> Result<Guard> {
    loop {
        file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(locked) => return Ok(Guard::Locked(locked)),
            Err((file, Errno::EWOULDBLOCK | Errno::EINTR)) => file,
            Err((file, _)) => return Ok(Guard::Open(file)),
        };
        if Instant::now() >= until {
            let message =
                format!("`{path}` is locked by another process (flock); try again when it is done with the file");
            return Err(Failure::new(Code::Conflict, message));
        }
        std::thread::sleep(BETWEEN_TRIES);
    }
}

pub fn same_file(one: &FileStat, other: &FileStat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

fn same_content(one: &FileStat, other: &FileStat) -> bool {
    let times = |stat: &FileStat| (stat.st_size, stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec);
    times(one) == times(other)
}
