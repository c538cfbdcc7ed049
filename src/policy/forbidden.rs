//! Directories that no policy can grant, and why.
//!
//! Everything here is asked of canonical paths only; [`super::roots`] makes them so. A directory that is
//! mounted a second time elsewhere has another path but the same inode, so both are compared.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::Operator;

/// Never read-write, nor anything below them: the system's own files, and the kernel's.
const SYSTEM: [&str; 16] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/var/run",
    "/var/lib/docker",
    "/var/lib/containerd",
    "/boot",
];
/// Below `SYSTEM`, and still where people keep their own source trees.
const SOURCES: [&str; 2] = ["/usr/src", "/usr/local/src"];
/// Never read-write themselves, because they hold more than one thing; directories in them may be.
const SHARED: [&str; 16] = [
    "/",
    "/home",
    "/root",
    "/tmp",
    "/var",
    "/var/tmp",
    "/var/lib",
    "/var/log",
    "/var/cache",
    "/var/spool",
    "/opt",
    "/srv",
    "/mnt",
    "/media",
    "/usr/src",
    "/usr/local/src",
];
/// Not even read-only: sockets, devices and other processes are there.
const LIVE: [&str; 5] = ["/proc", "/sys", "/dev", "/run", "/var/run"];

/// Why a directory is everyone's, and so no single agent's to write.
pub(super) fn shared_by_all(operator: &Operator, path: &Path) -> Option<String> {
    let below = |list: &[&str]| list.iter().any(|entry| path.starts_with(entry));
    let one_of = |list: &[&str]| list.iter().any(|entry| same(path, Path::new(entry)));
    if one_of(&SHARED) || one_of(&SYSTEM) || (below(&SYSTEM) && !below(&SOURCES)) {
        return Some("is a system directory".to_owned());
    }
    let home = operator.homes.iter().find(|home| holds(path, home))?;
    let how = if same(path, home) { "is" } else { "holds" };
    Some(format!("{how} your home directory, with your keys in it"))
}

pub(super) fn read_write(operator: &Operator, files: &[PathBuf], path: &Path) -> Option<(String, String)> {
    if let Some(reason) = shared_by_all(operator, path) {
        return Some((
            format!("{reason}, and cannot be read-write"),
            "grant the directory of one project instead".to_owned(),
        ));
    }
    if let Some(file) = files.iter().find(|file| holds(path, file)) {
        let message = format!("holds this policy (`{}`), and the agent could rewrite it", file.display());
        return Some((message, "keep the policy outside every read-write root".to_owned()));
    }
    if operator.program.as_ref().is_some_and(|program| holds(path, program)) {
        return Some((
            "holds the stockade program, and the agent could replace it".to_owned(),
            "install stockade elsewhere".to_owned(),
        ));
    }
    state(operator, path)
}

pub(super) fn read_only(operator: &Operator, path: &Path) -> Option<(String, String)> {
    if same(path, Path::new("/")) {
        return Some((
            "is the whole host".to_owned(),
            "name the directories the agent needs; `/usr` is there without asking".to_owned(),
        ));
    }
    if same(path, Path::new("/etc")) {
        return Some((
            "holds the host's passwords and keys".to_owned(),
            "what programs need of it is there without asking; name single directories in it".to_owned(),
        ));
    }
    if LIVE.iter().any(|entry| path.starts_with(entry) || same(path, Path::new(entry))) {
        return Some((
            "holds the host's sockets, devices or processes".to_owned(),
            "the agent has its own `/proc` and `/dev`; leave it out".to_owned(),
        ));
    }
    state(operator, path)
}

fn state(operator: &Operator, path: &Path) -> Option<(String, String)> {
    let state = operator.states.iter().find(|state| holds(path, state) || holds(state, path))?;
    let message = format!("would show the agent stockade's own state (`{}`)", state.display());
    Some((message, "grant directories beside it, not around it".to_owned()))
}

fn holds(outer: &Path, inner: &Path) -> bool {
    let wanted = inode(outer);
    inner.ancestors().any(|above| outer == above || (wanted.is_some() && wanted == inode(above)))
}

fn same(one: &Path, other: &Path) -> bool {
    one == other || matches!((inode(one), inode(other)), (Some(one), Some(other)) if one == other)
}

fn inode(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).map(|found| (found.dev(), found.ino())).ok()
}
