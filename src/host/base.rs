//! Where in a hierarchy cells may be made. Reads and access checks only; what a base still needs
//! (a controller switched on, a move to a leaf, a scope from systemd) is carried out once, at
//! start, by `launch::cgroup::prepare`.
//!
//! v1: our own group, or the directory `stockade-<uid>` that an operator handed to this user.
//! v2 forbids processes beside limited children, so our own group rarely serves as it is:
//! 1. it holds only us: move to a leaf;
//! 2. root: the nearest ancestor that already passes our controllers down, else the real root;
//! 3. the user's systemd manager gives us a scope;
//! 4. an ancestor, or `stockade-<uid>`, that is ours and passes the controllers down.

use std::fs;
use std::path::{Path, PathBuf};

use nix::fcntl::AtFlags;
use nix::unistd::{AccessFlags, faccessat};

use super::cgroup::{Base, Controller, Hierarchy, Version, list};

/// Who asks. A value, so that tests can ask as somebody else.
#[derive(Debug, Clone)]
pub struct Asker {
    pub uid: u32,
    /// Our program, `/proc/self/exe`: processes that run it count as us.
    pub program: PathBuf,
    /// `$XDG_RUNTIME_DIR`, or where systemd would put it.
    pub runtime: PathBuf,
}

pub fn choose(hierarchy: &Hierarchy, asker: &Asker) -> Base {
    match hierarchy.version {
        Version::V1 => choose_v1(hierarchy, asker),
        Version::V2 => choose_v2(hierarchy, asker),
    }
}

/// The group a root operator makes for an ordinary user.
pub fn delegated(hierarchy: &Hierarchy, uid: u32) -> PathBuf {
    hierarchy.mount.join(format!("stockade-{uid}"))
}

fn choose_v1(hierarchy: &Hierarchy, asker: &Asker) -> Base {
    let delegated = delegated(hierarchy, asker.uid);
    let candidates = hierarchy.own.iter().chain([&delegated]);
    match candidates.into_iter().find(|path| may_make_in(path)) {
        Some(path) => Base::Ready { path: path.clone() },
        None => Base::Closed {
            why: format!(
                "user {} may not make groups in {}, and {} is not theirs",
                asker.uid,
                hierarchy.own.as_deref().unwrap_or(&hierarchy.mount).display(),
                delegated.display()
            ),
        },
    }
}

fn choose_v2(hierarchy: &Hierarchy, asker: &Asker) -> Base {
    let wanted = &hierarchy.controllers;
    let Some(own) = &hierarchy.own else {
        return Base::Closed { why: format!("our own group is outside {}", hierarchy.mount.display()) };
    };
    if may_settle(own, wanted, asker) {
        return Base::Settle { path: own.clone() };
    }
    if asker.uid != 0 {
        let sockets = manager_sockets(asker);
        if !sockets.is_empty() {
            return Base::Scope { sockets };
        }
    }
    let ancestors = own.ancestors().take_while(|path| path.starts_with(&hierarchy.mount));
    let delegated = delegated(hierarchy, asker.uid);
    for path in ancestors.chain([delegated.as_path()]) {
        if passes_down(path, wanted) && may_make_in(path) && may_attach(own, path, &hierarchy.mount) {
            return Base::Ready { path: path.to_owned() };
        }
    }
    if is_true_root(&hierarchy.mount) && offers(&hierarchy.mount, wanted) && may_make_in(&hierarchy.mount) {
        return Base::Enable { path: hierarchy.mount.clone() };
    }
    if may_fill(&delegated, wanted) && may_attach(own, &delegated, &hierarchy.mount) {
        return Base::Enable { path: delegated };
    }
    Base::Closed { why: why_not(hierarchy, own, asker) }
}

fn why_not(hierarchy: &Hierarchy, own: &Path, asker: &Asker) -> String {
    let offered = words(&own.join("cgroup.controllers"));
    let absent: Vec<Controller> = hierarchy
        .controllers
        .iter()
        .copied()
        .filter(|wanted| !offered.iter().any(|word| word == wanted.name()))
        .collect();
    if !absent.is_empty() {
        return format!("{} does not offer {}", own.display(), list(&absent));
    }
    if !may_make_in(own) {
        return format!("{} cannot be written by user {}", own.display(), asker.uid);
    }
    format!("{} holds other processes, so its children cannot be limited", own.display())
}

/// A group that is ours alone: writable, and every process in it runs our program.
fn may_settle(own: &Path, wanted: &[Controller], asker: &Asker) -> bool {
    !is_true_root(own) && may_fill(own, wanted) && only_us(own, &asker.program)
}

fn may_fill(path: &Path, wanted: &[Controller]) -> bool {
    let files = ["cgroup.procs", "cgroup.subtree_control"];
    offers(path, wanted) && may_make_in(path) && files.iter().all(|file| may(AccessFlags::W_OK, &path.join(file)))
}

fn only_us(group: &Path, program: &Path) -> bool {
    let pids = words(&group.join("cgroup.procs"));
    !pids.is_empty() && pids.iter().all(|pid| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program))
}

/// Moving a process needs write access where the two groups' paths part (cgroups(7), delegation).
fn may_attach(own: &Path, base: &Path, mount: &Path) -> bool {
    let meeting = own.ancestors().find(|ancestor| base.starts_with(ancestor)).unwrap_or(mount);
    may(AccessFlags::W_OK, &meeting.join("cgroup.procs"))
}

/// The private socket needs no bus daemon; the bus is what is left when it is switched off.
fn manager_sockets(asker: &Asker) -> Vec<PathBuf> {
    let names = ["systemd/private", "bus"];
    names.iter().map(|name| asker.runtime.join(name)).filter(|socket| may(AccessFlags::W_OK, socket)).collect()
}

/// Only the root of the whole hierarchy has no type; the root of a cgroup namespace has one.
fn is_true_root(path: &Path) -> bool {
    path.join("cgroup.controllers").exists() && !path.join("cgroup.type").exists()
}

fn offers(path: &Path, wanted: &[Controller]) -> bool {
    contains_all(&path.join("cgroup.controllers"), wanted)
}

fn passes_down(path: &Path, wanted: &[Controller]) -> bool {
    contains_all(&path.join("cgroup.subtree_control"), wanted)
}

fn contains_all(file: &Path, wanted: &[Controller]) -> bool {
    let present = words(file);
    wanted.iter().all(|wanted| present.iter().any(|word| word == wanted.name()))
}

fn words(file: &Path) -> Vec<String> {
    fs::read_to_string(file).unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

fn may_make_in(path: &Path) -> bool {
    may(AccessFlags::W_OK | AccessFlags::X_OK, path)
}

fn may(access: AccessFlags, path: &Path) -> bool {
    faccessat(nix::fcntl::AT_FDCWD, path, access, AtFlags::AT_EACCESS).is_ok()
}

#[cfg(test)]
#[path = "base_tests.rs"]
mod tests;
