//! What a cell is made of, decided: data that the launcher carries out and `explain` reads aloud.

use super::proxy::ProxyPlan;
use crate::path::{CellPath, HostPath};
use crate::sys::seccomp::Instruction;
use serde::{Deserialize, Serialize};

/// Everything about a cell, decided; nothing done.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CellPlan {
    pub identity: Identity,
    pub hostname: String,
    pub network: NetworkSpace,
    /// Who answers on the cell's loopback for the world outside.
    pub proxy: Option<ProxyPlan>,
    pub scratch: Scratch,
    /// The tree, in the order in which it is built.
    pub steps: Vec<Step>,
    /// What is covered in every process's fresh `/proc`.
    pub proc_masks: Vec<CellPath>,
    pub landlock: Option<LandlockPlan>,
    /// The compiled syscall filter.
    pub filter: Option<Filter>,
    pub rlimits: Vec<Rlimit>,
    pub groups: Option<GroupPlan>,
}

impl CellPlan {
    /// The paths that a rule of the policy covers whole. What has grants below it is a tree of its own.
    pub fn hidden(&self) -> impl Iterator<Item = &CellPath> {
        self.steps.iter().filter_map(|step| match step {
            Step::Mask { at, holds: MaskHolds::Nothing, absent: Absent::Refused } => Some(at),
            _ => None,
        })
    }

    /// The walls that this plan goes without, by the names of `[enforcement]`.
    #[must_use]
    pub fn missing_walls(&self) -> Vec<&'static str> {
        let walls = [
            ("landlock", self.landlock.is_none()),
            ("seccomp", self.filter.is_none()),
            ("cgroups", self.groups.is_none()),
        ];
        walls.into_iter().filter(|(_, missing)| *missing).map(|(name, _)| name).collect()
    }
}

/// Who the processes are, inside and to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub inner_uid: u32,
    pub inner_gid: u32,
    pub outer_uid: u32,
    pub outer_gid: u32,
    /// Whether the launcher may (and therefore must) drop supplementary groups.
    pub groups: SupplementaryGroups,
    pub ownership: Ownership,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SupplementaryGroups {
    /// Started by root: they are dropped.
    Dropped,
    /// An ordinary user may not drop them; inside they are `nogroup`.
    Kept,
}

/// How files made in a root come to belong to the root's owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ownership {
    /// The processes already run as the owner.
    Same,
    /// The root's owner is mapped to the agent's uid by an idmapped mount.
    Idmapped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NetworkSpace {
    /// A namespace of the cell's own with nothing but loopback.
    Own,
    /// The host's.
    Host,
}

/// The one tmpfs behind `/tmp`, `/var/tmp`, `$HOME` and `/dev/shm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scratch {
    pub bytes: u64,
    pub inodes: u64,
}

/// One step of building the tree. Mount points are made as needed in the cell's own memory, never in a root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    Directory {
        at: CellPath,
        mode: u32,
    },
    Link {
        at: CellPath,
        to: String,
    },
    File {
        at: CellPath,
        text: String,
    },
    /// A small file of the system, copied: a mount would be paid for at every start.
    Copy {
        from: HostPath,
        at: CellPath,
    },
    Bind {
        from: HostPath,
        at: CellPath,
        origin: Origin,
        writable: Writable,
        executable: Executable,
    },
    Scratch {
        at: CellPath,
        name: String,
        mode: u32,
        executable: Executable,
    },
    Terminals {
        at: CellPath,
    },
    /// A `/proc` of a PID namespace with nobody in it: the kernel lets a process mount its own only where one is in
    /// sight. Each process mounts its own over it.
    EmptyProc {
        at: CellPath,
    },
    Mask {
        at: CellPath,
        holds: MaskHolds,
        absent: Absent,
    },
    /// Names without anything behind them, in a directory that was put together again: no access, instead of not found.
    Placeholders {
        within: CellPath,
        names: Vec<String>,
    },
    /// The part of the tree made so far in the cell's own memory becomes read-only.
    SealSkeleton,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// Part of the operating system: links are followed, a missing source is left out.
    System,
    /// A device node: stays usable as one.
    Device,
    /// A root of the policy: taken literally, must exist.
    Root,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Writable {
    Yes,
    No,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Executable {
    Yes,
    No,
}

/// What it means when there is nothing to cover after all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Absent {
    /// A hidden path: it was moved while the cell was being made, and nobody knows where to.
    Refused,
    /// A program in a directory that was put together again without it.
    Skipped,
}

/// What a masked path must still let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MaskHolds {
    Nothing,
    /// A more specific rule grants something below it: it can be walked through, not listed.
    Grants,
    /// A system directory, put together again from the part of it that may stay.
    Rebuilt,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LandlockPlan {
    pub abi: u32,
    pub files: u64,
    pub network: u64,
    pub scoped: u64,
    /// Accesses granted at and below each path; a path that does not exist is left out.
    pub paths: Vec<(CellPath, u64)>,
    /// Accesses granted in each process's own `/proc`, which has no path before it is mounted.
    pub proc_access: u64,
    pub ports: Vec<(u16, u64)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter(pub Vec<Instruction>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rlimit {
    pub resource: u32,
    pub value: u64,
}

/// Limits of the cgroup above the cell's processes, and of each of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupPlan {
    pub memory: u64,
    pub cpus: f64,
    pub processes: u64,
    /// Where groups can be made on this host.
    pub layout: crate::host::CgroupLayout,
}

/// Travels as numbers: an instruction is 8 bytes, packed into one.
impl Serialize for Filter {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(
            self.0
                .iter()
                .map(|i| u64::from(i.code) << 48 | u64::from(i.jt) << 40 | u64::from(i.jf) << 32 | u64::from(i.k)),
        )
    }
}

impl<'de> Deserialize<'de> for Filter {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let words = Vec::<u64>::deserialize(deserializer)?;
        let unpack =
            |w: u64| Instruction { code: (w >> 48) as u16, jt: (w >> 40) as u8, jf: (w >> 32) as u8, k: w as u32 };
        Ok(Filter(words.into_iter().map(unpack).collect()))
    }
}
