//! Policy, host and request become a plan or a refusal; everything is decided here and nothing is done.
//!
//! [`cell`] says what a cell is made of, [`cell()`](make_cell) decides it, [`command`] decides one request,
//! [`explain`] says it in words. What the kernel or the disk can answer was asked before (`host`).

pub mod cell;
pub mod command;
pub mod explain;
mod landlock;
mod limits;
mod mounts;
pub mod proxy;
pub mod refusal;
pub mod syscalls;

use crate::host::{Host, Question, System};
use crate::path::CellPath;
use crate::policy::{Access, Demand, HostUser, Network, Policy};
use crate::sys::seccomp::Instruction;
use cell::{CellPlan, Filter, GroupPlan, Identity, NetworkSpace, Ownership, Scratch, SupplementaryGroups};
use refusal::{Refusal, Wall};

/// The user inside a cell, where the host's uid is not shown.
const INNER_ID: u32 = 1000;

/// Host uids for agents of root: above what distributions and container managers hand out (systemd's UIDS-GIDS).
const FIRST_AGENT_UID: u32 = 0x7000_0000;
const AGENT_UIDS: u32 = 0x00fd_0000;

/// What the plan wants to know about the disk.
pub fn question(policy: &Policy) -> Question {
    let path = |grant: &crate::policy::Grant| grant.path.clone();
    let grants = &policy.filesystem.grants;
    let any = policy.commands.allowed.iter().any(|rule| rule.program == "*" && rule.arguments.is_empty());
    let programs = |rules: &[crate::policy::CommandRule]| rules.iter().map(|rule| rule.program.clone()).collect();
    let whole: Vec<_> = policy.commands.blocked.iter().filter(|rule| rule.arguments.is_empty()).cloned().collect();
    Question {
        roots: grants.iter().map(path).collect(),
        writable_roots: grants.iter().filter(|grant| grant.access == Access::ReadWrite).map(path).collect(),
        hidden: policy.filesystem.hidden.clone(),
        blocked: programs(&whole),
        allowed: (!any).then(|| programs(&policy.commands.allowed)),
    }
}

/// Decides everything about a cell, or says why it cannot be.
pub fn make_cell(policy: &Policy, host: &Host, system: &System) -> Result<CellPlan, Refusal> {
    if let Some((script, interpreter)) = system.programs.listed.as_ref().and_then(|listed| listed.stranded.first()) {
        return Err(Refusal::Stranded { script: script.clone(), interpreter: interpreter.clone() });
    }
    namespaces_available(host)?;
    let identity = identity(policy, host, system)?;
    let filter = filter(policy, host, system)?;
    let landlock = landlock_plan(policy, host, system)?;
    Ok(CellPlan {
        hostname: "stockade".into(),
        network: match policy.network {
            Network::None | Network::Proxy { .. } => NetworkSpace::Own,
            Network::Host { .. } => NetworkSpace::Host,
        },
        proxy: proxy::plan(&policy.network),
        scratch: Scratch { bytes: policy.filesystem.tmp_size.0, inodes: policy.filesystem.tmp_inodes },
        steps: mounts::steps(policy, system, &identity),
        proc_masks: proc_masks(system, &identity),
        landlock,
        filter,
        rlimits: limits::rlimits(&policy.limits),
        groups: groups(policy, host)?,
        identity,
    })
}

fn namespaces_available(host: &Host) -> Result<(), Refusal> {
    match host.obstacle(Wall::Namespaces.findings()) {
        Some((what, remedy)) => Err(Refusal::Unavailable { wall: Wall::Namespaces, what, remedy }),
        None => Ok(()),
    }
}

fn identity(policy: &Policy, host: &Host, system: &System) -> Result<Identity, Refusal> {
    if host.uid != 0 {
        return Ok(Identity {
            inner_uid: host.uid,
            inner_gid: host.gid,
            outer_uid: host.uid,
            outer_gid: host.gid,
            groups: SupplementaryGroups::Kept,
            ownership: Ownership::Same,
        });
    }
    let (inner, outer_uid, outer_gid, ownership) = match policy.identity {
        HostUser::Root => (0, 0, 0, Ownership::Same),
        HostUser::Owner => match system.owners.as_slice() {
            [] => (INNER_ID, agent_uid(&policy.agent), agent_uid(&policy.agent), Ownership::Same),
            [(0, _), ..] => return Err(Refusal::OwnedByRoot),
            [(uid, gid), rest @ ..] if rest.iter().all(|(other, _)| other == uid) => {
                (INNER_ID, *uid, *gid, Ownership::Same)
            }
            _ => return Err(Refusal::ManyOwners),
        },
        HostUser::Private => {
            let uid = agent_uid(&policy.agent);
            (INNER_ID, uid, uid, Ownership::Idmapped)
        }
    };
    Ok(Identity {
        inner_uid: inner,
        inner_gid: inner,
        outer_uid,
        outer_gid,
        groups: SupplementaryGroups::Dropped,
        ownership,
    })
}

fn proc_masks(system: &System, identity: &Identity) -> Vec<CellPath> {
    let of_root: &[_] = if identity.outer_uid == 0 { &system.proc_of_root } else { &[] };
    system.proc.iter().chain(of_root).map(CellPath::new).collect()
}

/// A uid of this agent's own, the same at every start (FNV-1a of its name).
fn agent_uid(agent: &str) -> u32 {
    let hash = agent.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    FIRST_AGENT_UID + hash % AGENT_UIDS
}

/// The parts of the policy that the filter is compiled from.
pub fn filter_input<'a>(policy: &'a Policy, system: &System) -> syscalls::FilterInput<'a> {
    let executables = match system.programs.listed {
        Some(_) => syscalls::Executables::Listed,
        None => syscalls::Executables::Any,
    };
    syscalls::FilterInput { groups: &policy.syscalls, network: &policy.network, executables }
}

fn filter(policy: &Policy, host: &Host, system: &System) -> Result<Option<Filter>, Refusal> {
    if !stands(host, Wall::Seccomp, policy.enforcement.seccomp)? {
        return Ok(None);
    }
    let input = filter_input(policy, system);
    if let Some(why) = syscalls::contradiction(&input) {
        return Err(Refusal::Contradiction { why: why.into() });
    }
    let program = syscalls::compile(&input);
    let instruction = |i: &seccompiler::sock_filter| Instruction { code: i.code, jt: i.jt, jf: i.jf, k: i.k };
    Ok(Some(Filter(program.iter().map(instruction).collect())))
}

fn landlock_plan(policy: &Policy, host: &Host, system: &System) -> Result<Option<cell::LandlockPlan>, Refusal> {
    if !stands(host, Wall::Landlock, policy.enforcement.landlock)? {
        return Ok(None);
    }
    landlock::plan(policy, system, host.landlock_abi).map(Some)
}

fn groups(policy: &Policy, host: &Host) -> Result<Option<GroupPlan>, Refusal> {
    if !stands(host, Wall::Cgroups, policy.enforcement.cgroups)? {
        return Ok(None);
    }
    Ok(Some(GroupPlan {
        memory: policy.limits.memory.0,
        cpus: policy.limits.cpus,
        processes: policy.limits.processes,
        layout: host.cgroups.clone(),
    }))
}

/// Whether the host can put up a wall. Going without it is a refusal unless the policy itself allows that.
fn stands(host: &Host, wall: Wall, demand: Demand) -> Result<bool, Refusal> {
    match (host.obstacle(wall.findings()), demand) {
        (None, _) => Ok(true),
        (Some(_), Demand::IfAvailable) => Ok(false),
        (Some((what, remedy)), Demand::Required) => Err(Refusal::Unavailable { wall, what, remedy }),
    }
}
