//! The files of cgroup v2: which ones carry the limits, which ones are read.

use std::io;

use nix::fcntl::OFlag;

use super::file::{self, Gauge};
use super::slot::SlotName;
use super::{CPU_PERIOD, GroupLimits, Leg};
use crate::host::Controller;

pub(super) const EVENTS: &str = "memory.events";
pub(super) const PEAK: &str = "memory.peak";
pub(super) const USAGE: &str = "memory.current";
pub(super) const CPU_TIME: &str = "cpu.stat";

pub(super) fn limit_cell(leg: &Leg, limits: &GroupLimits) -> Result<(), (Controller, io::Error)> {
    for &controller in &leg.controllers {
        match controller {
            Controller::Memory => limit_memory(leg, limits.memory),
            Controller::Cpu => file::write(&leg.dir, "cpu.max", &format!("{} {CPU_PERIOD}", limits.cpu_quota())),
            Controller::Pids => file::write(&leg.dir, "pids.max", &(limits.processes + limits.spare).to_string()),
            Controller::Cpuacct => Ok(()),
        }
        .map_err(|source| (controller, source))?;
        // The quota is the cell's, and every group counts its CPU time: slots need no cpu controller.
        if matches!(controller, Controller::Memory | Controller::Pids) {
            file::write(&leg.dir, "cgroup.subtree_control", &format!("+{controller}"))
                .map_err(|source| (controller, source))?;
        }
    }
    Ok(())
}

fn limit_memory(leg: &Leg, bytes: u64) -> io::Result<()> {
    file::write(&leg.dir, "memory.max", &bytes.to_string())?;
    file::write_if_there(&leg.dir, "memory.swap.max", "0")
}

/// Limits of a slot whose directory was just made. Swap needs no word: the cell's limit holds.
pub(super) fn limit_slot(leg: &Leg, name: SlotName, limits: &GroupLimits) -> io::Result<()> {
    if leg.has(Controller::Memory) {
        file::write(&leg.dir, name.file("memory.max"), &limits.memory.to_string())?;
        file::write(&leg.dir, name.file("memory.oom.group"), "1")?;
    }
    if leg.has(Controller::Pids) {
        file::write(&leg.dir, name.file("pids.max"), &(limits.processes + 1).to_string())?;
    }
    Ok(())
}

/// `memory.peak` came with 5.19 and can be set back, per open descriptor, since 6.12.
pub(super) fn open_peak(leg: &Leg, name: SlotName) -> Option<Gauge> {
    Gauge::open(&leg.dir, name.file(PEAK), OFlag::O_RDWR)
        .or_else(|_| Gauge::open(&leg.dir, name.file(PEAK), OFlag::O_RDONLY))
        .ok()
}
