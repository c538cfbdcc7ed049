//! A broker's directory: made under another name, locked, and only then called what others look for.
//!
//! So a directory named `broker-…` whose lock is free belongs to a broker that died.

use super::id::new_id;
use crate::broker::output::folder::{Files, Folder};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, Flock, FlockArg, OFlag};
use nix::sys::stat::{Mode, fchmod, fstat, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, geteuid, unlinkat};
use sha2::{Digest, Sha256};
use std::fs::{DirBuilder, File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) const PREFIX: &str = "broker";
pub(super) const MAKING: &str = "new";
const LOCK: &str = "lock";

/// An agent's directory, ours alone.
#[derive(Debug)]
pub(super) struct Agent {
    pub folder: Folder,
    pub path: PathBuf,
}

/// A directory whose lock we hold: nobody else writes or deletes in it.
#[derive(Debug)]
pub(super) struct Locked {
    pub name: String,
    pub folder: Arc<Folder>,
    _lock: Flock<File>,
}

/// The agent's directory, made if need be; refused if it is not ours alone.
pub(super) fn open_agent(base: &Path, agent: &str) -> Result<Agent, String> {
    if agent.is_empty() || agent.starts_with('.') || agent.contains(['/', '\0']) {
        return Err(format!("`{agent}` cannot name a directory: no `/`, and no dot at the start"));
    }
    let path = base.join(agent);
    let about = |error: io::Error| format!("`{}`: {error}", path.display());
    DirBuilder::new().recursive(true).mode(0o700).create(base).map_err(about)?;
    match DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(about(error)),
        _ => {}
    }
    let folder = Folder::open(&path).map_err(about)?;
    let status = fstat(&folder.directory).map_err(|errno| about(errno.into()))?;
    if status.st_uid != geteuid().as_raw() {
        return Err(format!("`{}` belongs to user {}, not to the one running stockade", path.display(), status.st_uid));
    }
    if status.st_mode & 0o077 != 0 {
        fchmod(&folder.directory, Mode::S_IRWXU).map_err(|errno| about(errno.into()))?;
    }
    Ok(Agent { folder, path })
}

/// This broker's own directory.
pub(super) fn make(agent: &Agent, workspace: &Path) -> io::Result<Locked> {
    let id = new_id("");
    let name = format!("{}{}", place(workspace), id.trim_start_matches('_'));
    let making = format!("{MAKING}{id}");
    mkdirat(agent.folder.directory.as_fd(), making.as_str(), Mode::S_IRWXU)?;
    let folder = child(agent, &making)?;
    let lock = folder.regular(LOCK, OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL)?;
    let lock = Flock::lock(lock, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| errno)?;
    agent.folder.rename(&making, &name)?;
    Ok(Locked { name, folder: Arc::new(folder), _lock: lock })
}

/// How the directories of brokers in one workspace begin: what was done in one project is nothing to another.
pub(super) fn place(workspace: &Path) -> String {
    let hash = Sha256::digest(workspace.as_os_str().as_bytes());
    format!("{PREFIX}-{:02x}{:02x}{:02x}{:02x}-", hash[0], hash[1], hash[2], hash[3])
}

/// The directory of a broker that died; none while its lock is held, or when somebody else has just removed it.
pub(super) fn adopt(agent: &Agent, name: &str) -> io::Result<Option<Locked>> {
    let folder = child(agent, name)?;
    let lock = match folder.regular(LOCK, OFlag::O_RDWR) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let lock = match Flock::lock(lock, FlockArg::LockExclusiveNonblock) {
        Err((_, Errno::EWOULDBLOCK)) => return Ok(None),
        other => other.map_err(|(_, errno)| errno)?,
    };
    // Whoever had the lock before may have deleted everything, the lock's file included.
    let ours = fstat(&*lock)?;
    match fstatat(folder.directory.as_fd(), LOCK, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(named) if (named.st_dev, named.st_ino) == (ours.st_dev, ours.st_ino) => {}
        _ => return Ok(None),
    }
    Ok(Some(Locked { name: name.to_owned(), folder: Arc::new(folder), _lock: lock }))
}

/// Deletes a directory of ours in which only journal, socket and lock are left. Others in it stay, and so does it.
pub(super) fn remove(agent: &Agent, locked: &Locked) -> io::Result<()> {
    for name in [super::journal::NAME, crate::broker::control::NAME, LOCK] {
        locked.folder.remove(name)?;
    }
    Ok(unlinkat(agent.folder.directory.as_fd(), locked.name.as_str(), UnlinkatFlags::RemoveDir)?)
}

/// What is in a directory: names that are text, with what is known of them without following links.
pub(super) fn entries(path: &Path) -> io::Result<Vec<(String, Metadata)>> {
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        // One that vanished meanwhile, or whose name is not text, is none of ours.
        if let (Ok(name), Ok(about)) = (entry.file_name().into_string(), entry.metadata()) {
            entries.push((name, about));
        }
    }
    Ok(entries)
}

/// What a broker left that died while it made its directory.
pub(super) fn remove_unmade(agent: &Agent, name: &str) -> io::Result<()> {
    child(agent, name)?.remove(LOCK)?;
    Ok(unlinkat(agent.folder.directory.as_fd(), name, UnlinkatFlags::RemoveDir)?)
}

fn child(agent: &Agent, name: &str) -> io::Result<Folder> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let directory = nix::fcntl::openat(agent.folder.directory.as_fd(), name, flags, Mode::empty())?;
    Ok(Folder { directory })
}
