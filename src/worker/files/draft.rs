//! A new version of a file, written beside it under a name of its own until it takes the file's place.
//!
//! A draft that is dropped is removed. One that a kill left behind is known by its name and removed by the next write
//! in that directory, a minute later at the earliest: a younger one may be someone's who is still writing.

use super::open::QUIET;
use super::place::Place;
use crate::sys::{Errno, attributes};
use nix::dir::Dir;
use nix::fcntl::{AtFlags, OFlag, RenameFlags, openat, renameat, renameat2};
use nix::sys::stat::{FileStat, Mode, fchmod, fstat, fstatat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchown, linkat, unlinkat};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

const PREFIX: &str = ".stockade-";
const SUFFIX: &str = ".tmp";

/// Seconds after which a draft has no writer any more.
const ABANDONED: i64 = 60;

/// Names looked at for abandoned drafts; a larger directory is cleaned as far as this.
const SWEPT: usize = 4096;

type Result<T> = std::result::Result<T, Errno>;

#[derive(Debug)]
pub struct Draft<'p> {
    place: &'p Place,
    name: String,
    pub file: File,
}

/// What happens to a file that stands in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    Replace,
    /// EEXIST.
    Keep,
}

impl<'p> Draft<'p> {
    /// Empty, with the mode a new file gets here.
    pub fn create(place: &'p Place, mode: Mode) -> Result<Draft<'p>> {
        sweep(place);
        loop {
            let name = format!("{PREFIX}{:016x}{SUFFIX}", RandomState::new().build_hasher().finish());
            let how = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | QUIET;
            match openat(&place.dir, name.as_str(), how, mode) {
                Ok(fd) => return Ok(Draft { place, name, file: fd.into() }),
                Err(Errno::EEXIST) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Gives the draft the owner, mode and attributes of the file it is to replace. Setuid and its like are not kept: a
    /// write takes them away (chmod(2)).
    pub fn resemble(&self, old: &File, stat: &FileStat, mode: Option<u32>) -> Result<()> {
        let own = fstat(&self.file)?;
        if (own.st_uid, own.st_gid) != (stat.st_uid, stat.st_gid) {
            fchown(&self.file, Some(Uid::from_raw(stat.st_uid)), Some(Gid::from_raw(stat.st_gid)))?;
        }
        self.set_mode(mode.unwrap_or(stat.st_mode))?;
        let names = match attributes::names(old.as_fd()) {
            Err(Errno::EOPNOTSUPP | Errno::EPERM | Errno::EACCES) => return Ok(()),
            names => names?,
        };
        // Security attributes are the kernel's to give.
        for name in names
            .iter()
            .filter(|name| name.to_bytes().starts_with(b"user.") || name.to_bytes() == b"system.posix_acl_access")
        {
            attributes::set(self.file.as_fd(), name, &attributes::value(old.as_fd(), name)?)?;
        }
        Ok(())
    }

    pub fn set_mode(&self, mode: u32) -> Result<()> {
        fchmod(&self.file, Mode::from_bits_truncate(mode & 0o777))
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        io::Write::write_all(&mut self.file, bytes)?;
        self.file.sync_all()
    }

    /// Takes the place. From here on the file is the new one.
    pub fn publish(self, existing: Existing) -> Result<()> {
        let (dir, from, to) = (&self.place.dir, Path::new(&self.name), self.place.name());
        match existing {
            Existing::Replace => renameat(dir, from, dir, to)?,
            Existing::Keep => match renameat2(dir, from, dir, to, RenameFlags::RENAME_NOREPLACE) {
                // A filesystem without the flag: a link is refused by what stands there just as well.
                Err(Errno::EINVAL | Errno::ENOSYS) => {
                    linkat(dir, from, dir, to, AtFlags::empty())?;
                    return Ok(());
                }
                renamed => renamed?,
            },
        }
        // Nothing has the draft's name now, so dropping it removes nothing.
        self.place.sync();
        Ok(())
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        // After a rename the name is gone and this finds nothing.
        let _gone = unlinkat(&self.place.dir, self.name.as_str(), UnlinkatFlags::NoRemoveDir);
    }
}

fn sweep(place: &Place) {
    let how = OFlag::O_RDONLY | OFlag::O_DIRECTORY | QUIET;
    let Ok(mut dir) = openat(&place.dir, ".", how, Mode::empty()).and_then(Dir::from_fd) else {
        return;
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    for entry in dir.iter().take(SWEPT).flatten() {
        let name = entry.file_name();
        if !is_draft(name.to_bytes()) {
            continue;
        }
        let stat = fstatat(&place.dir, name, AtFlags::AT_SYMLINK_NOFOLLOW);
        let age = |stat: FileStat| i64::try_from(now).unwrap_or_default() - stat.st_mtime;
        if stat.is_ok_and(|stat| stat.st_mode & libc::S_IFMT == libc::S_IFREG && age(stat) > ABANDONED) {
            let _in_use = unlinkat(&place.dir, name, UnlinkatFlags::NoRemoveDir);
        }
    }
}

fn is_draft(name: &[u8]) -> bool {
    let middle = name.strip_prefix(PREFIX.as_bytes()).and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes()));
    middle.is_some_and(|middle| middle.len() == 16 && middle.iter().all(u8::is_ascii_hexdigit))
}
