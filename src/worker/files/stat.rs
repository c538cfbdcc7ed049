//! `fs_stat`: about a path itself; a symlink is not followed.

use super::open;
use crate::worker::ask::{Facts, Stat, Terms};
use crate::worker::failure::{Failure, Result};
use crate::worker::names::{Named, spell};
use nix::fcntl::readlink;
use nix::sys::stat::{lstat, stat};

pub fn about(terms: &Terms, ask: &Stat) -> Result<Facts> {
    let path = Named::parse(&ask.path, terms)?;
    let found = lstat(path.path()).map_err(|errno| Failure::errno(errno, &path))?;
    let target = readlink(path.path()).ok();
    let target_type = target.as_ref().and_then(|_| stat(path.path()).ok()).map(|end| open::kind(&end));
    Ok(Facts {
        path: path.asked().to_owned(),
        kind: open::kind(&found),
        mode: octal(found.st_mode),
        size: open::size(&found),
        mtime_ms: open::modified(&found),
        atime_ms: open::milliseconds(found.st_atime, found.st_atime_nsec),
        uid: found.st_uid,
        gid: found.st_gid,
        nlink: found.st_nlink,
        target: target.map(|target| spell(target.as_ref())),
        target_type,
    })
}

/// Permission bits as people write them.
pub fn octal(mode: u32) -> String {
    format!("{:04o}", mode & 0o7777)
}
