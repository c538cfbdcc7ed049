//! The second, independent wall around files: Landlock repeats the grants of the mounts.
//!
//! Rights are masked by the ABI the kernel has, then demanded in full. Landlock only adds up: it cannot
//! take away below a granted directory, so a read-only or hidden path inside a read-write root is held by
//! its mount alone, and everything outside the roots by both.

use super::cell::LandlockPlan;
use super::refusal::{Refusal, Wall};
use crate::host::System;
use crate::path::CellPath;
use crate::policy::{Access, Network, Policy};
use landlock::{ABI, Access as _, AccessFs, AccessNet, BitFlags, Scope};
use std::path::Path;

pub fn plan(policy: &Policy, system: &System, abi: u32) -> Result<LandlockPlan, Refusal> {
    let level = ABI::from(i32::try_from(abi).unwrap_or(i32::MAX));
    let rights = Rights::new(level);
    let (network, ports) = ports(&policy.network, abi)?;
    Ok(LandlockPlan {
        abi,
        files: rights.all.bits(),
        network,
        scoped: scopes(&policy.network, level),
        paths: paths(policy, system, &rights).into_iter().map(|(path, access)| (path, access.bits())).collect(),
        proc_access: rights.read.bits(),
        ports,
    })
}

struct Rights {
    all: BitFlags<AccessFs>,
    read: BitFlags<AccessFs>,
    execute: BitFlags<AccessFs>,
    /// A device or terminal: opened, written and controlled, not made.
    device: BitFlags<AccessFs>,
}

impl Rights {
    fn new(level: ABI) -> Self {
        let all = AccessFs::from_all(level);
        Rights {
            all,
            read: AccessFs::ReadFile | AccessFs::ReadDir,
            execute: AccessFs::Execute.into(),
            device: all & (AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev),
        }
    }
}

fn paths(policy: &Policy, system: &System, rights: &Rights) -> Vec<(CellPath, BitFlags<AccessFs>)> {
    let listed = system.programs.listed.as_ref();
    let execute = if listed.is_some() { BitFlags::EMPTY } else { rights.execute };
    let write = (rights.all & !rights.execute) | execute;
    let at = |path: &str, access| (CellPath::new(path), access);
    let mut paths = vec![
        // Names only: what is mounted below may be listed, what it holds is granted one by one.
        at("/", AccessFs::ReadDir.into()),
        at("/usr", rights.read | execute),
        at("/etc", rights.read),
        at("/tmp", write),
        at("/var/tmp", write),
        at("/home/agent", write),
        at("/dev/shm", write),
        at("/dev/pts", rights.device | AccessFs::ReadDir),
    ];
    for device in ["null", "zero", "full", "random", "urandom", "tty"] {
        paths.push(at(&format!("/dev/{device}"), rights.device));
    }
    for top in &system.top {
        if let crate::host::system::Top::Directory(path) = top {
            paths.push((CellPath::new(path), rights.read | execute));
        }
    }
    for grant in &policy.filesystem.grants {
        match grant.access {
            Access::ReadWrite => paths.push((CellPath::new(&grant.path), write)),
            Access::ReadOnly => paths.push((CellPath::new(&grant.path), rights.read | execute)),
            Access::Hidden => {}
        }
    }
    if let Some(listed) = listed {
        let may_run = listed.allowed.iter().chain(&listed.directories).chain(&listed.loaders);
        paths.extend(may_run.map(|path: &std::path::PathBuf| (CellPath::new(Path::new(path)), rights.execute)));
    }
    paths
}

/// TCP ports exist from ABI 4 on; a list that cannot be enforced is refused.
fn ports(network: &Network, abi: u32) -> Result<(u64, Vec<(u16, u64)>), Refusal> {
    let Network::Host { connect_ports, bind_ports } = network else { return Ok((0, Vec::new())) };
    let mut handled = BitFlags::<AccessNet>::EMPTY;
    let mut rules = Vec::new();
    for (list, access) in [(connect_ports, AccessNet::ConnectTcp), (bind_ports, AccessNet::BindTcp)] {
        if let Some(list) = list {
            handled |= access;
            rules.extend(list.iter().map(|port| (*port, BitFlags::from(access).bits())));
        }
    }
    if abi < 4 && !handled.is_empty() {
        return Err(Refusal::Unavailable {
            wall: Wall::Landlock,
            what: format!("TCP ports need Landlock ABI 4 (Linux 6.7), this kernel has {abi}"),
            remedy: "use a newer kernel, or `mode = \"none\"`, or take the port lists away".into(),
        });
    }
    Ok((handled.bits(), rules))
}

/// Signals never leave the process's own domain. Abstract sockets are the network namespace's business, and
/// commands of one cell may talk through them; only in the host's network they are cut off.
fn scopes(network: &Network, level: ABI) -> u64 {
    let wanted = match network {
        Network::Host { .. } => Scope::Signal | Scope::AbstractUnixSocket,
        Network::None | Network::Proxy { .. } => Scope::Signal.into(),
    };
    (Scope::from_all(level) & wanted).bits()
}
