//! The files of cgroup v1: which ones carry the limits, which ones are read.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::fcntl::OFlag;
use nix::sys::eventfd::{EfdFlags, EventFd};

use super::file::{self, Gauge};
use super::slot::SlotName;
use super::{CPU_PERIOD, GroupLimits, Leg};
use crate::host::Controller;

pub(super) const OOM_CONTROL: &str = "memory.oom_control";
pub(super) const PEAK: &str = "memory.max_usage_in_bytes";
pub(super) const USAGE: &str = "memory.usage_in_bytes";
pub(super) const CPU_TIME: &str = "cpuacct.usage";

pub(super) fn limit_cell(leg: &Leg, limits: &GroupLimits) -> Result<(), (Controller, io::Error)> {
    // Inherited from the base: a release agent would run on the host for every slot that empties.
    let _ = file::write(&leg.dir, "notify_on_release", "0");
    for &controller in &leg.controllers {
        match controller {
            Controller::Memory => limit_memory(leg, limits.memory),
            Controller::Cpu => limit_cpu(leg, limits.cpu_quota()),
            Controller::Pids => file::write(&leg.dir, "pids.max", &(limits.processes + limits.spare).to_string()),
            Controller::Cpuacct => Ok(()),
        }
        .map_err(|source| (controller, source))?;
    }
    Ok(())
}

/// Swap is closed twice: memory and swap together get the same limit, where the kernel counts
/// swap, and swappiness 0, which slots inherit, where it does not.
fn limit_memory(leg: &Leg, bytes: u64) -> io::Result<()> {
    let bytes = bytes.to_string();
    // On kernels before 5.11 a child is limited by its parent only with this switch.
    let _ = file::write(&leg.dir, "memory.use_hierarchy", "1");
    file::write(&leg.dir, "memory.limit_in_bytes", &bytes)?;
    file::write_if_there(&leg.dir, "memory.memsw.limit_in_bytes", &bytes)?;
    file::write_if_there(&leg.dir, "memory.swappiness", "0")
}

fn limit_cpu(leg: &Leg, quota: u64) -> io::Result<()> {
    file::write(&leg.dir, "cpu.cfs_period_us", &CPU_PERIOD.to_string())?;
    file::write(&leg.dir, "cpu.cfs_quota_us", &quota.to_string())
}

/// Limits of a slot whose directory was just made. Swap needs no word: the cell's limits hold.
pub(super) fn limit_slot(leg: &Leg, name: SlotName, limits: &GroupLimits) -> io::Result<()> {
    if leg.has(Controller::Memory) {
        file::write(&leg.dir, name.file("memory.limit_in_bytes"), &limits.memory.to_string())?;
    }
    if leg.has(Controller::Pids) {
        file::write(&leg.dir, name.file("pids.max"), &(limits.processes + 1).to_string())?;
    }
    Ok(())
}

/// The `tasks` file through which a child enters: the slot's, or the cell's where there are none.
pub(super) fn open_tasks(leg: &Leg, name: SlotName) -> io::Result<OwnedFd> {
    if leg.has_slots() {
        file::open(&leg.dir, name.file("tasks"), OFlag::O_WRONLY)
    } else {
        file::open(&leg.dir, "tasks", OFlag::O_WRONLY)
    }
}

/// An eventfd that becomes readable when this slot, or the cell above it, runs out of memory.
pub(super) fn watch_oom(leg: &Leg, name: SlotName, oom_control: &Gauge) -> io::Result<EventFd> {
    use std::os::fd::AsFd;
    let event = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
    let pair = format!("{} {}", event.as_fd().as_raw_fd(), oom_control.as_fd().as_raw_fd());
    file::write(&leg.dir, name.file("cgroup.event_control"), &pair)?;
    Ok(event)
}
