//! `fs_move`: a rename where one is possible; across mounts a file is copied, synced, put in place and then removed.
//!
//! Names are moved, not what they lead to: a symlink moves as itself. A directory is not copied across mounts, because
//! that could not be all or nothing.

use super::draft::{Draft, Existing};
use super::lock::same_file;
use super::open;
use super::place::Place;
use crate::sys::Errno;
use crate::worker::ask::{Kind, Move, Moved, Terms};
use crate::worker::failure::{Code, Failure, Result};
use crate::worker::names::Named;
use nix::fcntl::{AT_FDCWD, OFlag, RenameFlags, readlinkat, renameat2};
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::stat::{FileStat, Mode, fstat, futimens, lstat};
use nix::sys::time::TimeSpec;
use nix::unistd::{UnlinkatFlags, symlinkat, unlinkat};
use std::io;
use std::path::Path;

/// Copied across mounts in one call: some seconds of a disk. More is a command's work, where it can be watched.
const COPIED: u64 = 1 << 30;

pub fn relocate(terms: &Terms, ask: &Move) -> Result<Moved> {
    let from = Named::parse(&ask.from, terms)?;
    let to = Named::parse(&ask.to, terms)?;
    let existing = if ask.overwrite { Existing::Replace } else { Existing::Keep };
    let source = lstat(from.path()).map_err(|errno| Failure::errno(errno, &from))?;
    if existing == Existing::Replace && lstat(to.path()).is_ok_and(|target| same_file(&source, &target)) {
        return onto_itself(&from, &to);
    }
    let flags = match existing {
        Existing::Replace => RenameFlags::empty(),
        Existing::Keep => RenameFlags::RENAME_NOREPLACE,
    };
    match renameat2(AT_FDCWD, from.path(), AT_FDCWD, to.path(), flags) {
        Ok(()) => {
            sync_above(&from);
            sync_above(&to);
            Ok(Moved { moved: true, copied: false })
        }
        Err(Errno::EXDEV) => across(&from, &to, &source, existing),
        Err(errno) => Err(refused(errno, &from, &to, existing)),
    }
}

/// Two names of one file: rename(2) would leave both. The old name goes; one and the same name stays.
fn onto_itself(from: &Named, to: &Named) -> Result<Moved> {
    let (one, other) = (Place::of_link(from)?, Place::of_link(to)?);
    let dir = |place: &Place| fstat(&place.dir).map_err(|errno| Failure::errno(errno, from));
    if !same_file(&dir(&one)?, &dir(&other)?) || one.name != other.name {
        unlinkat(&one.dir, one.name(), UnlinkatFlags::NoRemoveDir).map_err(|errno| Failure::errno(errno, from))?;
        one.sync();
    }
    Ok(Moved { moved: true, copied: false })
}

fn across(from: &Named, to: &Named, source: &FileStat, existing: Existing) -> Result<Moved> {
    let kind = open::kind(source);
    if kind == Kind::Dir && is_mount_point(from, source) {
        return Err(refused(Errno::EBUSY, from, to, existing));
    }
    if kind == Kind::Dir {
        let message = format!(
            "`{from}` is a directory and `{to}` lies on another mount; only files move across: `run` `mv` instead"
        );
        return Err(Failure::invalid(message));
    }
    let (start, end) = (Place::of_link(from)?, Place::of_link(to)?);
    match (end.found.as_ref().map(open::kind), existing) {
        (Some(_), Existing::Keep) => return Err(refused(Errno::EEXIST, from, to, existing)),
        (Some(Kind::Dir), Existing::Replace) => return Err(refused(Errno::EISDIR, from, to, existing)),
        (Some(_) | None, Existing::Replace) | (None, Existing::Keep) => {}
    }
    if kind == Kind::Symlink {
        copy_link(from, to, &start, &end, existing)?;
    } else {
        open::only_regular(source, from)?;
        copy(from, to, &start, &end, existing)?;
    }
    end.sync();
    start.sync();
    Ok(Moved { moved: true, copied: true })
}

/// The root, or the top of another filesystem than the directory above it.
fn is_mount_point(path: &Named, found: &FileStat) -> bool {
    lstat(&path.path().join("..")).is_ok_and(|above| above.st_dev != found.st_dev || same_file(&above, found))
}

fn copy(from: &Named, to: &Named, start: &Place, end: &Place, existing: Existing) -> Result<()> {
    let mut opened = open::open_at(&start.dir, start.name(), OFlag::O_RDONLY | OFlag::O_NOFOLLOW, from)?;
    let size = open::size(&opened.stat);
    let (limit, _) = getrlimit(Resource::RLIMIT_FSIZE).map_err(|errno| Failure::errno(errno, to))?;
    if size > COPIED.min(limit) {
        let message = format!("`{from}` has {size} bytes; at most {COPIED} move across mounts: `run` `mv` instead");
        return Err(Failure::new(Code::TooLarge, message).with("size", size));
    }
    let mut draft = Draft::create(end, Mode::from_bits_truncate(0o600)).map_err(|errno| Failure::errno(errno, to))?;
    let copied = io::copy(&mut io::Read::take(&mut opened.file, size + 1), &mut draft.file);
    let copied =
        copied.and_then(|count| draft.file.sync_all().map(|()| count)).map_err(|error| open::io(&error, to))?;
    // The owner is whoever may write there; everything else comes along where the other filesystem can hold it.
    let _partly = draft.resemble(&opened.file, &opened.stat, None);
    draft.set_mode(opened.stat.st_mode).map_err(|errno| Failure::errno(errno, to))?;
    let time = |seconds, nanoseconds| TimeSpec::new(seconds, nanoseconds);
    let (accessed, modified) =
        (time(opened.stat.st_atime, opened.stat.st_atime_nsec), time(opened.stat.st_mtime, opened.stat.st_mtime_nsec));
    futimens(&draft.file, &accessed, &modified).map_err(|errno| Failure::errno(errno, to))?;
    let now = start.look().map_err(|errno| Failure::errno(errno, from))?;
    let unchanged =
        now.is_some_and(|now| same_file(&now, &opened.stat) && now.st_mtime_nsec == opened.stat.st_mtime_nsec);
    if copied != size || !unchanged {
        return Err(Failure::new(Code::Conflict, format!("`{from}` changed while it was copied; nothing was moved")));
    }
    draft.publish(existing).map_err(|errno| refused(errno, from, to, existing))?;
    remove(start, from, end)
}

fn copy_link(from: &Named, to: &Named, start: &Place, end: &Place, existing: Existing) -> Result<()> {
    let target = readlinkat(&start.dir, start.name()).map_err(|errno| Failure::errno(errno, from))?;
    if end.found.is_some() && existing == Existing::Replace {
        unlinkat(&end.dir, end.name(), UnlinkatFlags::NoRemoveDir).map_err(|errno| Failure::errno(errno, to))?;
    }
    symlinkat(Path::new(&target), &end.dir, end.name()).map_err(|errno| refused(errno, from, to, existing))?;
    remove(start, from, end)
}

/// The original, once the copy stands; if it may not go, the copy goes.
fn remove(start: &Place, from: &Named, end: &Place) -> Result<()> {
    unlinkat(&start.dir, start.name(), UnlinkatFlags::NoRemoveDir).map_err(|errno| {
        let _removed = unlinkat(&end.dir, end.name(), UnlinkatFlags::NoRemoveDir);
        Failure::errno(errno, from)
    })
}

fn refused(errno: Errno, from: &Named, to: &Named, existing: Existing) -> Failure {
    let (code, words) = match (errno, existing) {
        (Errno::EEXIST, Existing::Keep) => {
            (Code::AlreadyExists, "something stands at `to`; `overwrite` replaces a file".to_owned())
        }
        (Errno::EEXIST | Errno::ENOTEMPTY | Errno::EISDIR | Errno::ENOTDIR, _) if lstat(to.path()).is_ok() => (
            Code::AlreadyExists,
            "what stands at `to` cannot be replaced by it (a directory, or of another kind); name a new path"
                .to_owned(),
        ),
        (Errno::EINVAL, _) => {
            (Code::InvalidArgument, "a directory cannot move into itself, and `.` and `..` do not move".to_owned())
        }
        (Errno::EBUSY, _) => (
            Code::PathNotAllowed,
            "one of them is a mount point of the cell; what lies inside it can be moved".to_owned(),
        ),
        (Errno::ENOENT, _) => return if lstat(from.path()).is_ok() { above_missing(to) } else { from.absent() },
        (errno, _) => {
            let Failure { code, .. } = Failure::errno(errno, to);
            (code, errno.desc().to_owned())
        }
    };
    Failure::new(code, format!("`{from}` was not moved to `{to}`: {words}")).with("errno", format!("{errno:?}"))
}

fn above_missing(to: &Named) -> Failure {
    let message = format!("the directory that `{to}` would stand in does not exist; `fs_mkdir` makes it");
    Failure::new(Code::NotFound, message).with("errno", "ENOENT")
}

fn sync_above(path: &Named) {
    // The rename has happened; a directory that cannot be opened cannot be synced either.
    if let Ok(place) = Place::of_link(path) {
        place.sync();
    }
}
