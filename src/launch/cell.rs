//! Making a cell: its namespaces, its tree, its identity. Done once; processes then join it.
//!
//! A short-lived process ([`Maker`]) in new namespaces gets its ids mapped from outside, builds the tree, hands the
//! namespaces back as descriptors and ends. From then on the cell is those descriptors: when the launcher dies, the
//! kernel takes the cell apart.

use super::fault::{At, Result};
use super::hidden::Hidden;
use super::maker::{FromMaker, Maker};
use super::mounts::{self, Detached, RootId};
use super::proc::{MaskKind, ProcMask};
use crate::path::CellPath;
use crate::plan::cell::{CellPlan, Identity, Origin, Ownership, Rlimit, Step, SupplementaryGroups};
use crate::sys::mount::Depth;
use crate::sys::process::{CloneRequest, Side, clone_copy, reap};
use crate::sys::seccomp::Instruction;
use crate::sys::{descriptor, landlock, mount, process, socket};
use crate::wire::Stage;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// A made cell: what every process of it needs, ready to use without allocating.
#[derive(Debug)]
pub struct Cell {
    /// Joined in this order: the user namespace first, because it gives the right to join the rest.
    pub namespaces: Vec<OwnedFd>,
    /// The root that joining must lead to.
    pub root: RootId,
    pub identity: Identity,
    pub proc_masks: Vec<ProcMask>,
    pub hidden: Hidden,
    pub rlimits: Vec<Rlimit>,
    pub landlock: Option<Ruleset>,
    pub filter: Option<Vec<Instruction>>,
    /// Listens on the cell's loopback, for the broker.
    pub proxy: Option<OwnedFd>,
}

/// A ruleset's parts. It is put together in each process, because `/proc` is new in each.
#[derive(Debug)]
pub struct Ruleset {
    pub abi: u32,
    pub handled: landlock::Handled,
    pub paths: Vec<(OwnedFd, u64)>,
    pub proc_access: u64,
    pub ports: Vec<(u16, u64)>,
}

/// Makes a cell, or says at which step it could not. Leaves nothing behind when it fails. `spare` is a maker that
/// already waits; what needs no cell is done `meanwhile`, while the maker builds the tree.
pub fn make<T>(plan: &CellPlan, spare: Option<Maker>, meanwhile: impl FnOnce() -> T) -> (Result<Cell>, Option<T>) {
    let set_to_work = || {
        let maker = match spare.filter(|maker| maker.network == plan.network) {
            Some(maker) => maker,
            None => Maker::start(plan.network)?,
        };
        map_ids(maker.pid, &plan.identity)?;
        maker.order(plan, &detach_idmapped(plan)?)?;
        Ok(maker)
    };
    match set_to_work() {
        Err(fault) => (Err(fault), None),
        Ok(maker) => {
            let other = meanwhile();
            (collect(plan, &maker), Some(other))
        }
    }
}

/// `/proc` has the same entries inside as it has here.
fn proc_mask(path: &CellPath) -> ProcMask {
    let kind = if path.as_path().is_dir() { MaskKind::Directory } else { MaskKind::File };
    ProcMask { path: path.to_c(), kind }
}

/// Only real root may map the ids of a mount, so the launcher opens such roots and hands them to the maker.
fn detach_idmapped(plan: &CellPlan) -> Result<Detached> {
    let mut detached = Detached::new();
    if plan.identity.groups == SupplementaryGroups::Kept {
        return Ok(detached);
    }
    for step in &plan.steps {
        let Step::Bind { from, origin: Origin::Root, writable, executable, .. } = step else { continue };
        let tree = mounts::detach_root(from, Origin::Root).at(Stage::Source, from)?;
        if plan.identity.ownership == Ownership::Idmapped {
            let owner = nix::sys::stat::fstat(&tree).at(Stage::Idmap, from)?;
            let userns = idmap_namespace(&plan.identity, owner.st_uid, owner.st_gid).at(Stage::Idmap, from)?;
            mount::set_idmap(tree.as_fd(), userns.as_fd(), Depth::Recursive).at(Stage::Idmap, from)?;
        }
        let attributes = mounts::attributes(Origin::Root, *writable, *executable);
        mount::set_attributes(tree.as_fd(), attributes, 0, Depth::Recursive).at(Stage::Source, from)?;
        detached.insert(from.clone(), tree);
    }
    Ok(detached)
}

/// A user namespace whose map turns a root's owner into the agent; only the descriptor outlives the call.
fn idmap_namespace(identity: &Identity, uid: u32, gid: u32) -> std::io::Result<OwnedFd> {
    process::prctl(libc::PR_SET_DUMPABLE, 1, 0)?;
    let (ours, theirs) = socket::pair(libc::SOCK_STREAM)?;
    let request = CloneRequest { flags: libc::CLONE_NEWUSER as u64, exit_signal: libc::SIGCHLD as u64, cgroup: None };
    match clone_copy(&request)? {
        Side::Child => {
            drop(ours);
            // Waits until the parent hangs up.
            let _ = descriptor::read(theirs.as_raw_fd(), &mut [0]);
            process::exit(0)
        }
        Side::Parent { pid, pidfd } => {
            drop(theirs);
            let write = || {
                fs::write(format!("/proc/{pid}/uid_map"), format!("{uid} {} 1", identity.outer_uid))?;
                fs::write(format!("/proc/{pid}/gid_map"), format!("{gid} {} 1", identity.outer_gid))?;
                fs::File::open(format!("/proc/{pid}/ns/user"))
            };
            let namespace = write();
            drop(ours);
            let _ = reap(pidfd.as_fd());
            Ok(namespace?.into())
        }
    }
}

fn map_ids(pid: i32, identity: &Identity) -> Result<()> {
    let write = |file: &str, text: String| {
        fs::write(format!("/proc/{pid}/{file}"), text).at(Stage::MapIdentity, format!("/proc/PID/{file}"))
    };
    if identity.groups == SupplementaryGroups::Kept {
        // user_namespaces(7): an ordinary user may map a group only after giving up setgroups.
        write("setgroups", "deny".into())?;
    }
    write("uid_map", format!("{} {} 1", identity.inner_uid, identity.outer_uid))?;
    write("gid_map", format!("{} {} 1", identity.inner_gid, identity.outer_gid))
}

fn collect(plan: &CellPlan, maker: &Maker) -> Result<Cell> {
    let (mut namespaces, mut root, mut paths, mut proxy) = (Vec::new(), (0, 0), Vec::new(), None);
    loop {
        match maker.hear()? {
            (FromMaker::Namespaces { root: made }, descriptors) => (namespaces, root) = (descriptors, made),
            (FromMaker::Paths(accesses), descriptors) => paths.extend(descriptors.into_iter().zip(accesses)),
            (FromMaker::Proxy, descriptors) => proxy = descriptors.into_iter().next(),
            (FromMaker::Done, _) => break,
            (FromMaker::Failed(fault), _) => return Err(fault),
        }
    }
    Ok(Cell {
        namespaces,
        root,
        identity: plan.identity,
        proc_masks: plan.proc_masks.iter().map(proc_mask).collect(),
        hidden: Hidden { paths: plan.hidden().map(CellPath::to_c).collect(), device: root.0 },
        rlimits: plan.rlimits.clone(),
        landlock: plan.landlock.as_ref().map(|l| Ruleset {
            abi: l.abi,
            handled: landlock::Handled { files: l.files, network: l.network, scoped: l.scoped },
            paths,
            proc_access: l.proc_access,
            ports: l.ports.clone(),
        }),
        filter: plan.filter.as_ref().map(|f| f.0.clone()),
        proxy,
    })
}
