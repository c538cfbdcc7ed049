//! One process's groups: made with limits, entered once, used again when clean.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::fcntl::OFlag;
use nix::sys::eventfd::EventFd;
use nix::sys::stat::{Mode, mkdirat};

use super::file::{self, Gauge};
use super::gauges::{Gauges, cpu_counter};
use super::{CLEAN_BYTES, GroupLimits, Leg, v1, v2};
use crate::host::{Controller, Version};

/// A place for one process and its descendants, with its limits set.
#[derive(Debug)]
pub struct Slot {
    pub enter: Enter,
    name: SlotName,
    gauges: Gauges,
    oom: Option<EventFd>,
    usage: Gauge,
    tasks: Gauge,
}

/// How a child gets in.
#[derive(Debug)]
pub enum Enter {
    /// v1: the child writes `0` to each.
    Tasks(Vec<OwnedFd>),
    /// v2: the directory for CLONE_INTO_CGROUP.
    Into(OwnedFd),
    /// Controllers on both: born inside the one, and `0` to each of the others.
    Both { into: OwnedFd, tasks: Vec<OwnedFd> },
}

impl Enter {
    /// The directory to be born in.
    pub fn directory(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Enter::Tasks(_) => None,
            Enter::Into(into) | Enter::Both { into, .. } => Some(into.as_fd()),
        }
    }

    /// The files to write `0` to.
    pub fn tasks(&self) -> &[OwnedFd] {
        match self {
            Enter::Tasks(tasks) | Enter::Both { tasks, .. } => tasks,
            Enter::Into(_) => &[],
        }
    }
}

impl Slot {
    /// On an error the directories may be there in part; the caller removes them by name.
    pub(super) fn create(name: SlotName, legs: &[Leg], limits: &GroupLimits) -> io::Result<Slot> {
        for leg in legs.iter().filter(|leg| leg.has_slots()) {
            mkdirat(&leg.dir, name.dir().as_str(), Mode::from_bits_truncate(0o755))?;
            match leg.version {
                Version::V1 => v1::limit_slot(leg, name, limits)?,
                Version::V2 => v2::limit_slot(leg, name, limits)?,
            }
        }
        let memory = carrier(legs, Controller::Memory)?;
        let pids = carrier(legs, Controller::Pids)?;
        let counter = cpu_counter(legs).ok_or(io::ErrorKind::NotFound)?;
        let gauges = Gauges::open(name, memory, counter)?;
        let (usage, oom) = match memory.version {
            Version::V1 => (v1::USAGE, Some(v1::watch_oom(memory, name, gauges.memory())?)),
            Version::V2 => (v2::USAGE, None),
        };
        Ok(Slot {
            enter: open_enter(legs, name)?,
            name,
            gauges,
            oom,
            usage: Gauge::open(&memory.dir, name.file(usage), OFlag::O_RDONLY)?,
            tasks: Gauge::open(&pids.dir, name.file("pids.current"), OFlag::O_RDONLY)?,
        })
    }

    pub fn gauges(&self) -> &Gauges {
        &self.gauges
    }

    /// v1: readable when this slot, or the cell, ran out of memory. The signal comes before the
    /// kill and reaches every slot of the cell, so ask [`Gauges::oom_kills`] then and at the end.
    /// v2: `None`, the kernel kills the whole slot by itself.
    pub fn oom_event(&self) -> Option<BorrowedFd<'_>> {
        self.oom.as_ref().map(AsFd::as_fd)
    }

    pub(super) fn name(&self) -> SlotName {
        self.name
    }

    /// Nothing lives in it (a zombie counts), and little memory is charged to it.
    pub(super) fn is_clean(&self) -> bool {
        self.tasks.number().is_ok_and(|tasks| tasks == 0) && self.usage.number().is_ok_and(|bytes| bytes < CLEAN_BYTES)
    }

    pub(super) fn rewind(&mut self) -> io::Result<()> {
        self.gauges.rewind()
    }

    /// A slot that waits is signalled too when its cell runs out of memory.
    pub(super) fn forget_events(&self) {
        if let Some(oom) = &self.oom {
            let _ = oom.read();
        }
    }
}

fn open_enter(legs: &[Leg], name: SlotName) -> io::Result<Enter> {
    let mut tasks = Vec::with_capacity(legs.len());
    let mut into = None;
    for leg in legs {
        match leg.version {
            Version::V1 => tasks.push(v1::open_tasks(leg, name)?),
            Version::V2 => into = Some(file::open(&leg.dir, name.dir().as_str(), OFlag::O_DIRECTORY | OFlag::O_PATH)?),
        }
    }
    Ok(match into {
        None => Enter::Tasks(tasks),
        Some(into) if tasks.is_empty() => Enter::Into(into),
        Some(into) => Enter::Both { into, tasks },
    })
}

fn carrier(legs: &[Leg], controller: Controller) -> io::Result<&Leg> {
    legs.iter().find(|leg| leg.has(controller)).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// `s<n>`: the same directory name in every hierarchy, never used twice in a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotName(u64);

impl SlotName {
    pub(super) fn new(number: u64) -> SlotName {
        SlotName(number)
    }

    pub(super) fn dir(self) -> String {
        format!("s{}", self.0)
    }

    pub(super) fn file(self, file: &str) -> String {
        format!("s{}/{file}", self.0)
    }
}
