//! Making a cell: its namespaces, its tree, its identity. Done once; processes then join it.
//!
//! A short-lived process (the maker) is cloned into new namespaces, gets its ids mapped from outside,
//! builds the tree, hands the namespaces back as descriptors and ends. From then on the cell is those
//! descriptors: when the launcher dies, the kernel takes the cell apart.

use super::fault::{At, Result};
use super::mounts::{self, Detached, RootId};
use crate::plan::cell::{CellPlan, Identity, NetworkSpace, Origin, Ownership, Rlimit, Step, SupplementaryGroups};
use crate::sys::mount::Depth;
use crate::sys::process::{CloneRequest, Side, clone_copy, reap};
use crate::sys::seccomp::Instruction;
use crate::sys::{Errno, descriptor, identity, landlock, mount, process, socket};
use crate::wire::{Channel, Fault, Stage};
use serde::{Deserialize, Serialize};
use std::ffi::CString;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// A made cell: what every process of it needs, ready to use without allocating.
#[derive(Debug)]
pub struct Cell {
    /// Joined in this order: the user namespace first, because it gives the right to join the rest.
    pub namespaces: Vec<OwnedFd>,
    /// The root that joining must lead to.
    pub root: RootId,
    pub identity: Identity,
    pub proc_masks: Vec<CString>,
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

/// What the maker says, each with descriptors.
#[derive(Debug, Serialize, Deserialize)]
enum FromMaker {
    Namespaces {
        root: RootId,
    },
    /// The accesses of as many descriptors.
    Paths(Vec<u64>),
    Proxy,
    Done,
    Failed(Fault),
}

/// Makes a cell, or says at which step it could not. Leaves nothing behind when it fails. What needs no cell is done
/// `meanwhile`, while the maker builds the tree.
pub fn make<T>(plan: &CellPlan, meanwhile: impl FnOnce() -> T) -> (Result<Cell>, Option<T>) {
    match start_maker(plan) {
        Err(fault) => (Err(fault), None),
        Ok((maker, pidfd)) => {
            let other = meanwhile();
            let made = collect(plan, &maker);
            if made.is_err() {
                let _ = process::pidfd_signal(pidfd.as_fd(), libc::SIGKILL);
            }
            let _ = reap(pidfd.as_fd());
            (made, Some(other))
        }
    }
}

/// Clones the maker into its namespaces, maps its ids and sets it to work.
fn start_maker(plan: &CellPlan) -> Result<(Channel, OwnedFd)> {
    let detached = detach_idmapped(plan)?;
    let (ours, theirs) = socket::pair(libc::SOCK_STREAM).at(Stage::Clone, "socket pair")?;
    // The child's /proc files belong to us only while we count as dumpable (proc(5)).
    process::prctl(libc::PR_SET_DUMPABLE, 1, 0).at(Stage::Clone, "dumpable")?;
    // The PID namespace dies with the maker; only the empty `/proc` of it stays.
    let mut flags =
        libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS | libc::CLONE_NEWPID;
    if plan.network == NetworkSpace::Own {
        flags |= libc::CLONE_NEWNET;
    }
    let request = CloneRequest { flags: flags as u64, exit_signal: libc::SIGCHLD as u64, cgroup: None };
    match clone_copy(&request).at(Stage::Namespaces, "clone")? {
        Side::Child => {
            drop(ours);
            run_maker(plan, &detached, theirs)
        }
        Side::Parent { pid, pidfd } => {
            drop(theirs);
            let maker = Channel::new(ours);
            let lost = |_| Fault { step: Stage::NewRoot, errno: libc::EIO, at: "the cell's maker died".into() };
            match map_ids(pid, &plan.identity).and_then(|()| maker.send(&(), &[]).map_err(lost)) {
                Ok(()) => Ok((maker, pidfd)),
                Err(fault) => {
                    let _ = process::pidfd_signal(pidfd.as_fd(), libc::SIGKILL);
                    let _ = reap(pidfd.as_fd());
                    Err(fault)
                }
            }
        }
    }
}

/// Only real root may map the ids of a mount, so the launcher opens such roots before it clones the maker.
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

fn collect(plan: &CellPlan, maker: &Channel) -> Result<Cell> {
    let lost = |_| Fault { step: Stage::NewRoot, errno: libc::EIO, at: "the cell's maker died".into() };
    let (mut namespaces, mut root, mut paths, mut proxy) = (Vec::new(), (0, 0), Vec::new(), None);
    loop {
        match maker.receive().map_err(lost)? {
            Some((FromMaker::Namespaces { root: made }, descriptors)) => (namespaces, root) = (descriptors, made),
            Some((FromMaker::Paths(accesses), descriptors)) => paths.extend(descriptors.into_iter().zip(accesses)),
            Some((FromMaker::Proxy, descriptors)) => proxy = descriptors.into_iter().next(),
            Some((FromMaker::Done, _)) => break,
            Some((FromMaker::Failed(fault), _)) => return Err(fault),
            None => return Err(lost(std::io::ErrorKind::UnexpectedEof.into())),
        }
    }
    Ok(Cell {
        namespaces,
        root,
        identity: plan.identity,
        proc_masks: plan.proc_masks.iter().map(crate::path::CellPath::to_c).collect(),
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

fn run_maker(plan: &CellPlan, detached: &Detached, socket: OwnedFd) -> ! {
    let channel = Channel::new(socket);
    let go: std::io::Result<Option<((), _)>> = channel.receive();
    if !matches!(go, Ok(Some(_))) {
        process::exit(1);
    }
    let last = match build(plan, detached, &channel) {
        Ok(()) => FromMaker::Done,
        Err(fault) => FromMaker::Failed(fault),
    };
    let _ = channel.send(&last, &[]);
    process::exit(0)
}

fn build(plan: &CellPlan, detached: &Detached, channel: &Channel) -> Result<()> {
    if plan.identity.groups == SupplementaryGroups::Dropped {
        identity::clear_groups().at(Stage::MapIdentity, "supplementary groups")?;
    }
    identity::set_group(plan.identity.inner_gid).at(Stage::MapIdentity, plan.identity.inner_gid)?;
    identity::set_user(plan.identity.inner_uid).at(Stage::MapIdentity, plan.identity.inner_uid)?;
    process::umask(0o022);
    // A second wall behind the filter: no user namespace can be made inside this one (namespaces(7)).
    fs::write("/proc/sys/user/max_user_namespaces", "0").at(Stage::Namespaces, "max_user_namespaces")?;
    nix::unistd::sethostname(&plan.hostname).at(Stage::Hostname, &plan.hostname)?;
    if plan.network == NetworkSpace::Own {
        crate::sys::network::raise_loopback().at(Stage::Loopback, "lo")?;
    }
    send_proxy(plan, channel)?;
    let mut namespaces = Vec::new();
    for name in ["user", "net", "ipc", "uts"] {
        if name == "net" && plan.network == NetworkSpace::Host {
            continue;
        }
        namespaces.push(fs::File::open(format!("/proc/self/ns/{name}")).at(Stage::Namespaces, name)?);
    }
    let mount_namespace = fs::File::open("/proc/self/ns/mnt").at(Stage::Namespaces, "mnt")?;
    let root = mounts::enter_new_root(plan, detached)?;
    namespaces.push(mount_namespace);
    let numbers: Vec<i32> = namespaces.iter().map(AsRawFd::as_raw_fd).collect();
    channel.send(&FromMaker::Namespaces { root }, &numbers).at(Stage::Namespaces, "socket")?;
    send_paths(plan, channel)
}

/// Listens before any process of the cell can, so none can take the proxy's place. The socket stays in this network
/// namespace wherever it goes.
fn send_proxy(plan: &CellPlan, channel: &Channel) -> Result<()> {
    let Some(proxy) = &plan.proxy else { return Ok(()) };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, proxy.port)).at(Stage::Proxy, proxy.port)?;
    channel.send(&FromMaker::Proxy, &[listener.as_raw_fd()]).at(Stage::Proxy, "socket")
}

/// Opens what the Landlock rules name, in the cell's own view.
fn send_paths(plan: &CellPlan, channel: &Channel) -> Result<()> {
    /// Fits the descriptor array of [`Channel::receive`].
    const BATCH: usize = 16;
    for batch in plan.landlock.iter().flat_map(|landlock| landlock.paths.chunks(BATCH)) {
        let mut opened = Vec::new();
        for (path, access) in batch {
            match descriptor::open(&path.to_c(), libc::O_PATH) {
                Ok(fd) => opened.push((fd, *access)),
                Err(Errno::ENOENT) => {}
                Err(errno) => return Err(errno).at(Stage::LandlockRule, path),
            }
        }
        let numbers: Vec<i32> = opened.iter().map(|(fd, _)| fd.as_raw_fd()).collect();
        let accesses = opened.iter().map(|(_, access)| *access).collect();
        if !numbers.is_empty() {
            channel.send(&FromMaker::Paths(accesses), &numbers).at(Stage::LandlockRule, "socket")?;
        }
    }
    Ok(())
}
