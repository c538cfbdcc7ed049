//! Limits on what a cell may use together, and on each process in it.
//!
//! Theory of operation. Every hierarchy that carries one of our controllers gets the same tree:
//!
//! ```text
//! <base>/stockade.<pid namespace>.<broker pid>.<broker start>.<cell>    the cell: memory, cpu, pids
//!                                                             └── s<n>  a slot: one process
//! ```
//!
//! [`prepare`] runs once, at start, in the launcher: it switches controllers on, moves us to a leaf
//! or asks systemd for a scope, whatever the base found by `host` needs. [`CellGroup`] then makes
//! the cell, hands out slots, and takes them back. A slot's limits never change, so a clean one is
//! used again as it is: taking it costs one read. One that still holds more than [`CLEAN_BYTES`]
//! (files the process wrote or read first stay charged to it) is removed; the kernel moves the
//! charge up, so it still counts for the cell. Memory is not forced out: that would drop the page
//! cache of the agent's own files.
//!
//! Entering never writes `cgroup.procs`, which waits for an RCU grace period (9–11 ms). On v2 the
//! child is born inside (CLONE_INTO_CGROUP); on v1 it writes `0` to `tasks` descriptors it was
//! given. The cpu controller has no slots: its quota is the cell's, so on v1 the child enters the
//! cell's group there, unless cpuacct, which counts per slot, shares the hierarchy.
//!
//! Out of memory. v2 kills the whole slot in the kernel (`memory.oom.group`). v1 kills one process
//! and signals an eventfd, see [`Slot::oom_event`]; the launcher's owner kills the rest. Seen on 6.18: when
//! the cell's limit is hit, every slot below is signalled, but `oom_kill` counts only in the
//! victim's slot, and the signal comes before the kill. So the event means "look", and
//! [`Gauges::oom_kills`] decides, also when the process ends.
//!
//! A group's name says who made it. [`sweep`] removes those whose broker is gone; a name from
//! another PID namespace cannot be judged from here and is left alone.
//!
//! Why not the crate `cgroups-rs`: on v2 it reads no OOM kills and cannot watch them, it rewrites
//! the root's `subtree_control`, it speaks to systemd only over the system bus, it opens every
//! file by path for each write (47 calls for one group), and it pulls an old nix and zbus. What is
//! needed here is a dozen one-line files.

mod error;
mod file;
mod gauges;
mod prepare;
mod remove;
mod scope;
mod slot;
mod sweep;
mod v1;
mod v2;

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use crate::host::{Base, CgroupLayout, Controller, Hierarchy, Version};

pub use error::GroupError;
pub use gauges::{GaugeKind, Gauges};
pub use prepare::prepare;
pub use remove::remove_locations;
pub use slot::{Enter, Slot};
pub use sweep::{future_locations, sweep};

use slot::SlotName;

/// Above this a slot is not used again: the next process would start with another's memory.
pub const CLEAN_BYTES: u64 = 2 << 20;

/// How many clean slots wait for use; more than a pool and a burst need would only hold memory.
const MAX_FREE: usize = 32;

/// The period of the CPU quota, in microseconds: the kernel's default, on v1 and v2.
const CPU_PERIOD: u64 = 100_000;

#[derive(Debug, Clone, PartialEq)]
pub struct GroupLimits {
    /// For the cell, and for each slot.
    pub memory: u64,
    pub cpus: f64,
    /// For each slot, our own PID 1 not counted.
    pub processes: u64,
    /// Room in the cell for children that wait in the pool.
    pub spare: u64,
}

impl GroupLimits {
    /// CPU time per period, never below the kernel's least of 1 ms.
    fn cpu_quota(&self) -> u64 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float cast saturates")]
        let quota = (self.cpus * CPU_PERIOD as f64) as u64;
        quota.max(1000)
    }
}

/// The groups of one cell, in every hierarchy used. Dropping it leaves them; call `remove`.
#[derive(Debug)]
pub struct CellGroup {
    legs: Vec<Leg>,
    locations: Vec<PathBuf>,
    limits: GroupLimits,
    free: Vec<Slot>,
    /// Slots that could not be removed yet.
    doomed: Vec<SlotName>,
    next: u64,
}

/// The cell's directory in one hierarchy, held open.
#[derive(Debug)]
pub(crate) struct Leg {
    pub(crate) version: Version,
    pub(crate) controllers: Vec<Controller>,
    pub(crate) dir: OwnedFd,
}

impl Leg {
    pub(crate) fn has(&self, controller: Controller) -> bool {
        self.controllers.contains(&controller)
    }

    /// Whether processes get a group of their own here, not only the cell's.
    pub(crate) fn has_slots(&self) -> bool {
        self.version == Version::V2 || self.controllers != [Controller::Cpu]
    }
}

impl CellGroup {
    pub fn create(
        layout: &CgroupLayout,
        broker_pid: u32,
        cell: &str,
        limits: &GroupLimits,
    ) -> Result<CellGroup, GroupError> {
        if let Some(&controller) = layout.missing().first() {
            return Err(GroupError::Missing { controller });
        }
        let name = sweep::Owner::of(broker_pid)?.group_name(cell);
        let mut group = CellGroup {
            legs: Vec::new(),
            locations: Vec::new(),
            limits: limits.clone(),
            free: Vec::new(),
            doomed: Vec::new(),
            next: 0,
        };
        for hierarchy in &layout.hierarchies {
            if let Err(error) = group.add_leg(hierarchy, &name) {
                group.remove();
                return Err(error);
            }
        }
        Ok(group)
    }

    fn add_leg(&mut self, hierarchy: &Hierarchy, name: &str) -> Result<(), GroupError> {
        let base = match &hierarchy.base {
            Base::Ready { path } => path,
            Base::Closed { why } => {
                return Err(GroupError::Closed { controllers: hierarchy.controllers.clone(), why: why.clone() });
            }
            Base::Enable { .. } | Base::Settle { .. } | Base::Scope { .. } => {
                let why = "the base was not prepared".to_owned();
                return Err(GroupError::Closed { controllers: hierarchy.controllers.clone(), why });
            }
        };
        let path = base.join(name);
        std::fs::create_dir(&path).map_err(|source| GroupError::at(&path, source))?;
        self.locations.push(path.clone());
        let dir = file::open_dir(&path).map_err(|source| GroupError::at(&path, source))?;
        let leg = Leg { version: hierarchy.version, controllers: hierarchy.controllers.clone(), dir };
        match leg.version {
            Version::V1 => v1::limit_cell(&leg, &self.limits),
            Version::V2 => v2::limit_cell(&leg, &self.limits),
        }
        .map_err(|(controller, source)| GroupError::Limit { controller, path, source })?;
        self.legs.push(leg);
        Ok(())
    }

    /// A clean slot that was used before, else a new one.
    pub fn take_slot(&mut self) -> io::Result<Slot> {
        if let Some(slot) = self.free.pop() {
            slot.forget_events();
            return Ok(slot);
        }
        self.next += 1;
        let name = SlotName::new(self.next);
        Slot::create(name, &self.legs, &self.limits).inspect_err(|_| self.doom(name))
    }

    /// Takes back a slot whose processes are dead. Kept when clean, else removed, at once or by
    /// [`Self::retry_removals`].
    pub fn give_back(&mut self, mut slot: Slot) {
        if self.free.len() < MAX_FREE && slot.is_clean() && slot.rewind().is_ok() {
            self.free.push(slot);
        } else {
            let name = slot.name();
            drop(slot);
            self.doom(name);
        }
    }

    fn doom(&mut self, name: SlotName) {
        if !remove::remove_slot(&self.legs, name) {
            self.doomed.push(name);
        }
    }

    /// Tries again what could not be removed, and says how many are still left.
    pub fn retry_removals(&mut self) -> usize {
        let legs = &self.legs;
        self.doomed.retain(|&name| !remove::remove_slot(legs, name));
        self.doomed.len()
    }

    /// Kills whatever is left inside and removes everything; gives up after a second.
    pub fn remove(&mut self) {
        self.free.clear();
        self.doomed.clear();
        self.legs.clear();
        remove_locations(&self.locations);
        self.locations.retain(|location| location.exists());
    }

    /// The cell's directories, for whoever must remove them when the launcher was killed.
    pub fn locations(&self) -> &[PathBuf] {
        &self.locations
    }
}
