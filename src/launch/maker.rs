//! The maker: a process in a cell's new namespaces that builds its tree, hands the namespaces out and ends.
//!
//! Making namespaces takes as long as reading a policy, so the launcher starts a maker before it knows for what; the
//! maker then waits for its plan. It runs no code of the agent's and holds nothing but its end of the socket.

use super::fault::{At, Result};
use super::mounts::{self, Detached, RootId};
use crate::path::HostPath;
use crate::plan::cell::{CellPlan, NetworkSpace, SupplementaryGroups};
use crate::sys::process::{CloneRequest, Side, clone_copy, reap};
use crate::sys::{Errno, descriptor, identity, process, socket};
use crate::wire::{Channel, Fault, Stage};
use serde::{Deserialize, Serialize};
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

/// Fits the descriptor array of [`Channel::receive`].
const BATCH: usize = 16;

/// What the launcher says.
#[derive(Debug, Serialize, Deserialize)]
enum ToMaker {
    /// Roots that only the launcher could open, one descriptor each.
    Roots(Vec<HostPath>),
    Build(Box<CellPlan>),
}

/// What the maker says, each with descriptors.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromMaker {
    Namespaces {
        root: RootId,
    },
    /// The accesses of as many descriptors.
    Paths(Vec<u64>),
    Proxy,
    Done,
    Failed(Fault),
}

/// A maker, seen from the launcher. Dropping it ends it.
#[derive(Debug)]
pub struct Maker {
    channel: Channel,
    pidfd: OwnedFd,
    pub pid: i32,
    pub network: NetworkSpace,
}

impl Maker {
    /// Clones a maker into new namespaces, where it waits.
    pub fn start(network: NetworkSpace) -> Result<Maker> {
        let (ours, theirs) = socket::pair(libc::SOCK_STREAM).at(Stage::Clone, "socket pair")?;
        // The child's /proc files belong to us only while we count as dumpable (proc(5)).
        process::prctl(libc::PR_SET_DUMPABLE, 1, 0).at(Stage::Clone, "dumpable")?;
        // The PID namespace dies with the maker; only the empty `/proc` of it stays.
        let mut flags =
            libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS | libc::CLONE_NEWPID;
        if network == NetworkSpace::Own {
            flags |= libc::CLONE_NEWNET;
        }
        let request = CloneRequest { flags: flags as u64, exit_signal: libc::SIGCHLD as u64, cgroup: None };
        match clone_copy(&request).at(Stage::Namespaces, "clone")? {
            Side::Child => run(theirs, network),
            Side::Parent { pid, pidfd } => Ok(Maker { channel: Channel::new(ours), pidfd, pid, network }),
        }
    }

    /// Sets it to work. Its ids must be mapped by now.
    pub fn order(&self, plan: &CellPlan, detached: &Detached) -> Result<()> {
        let (paths, trees): (Vec<&HostPath>, Vec<RawFd>) =
            detached.iter().map(|(path, tree)| (path, tree.as_raw_fd())).unzip();
        for (paths, trees) in paths.chunks(BATCH).zip(trees.chunks(BATCH)) {
            let paths = paths.iter().map(|path| (*path).clone()).collect();
            self.channel.send(&ToMaker::Roots(paths), trees).map_err(|_| died())?;
        }
        self.channel.send(&ToMaker::Build(Box::new(plan.clone())), &[]).map_err(|_| died())
    }

    /// What it says next.
    pub fn hear(&self) -> Result<(FromMaker, Vec<OwnedFd>)> {
        self.channel.receive().ok().flatten().ok_or_else(died)
    }
}

impl Drop for Maker {
    fn drop(&mut self) {
        let _ = process::pidfd_signal(self.pidfd.as_fd(), libc::SIGKILL);
        let _ = reap(self.pidfd.as_fd());
    }
}

fn died() -> Fault {
    Fault { step: Stage::NewRoot, errno: libc::EIO, at: "the cell's maker died".into() }
}

/// The maker's whole life.
fn run(socket: OwnedFd, network: NetworkSpace) -> ! {
    let own = socket.as_raw_fd() as u32;
    let _ = descriptor::close_range(3, own - 1);
    let _ = descriptor::close_range(own + 1, u32::MAX);
    let loopback = match network {
        NetworkSpace::Own => crate::sys::network::raise_loopback().at(Stage::Loopback, "lo"),
        NetworkSpace::Host => Ok(()),
    };
    let channel = Channel::new(socket);
    let Some((plan, detached)) = receive(&channel) else { process::exit(1) };
    let last = match loopback.and_then(|()| build(&plan, &detached, &channel)) {
        Ok(()) => FromMaker::Done,
        Err(fault) => FromMaker::Failed(fault),
    };
    let _ = channel.send(&last, &[]);
    process::exit(0)
}

/// The order, or nothing when the launcher is gone.
fn receive(channel: &Channel) -> Option<(Box<CellPlan>, Detached)> {
    let mut detached = Detached::new();
    loop {
        match channel.receive().ok().flatten()? {
            (ToMaker::Roots(paths), trees) => detached.extend(paths.into_iter().zip(trees)),
            (ToMaker::Build(plan), _) => return Some((plan, detached)),
        }
    }
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
