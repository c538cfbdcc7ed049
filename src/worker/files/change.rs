//! One change of one file: old or new, never half.
//!
//! A draft is written, synced and renamed over the file. Where a new file could not be what the old one was (it has
//! other hard links, another owner, or stands where no draft may) the file is written in place, as a shell would:
//! room is reserved first and a failure puts the old bytes back, but a kill in that moment can leave a part.
//! `Written::atomic` says which it was.

use super::draft::{Draft, Existing};
use super::lock::{Access, Held};
use super::open::{self, Opened};
use super::place::Place;
use crate::sys::Errno;
use crate::worker::ask::{Previous, Terms, Written};
use crate::worker::failure::{Code, Failure, Result};
use crate::worker::names::Named;
use nix::fcntl::{FallocateFlags, FcntlArg, OFlag, fallocate, fcntl};
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::stat::{Mode, fchmod};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;

/// A file that others replace faster than this is not ours to change.
const ATTEMPTS: usize = 8;

/// What stands where the change goes.
#[derive(Debug, Clone, Copy)]
pub enum Old<'b> {
    Absent,
    Content(&'b [u8]),
    /// Larger than `max_file_bytes`.
    Large(u64),
    Unreadable,
}

/// What is to stand there.
#[derive(Debug)]
pub enum New {
    Content(Vec<u8>),
    /// Added to the end of a file too large to be held.
    Tail(Vec<u8>),
    /// Nothing is written.
    Same,
}

/// Carries out what `make` says of the content found; it is asked again if the file changed meanwhile. `None`: `Same`.
pub fn change(
    terms: &Terms,
    path: &Named,
    mode: Option<u32>,
    mut make: impl FnMut(Old<'_>) -> Result<New>,
) -> Result<Option<Written>> {
    for _ in 0..ATTEMPTS {
        let place = Place::find(path)?;
        let held = Held::take(&place, path)?;
        let content = held.as_ref().map(|held| content(held, terms, path)).transpose()?.flatten();
        let old = Old::of(held.as_ref(), content.as_deref());
        let new = make(old)?;
        let attempt = Attempt { terms, path, place: &place, held: held.as_ref(), old, mode };
        let atomic = match &new {
            New::Same => return Ok(None),
            New::Content(bytes) => attempt.replace(bytes)?,
            New::Tail(bytes) => attempt.append(bytes)?,
        };
        let Some(atomic) = atomic else {
            continue;
        };
        let (bytes, sha256) = match &new {
            New::Content(bytes) => (bytes.len() as u64, Some(open::sha256(bytes))),
            New::Tail(tail) => (old.size() + tail.len() as u64, None),
            New::Same => (0, None),
        };
        let previous =
            held.map(|held| Previous { size: open::size(&held.stat), mode: held.stat.st_mode & 0o777, content });
        return Ok(Some(Written {
            bytes,
            sha256,
            created: previous.is_none(),
            atomic: atomic == Way::Draft,
            previous,
        }));
    }
    Err(Failure::new(Code::Conflict, format!("`{path}` is changed by someone else again and again; try again")))
}

impl<'b> Old<'b> {
    fn of(held: Option<&Held>, content: Option<&'b [u8]>) -> Old<'b> {
        match (held, content) {
            (None, _) => Old::Absent,
            (Some(_), Some(content)) => Old::Content(content),
            (Some(held), None) if held.access == Access::WriteOnly => Old::Unreadable,
            (Some(held), None) => Old::Large(open::size(&held.stat)),
        }
    }

    fn size(self) -> u64 {
        match self {
            Old::Absent | Old::Unreadable => 0,
            Old::Content(bytes) => bytes.len() as u64,
            Old::Large(size) => size,
        }
    }
}

fn content(held: &Held, terms: &Terms, path: &Named) -> Result<Option<Vec<u8>>> {
    if held.access == Access::WriteOnly {
        return Ok(None);
    }
    let file = held.file().try_clone().map_err(|error| open::io(&error, path))?;
    open::load(&mut Opened { file, stat: held.stat }, terms.max_file_bytes, path)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Draft,
    InPlace,
}

struct Attempt<'a> {
    terms: &'a Terms,
    path: &'a Named<'a>,
    place: &'a Place,
    held: Option<&'a Held>,
    old: Old<'a>,
    mode: Option<u32>,
}

impl Attempt<'_> {
    /// `None`: the file changed meanwhile and nothing was written.
    fn replace(&self, new: &[u8]) -> Result<Option<Way>> {
        let most = self.terms.max_file_bytes;
        if new.len() as u64 > most {
            let message = format!(
                "`{}` would have {} bytes; at most {most} (`max_file_bytes`) are written",
                self.path,
                new.len()
            );
            return Err(Failure::new(Code::TooLarge, message).with("max_file_bytes", most));
        }
        self.within_limit(new.len() as u64)?;
        let Some(held) = self.held else {
            return self.create(new);
        };
        if held.stat.st_nlink > 1 {
            return self.in_place(held, new);
        }
        let drafted = Draft::create(self.place, Mode::from_bits_truncate(0o600))
            .and_then(|draft| draft.resemble(held.file(), &held.stat, self.mode).map(|()| draft));
        let mut draft = match drafted {
            Ok(draft) => draft,
            // No name may be made here, or the old owner or attributes may not be given.
            Err(Errno::EACCES | Errno::EPERM | Errno::EROFS | Errno::EINVAL | Errno::EOPNOTSUPP) => {
                return self.in_place(held, new);
            }
            Err(errno) => return Err(self.failed(errno)),
        };
        draft.write(new).map_err(|error| open::io(&error, self.path))?;
        if !held.still(self.place) {
            return Ok(None);
        }
        match draft.publish(Existing::Replace) {
            Ok(()) => Ok(Some(Way::Draft)),
            // A mount point: a file that the policy opened by itself.
            Err(Errno::EBUSY | Errno::EXDEV) => self.in_place(held, new),
            Err(errno) => Err(self.failed(errno)),
        }
    }

    fn create(&self, new: &[u8]) -> Result<Option<Way>> {
        // The kernel takes the umask and the directory's default ACL from this, as for any new file.
        let usual = Mode::from_bits_truncate(0o666);
        let mut draft = Draft::create(self.place, usual).map_err(|errno| self.failed(errno))?;
        if let Some(mode) = self.mode {
            draft.set_mode(mode).map_err(|errno| self.failed(errno))?;
        }
        draft.write(new).map_err(|error| open::io(&error, self.path))?;
        match draft.publish(Existing::Keep) {
            Ok(()) => Ok(Some(Way::Draft)),
            Err(Errno::EEXIST) => Ok(None),
            Err(errno) => Err(self.failed(errno)),
        }
    }

    fn in_place(&self, held: &Held, new: &[u8]) -> Result<Option<Way>> {
        if held.access == Access::Executing {
            return Err(self.failed(Errno::ETXTBSY));
        }
        let Old::Content(old) = self.old else {
            let message = format!(
                "`{}` can only be written in place (hard links, owner or directory), and is too large or unreadable to \
                 be put back on failure",
                self.path
            );
            return Err(Failure::new(Code::TooLarge, message).with("size", self.old.size()));
        };
        if !held.still(self.place) {
            return Ok(None);
        }
        self.chmod(held)?;
        let file = held.file();
        overwrite(file, old, new).map_err(|error| {
            // The old bytes go where they were, so this needs no room.
            let _restored = overwrite(file, &[], old);
            open::io(&error, self.path)
        })?;
        Ok(Some(Way::InPlace))
    }

    /// The end of a large file, as a shell's `>>`; a failure takes it off again.
    fn append(&self, tail: &[u8]) -> Result<Option<Way>> {
        let (Some(held), size) = (self.held, self.old.size()) else {
            return Ok(None);
        };
        if held.access == Access::Executing {
            return Err(self.failed(Errno::ETXTBSY));
        }
        self.within_limit(size + tail.len() as u64)?;
        if !held.still(self.place) {
            return Ok(None);
        }
        self.chmod(held)?;
        // A program may be adding to the file too: with this flag the kernel finds the end anew for every write.
        let mut file = held.file();
        fcntl(file, FcntlArg::F_SETFL(OFlag::O_APPEND | OFlag::O_NONBLOCK)).map_err(|errno| self.failed(errno))?;
        let written = file.write_all(tail).and_then(|()| file.sync_data());
        written.map_err(|error| {
            let now = file.metadata().map_or(u64::MAX, |now| now.len());
            // Longer than ours can be: others' bytes are among it.
            if now <= size + tail.len() as u64 {
                let _restored = file.set_len(size);
            }
            open::io(&error, self.path)
        })?;
        Ok(Some(Way::InPlace))
    }

    fn chmod(&self, held: &Held) -> Result<()> {
        match self.mode {
            Some(mode) if mode != held.stat.st_mode & 0o7777 => {
                fchmod(held.file(), Mode::from_bits_truncate(mode)).map_err(|errno| self.failed(errno))
            }
            _ => Ok(()),
        }
    }

    /// Asked before, because passing it raises SIGXFSZ.
    fn within_limit(&self, size: u64) -> Result<()> {
        let (limit, _) = getrlimit(Resource::RLIMIT_FSIZE).map_err(|errno| self.failed(errno))?;
        if size <= limit { Ok(()) } else { Err(self.failed(Errno::EFBIG).with("limit", limit)) }
    }

    fn failed(&self, errno: Errno) -> Failure {
        Failure::errno(errno, self.path)
    }
}

/// Writes what differs: an append to a file with hard links touches no byte of the old.
fn overwrite(file: &File, old: &[u8], new: &[u8]) -> std::io::Result<()> {
    let same = old.iter().zip(new).take_while(|(one, other)| one == other).count();
    if new.len() > old.len() && !old.is_empty() {
        let (from, more) = (old.len() as i64, (new.len() - old.len()) as i64);
        match fallocate(file, FallocateFlags::FALLOC_FL_KEEP_SIZE, from, more) {
            Ok(()) | Err(Errno::EOPNOTSUPP | Errno::ENOSYS) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    file.write_all_at(&new[same..], same as u64)?;
    file.set_len(new.len() as u64)?;
    file.sync_all()
}
