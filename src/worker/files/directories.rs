//! `fs_mkdir`, and the directories above a file that is to be written.

use crate::sys::Errno;
use crate::worker::ask::{MadeDir, MakeDir, Terms};
use crate::worker::failure::{Code, Failure, Result};
use crate::worker::names::Named;
use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::sys::stat::{Mode, SFlag, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Before the umask.
const USUAL: Mode = Mode::S_IRWXU.union(Mode::S_IRWXG).union(Mode::S_IRWXO);

pub fn make(terms: &Terms, ask: &MakeDir) -> Result<MadeDir> {
    let path = Named::parse(&ask.path, terms)?;
    if ask.parents.unwrap_or(true) {
        let parents = Parents::down_to(&path, path.path())?;
        let created = !parents.made.is_empty();
        parents.keep();
        return Ok(MadeDir { created });
    }
    match mkdirat(AT_FDCWD, path.path(), USUAL) {
        Ok(()) => Ok(MadeDir { created: true }),
        Err(Errno::ENOENT) => {
            let message = format!("the directory above `{path}` does not exist; `parents` makes it too");
            Err(Failure::new(Code::NotFound, message).with("errno", "ENOENT"))
        }
        Err(errno) => Err(Failure::errno(errno, &path)),
    }
}

/// Directories that were made for something; dropped before it succeeded, they are removed again.
#[derive(Debug)]
pub struct Parents {
    made: Vec<PathBuf>,
}

impl Parents {
    /// All directories above the path.
    pub fn make(path: &Named) -> Result<Parents> {
        match path.path().parent() {
            Some(parent) => Parents::down_to(path, parent),
            None => Ok(Parents { made: Vec::new() }),
        }
    }

    pub fn keep(mut self) {
        self.made.clear();
    }

    fn down_to(path: &Named, last: &Path) -> Result<Parents> {
        let mut parents = Parents { made: Vec::new() };
        // Upwards to what exists, then downwards: the top of the path may be seen and not written.
        let mut missing = Vec::new();
        for prefix in prefixes(last).into_iter().rev() {
            match fstatat(AT_FDCWD, prefix, AtFlags::empty()) {
                Ok(stat) if SFlag::from_bits_truncate(stat.st_mode & libc::S_IFMT) == SFlag::S_IFDIR => break,
                Ok(_) => return Err(in_the_way(path, prefix)),
                Err(Errno::ENOENT) => missing.push(prefix),
                Err(Errno::ENOTDIR) => {}
                Err(errno) => return Err(Failure::errno(errno, path)),
            }
        }
        for prefix in missing.into_iter().rev() {
            match mkdirat(AT_FDCWD, prefix, USUAL) {
                Ok(()) => parents.made.push(prefix.to_owned()),
                // Made by someone else meanwhile, or `..` and `.` of a directory made a moment ago.
                Err(Errno::EEXIST) if prefix.is_dir() => {}
                Err(Errno::EEXIST) => return Err(in_the_way(path, prefix)),
                Err(errno) => return Err(Failure::errno(errno, path)),
            }
        }
        Ok(parents)
    }
}

impl Drop for Parents {
    fn drop(&mut self) {
        for dir in self.made.iter().rev() {
            // One that is no longer empty is somebody's.
            let _in_use = unlinkat(AT_FDCWD, dir, UnlinkatFlags::RemoveDir);
        }
    }
}

/// `/a`, `/a/b`, `/a/b/c` of `/a/b/c`, as written: `..` is the kernel's to resolve.
fn prefixes(path: &Path) -> Vec<&Path> {
    let bytes = path.as_os_str().as_bytes();
    let ends = (1..=bytes.len()).filter(|end| (*end == bytes.len() || bytes[*end] == b'/') && bytes[*end - 1] != b'/');
    ends.map(|end| Path::new(OsStr::from_bytes(&bytes[..end]))).collect()
}

fn in_the_way(path: &Named, prefix: &Path) -> Failure {
    let what = if std::fs::symlink_metadata(prefix).is_ok_and(|found| found.is_symlink()) {
        "a symbolic link that leads to no directory"
    } else {
        "not a directory"
    };
    let message = format!("`{path}`: `{}` exists and is {what}", crate::worker::names::spell(prefix));
    Failure::new(Code::AlreadyExists, message)
}
