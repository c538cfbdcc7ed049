//! Opening what is a regular file and nothing else, without ever waiting: a FIFO without a writer, a device or a lease
//! must not hold up the worker.

use crate::sys::Errno;
use crate::worker::ask::Kind;
use crate::worker::failure::{Code, Failure, Result};
use crate::worker::names::Named;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, openat};
use nix::sys::stat::{FileStat, Mode, fstat, fstatat};
use nix::sys::statfs::{self, FsType};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// Flags of every open: no wait, no controlling terminal, nothing inherited.
pub const QUIET: OFlag = OFlag::O_NONBLOCK.union(OFlag::O_NOCTTY).union(OFlag::O_CLOEXEC);

/// Filesystems whose files the kernel makes up while they are read: sizes mean nothing, reads may wait, and the
/// worker's own `/proc` would speak of the worker.
const MADE_UP: &[(FsType, &str)] = &[
    (statfs::PROC_SUPER_MAGIC, "procfs"),
    (statfs::SYSFS_MAGIC, "sysfs"),
    (statfs::DEBUGFS_MAGIC, "debugfs"),
    (statfs::TRACEFS_MAGIC, "tracefs"),
    (statfs::SECURITYFS_MAGIC, "securityfs"),
    (statfs::CGROUP_SUPER_MAGIC, "cgroup"),
    (statfs::CGROUP2_SUPER_MAGIC, "cgroup2"),
    (statfs::BPF_FS_MAGIC, "bpf"),
];

/// A regular file, open, as it was when it was opened.
#[derive(Debug)]
pub struct Opened {
    pub file: File,
    pub stat: FileStat,
}

pub fn for_reading(path: &Named) -> Result<Opened> {
    // A device is looked at before it is opened: opening one can act.
    let stat = fstatat(AT_FDCWD, path.path(), AtFlags::empty()).map_err(|errno| Failure::errno(errno, path))?;
    only_regular(&stat, path)?;
    open_at(AT_FDCWD, path.path(), OFlag::O_RDONLY, path)
}

/// Opens a name that was found to be a regular file a moment ago, and finds out again.
pub fn open_at(at: impl AsFd, name: &Path, how: OFlag, path: &Named) -> Result<Opened> {
    let fd = openat(at, name, how | QUIET, Mode::empty()).map_err(|errno| Failure::errno(errno, path))?;
    admit(fd, path)
}

/// Nothing but a stored, regular file, whatever was opened.
pub fn admit(fd: OwnedFd, path: &Named) -> Result<Opened> {
    let stat = fstat(&fd).map_err(|errno| Failure::errno(errno, path))?;
    only_regular(&stat, path)?;
    only_stored(&fd, path)?;
    Ok(Opened { file: fd.into(), stat })
}

pub fn only_regular(stat: &FileStat, path: &Named) -> Result<()> {
    let words = match kind(stat) {
        Kind::File => return Ok(()),
        Kind::Dir => "is a directory; `fs_list` lists it",
        Kind::Fifo => "is a pipe (FIFO); only regular files are read and written",
        Kind::Socket => "is a socket; only regular files are read and written",
        Kind::Block | Kind::Char => "is a device; only regular files are read and written",
        Kind::Symlink | Kind::Unknown => "is not a regular file",
    };
    Err(Failure::new(Code::NotAFile, format!("`{path}` {words}")).with("type", kind_name(kind(stat))))
}

fn only_stored(fd: impl AsFd, path: &Named) -> Result<()> {
    let about = statfs::fstatfs(fd).map_err(|errno| Failure::errno(errno, path))?;
    match MADE_UP.iter().find(|(kind, _)| *kind == about.filesystem_type()) {
        None => Ok(()),
        Some((_, name)) => {
            let message = format!("`{path}` is made up by the kernel ({name}), not stored; `run` a command to see it");
            Err(Failure::new(Code::NotAFile, message))
        }
    }
}

pub fn kind(stat: &FileStat) -> Kind {
    match stat.st_mode & libc::S_IFMT {
        libc::S_IFREG => Kind::File,
        libc::S_IFDIR => Kind::Dir,
        libc::S_IFLNK => Kind::Symlink,
        libc::S_IFIFO => Kind::Fifo,
        libc::S_IFSOCK => Kind::Socket,
        libc::S_IFBLK => Kind::Block,
        libc::S_IFCHR => Kind::Char,
        _ => Kind::Unknown,
    }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::File => "file",
        Kind::Dir => "dir",
        Kind::Symlink => "symlink",
        Kind::Fifo => "fifo",
        Kind::Socket => "socket",
        Kind::Block => "block",
        Kind::Char => "char",
        Kind::Unknown => "unknown",
    }
}

pub fn size(stat: &FileStat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or_default()
}

pub fn milliseconds(seconds: i64, nanoseconds: i64) -> i64 {
    seconds.saturating_mul(1000).saturating_add(nanoseconds / 1_000_000)
}

pub fn modified(stat: &FileStat) -> i64 {
    milliseconds(stat.st_mtime, stat.st_mtime_nsec)
}

/// The whole content, or `None` past `most` bytes: a file may grow while it is read.
pub fn load(opened: &mut Opened, most: u64, path: &Named) -> Result<Option<Vec<u8>>> {
    let size = size(&opened.stat);
    if size > most {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default().saturating_add(1));
    let mut limited = (&mut opened.file).take(most.saturating_add(1));
    limited.read_to_end(&mut bytes).map_err(|error| io(&error, path))?;
    Ok(if bytes.len() as u64 > most { None } else { Some(bytes) })
}

pub fn io(error: &std::io::Error, path: &Named) -> Failure {
    Failure::errno(Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)), path)
}

pub fn sha256(bytes: &[u8]) -> String {
    let digits = |byte: &u8| [byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).unwrap_or('0'));
    Sha256::digest(bytes).iter().flat_map(digits).collect()
}
