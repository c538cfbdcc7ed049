//! What a slot's process used, counted from when the slot was taken.
//!
//! The descriptors can be passed to another process and read there, also when that process could not open
//! them; [`GaugeKind`] travels beside them. Once the slot is removed or used again they say nothing more (ENODEV,
//! or another's figures), so it stays as it is until the reader lets go.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use nix::fcntl::OFlag;
use serde::{Deserialize, Serialize};

use super::file::Gauge;
use super::slot::SlotName;
use super::{Leg, v1, v2};
use crate::host::{Controller, Version};

#[derive(Debug)]
pub struct Gauges {
    kind: GaugeKind,
    memory: Gauge,
    cpu: Gauge,
    peak: Option<Gauge>,
}

/// How the descriptors are to be read, and what they showed when the slot was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GaugeKind {
    memory: Version,
    cpu: Version,
    oom_kills_before: u64,
    cpu_nanos_before: u64,
    /// A peak that could not be set back, so only a higher one is the process's own.
    peak_before: u64,
}

impl Gauges {
    pub(super) fn open(name: SlotName, memory: &Leg, cpu: &Leg) -> io::Result<Gauges> {
        let events = match memory.version {
            Version::V1 => v1::OOM_CONTROL,
            Version::V2 => v2::EVENTS,
        };
        let time = match cpu.version {
            Version::V1 => v1::CPU_TIME,
            Version::V2 => v2::CPU_TIME,
        };
        let peak = match memory.version {
            Version::V1 => Some(Gauge::open(&memory.dir, name.file(v1::PEAK), OFlag::O_RDWR)?),
            Version::V2 => v2::open_peak(memory, name),
        };
        Ok(Gauges {
            kind: GaugeKind {
                memory: memory.version,
                cpu: cpu.version,
                oom_kills_before: 0,
                cpu_nanos_before: 0,
                peak_before: 0,
            },
            memory: Gauge::open(&memory.dir, name.file(events), OFlag::O_RDONLY)?,
            cpu: Gauge::open(&cpu.dir, name.file(time), OFlag::O_RDONLY)?,
            peak,
        })
    }

    /// In the order that [`Self::from_descriptors`] takes them.
    pub fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let fixed = [self.memory.as_fd(), self.cpu.as_fd()];
        fixed.into_iter().chain(self.peak.as_ref().map(AsFd::as_fd)).collect()
    }

    pub fn kind(&self) -> GaugeKind {
        self.kind.clone()
    }

    /// The gauges again, in the process that received them. `None`: not two or three descriptors.
    pub fn from_descriptors(kind: GaugeKind, descriptors: Vec<OwnedFd>) -> Option<Gauges> {
        let mut gauges = descriptors.into_iter().map(Gauge::from);
        let (memory, cpu, peak) = (gauges.next()?, gauges.next()?, gauges.next());
        gauges.next().is_none().then_some(Gauges { kind, memory, cpu, peak })
    }

    /// Processes of this slot that the kernel killed for want of memory.
    pub fn oom_kills(&self) -> u64 {
        self.total_oom_kills().unwrap_or(0).saturating_sub(self.kind.oom_kills_before)
    }

    pub fn cpu_time(&self) -> Duration {
        let nanos = self.total_cpu_nanos().unwrap_or(0).saturating_sub(self.kind.cpu_nanos_before);
        Duration::from_nanos(nanos)
    }

    /// `None` when this kernel keeps no peak, or the peak is an earlier process's.
    pub fn peak_bytes(&self) -> Option<u64> {
        let peak = self.peak.as_ref()?.number().ok()?;
        (peak > self.kind.peak_before || self.kind.peak_before == 0).then_some(peak)
    }

    pub(super) fn memory(&self) -> &Gauge {
        &self.memory
    }

    /// From here on, what was counted so far belongs to the process before.
    pub(super) fn rewind(&mut self) -> io::Result<()> {
        self.kind.oom_kills_before = self.total_oom_kills()?;
        self.kind.cpu_nanos_before = self.total_cpu_nanos()?;
        if let Some(peak) = &self.peak {
            self.kind.peak_before = match peak.write("0") {
                Ok(()) => 0,
                Err(_) => peak.number()?,
            };
        }
        Ok(())
    }

    /// v1 has counted kills since 4.13; both versions use the same key.
    fn total_oom_kills(&self) -> io::Result<u64> {
        self.memory.entry("oom_kill")
    }

    fn total_cpu_nanos(&self) -> io::Result<u64> {
        match self.kind.cpu {
            Version::V1 => self.cpu.number(),
            Version::V2 => Ok(self.cpu.entry("usage_usec")? * 1000),
        }
    }
}

/// The hierarchy that counts CPU time.
pub(super) fn cpu_counter(legs: &[Leg]) -> Option<&Leg> {
    let v1 = legs.iter().find(|leg| leg.has(Controller::Cpuacct));
    v1.or_else(|| legs.iter().find(|leg| leg.version == Version::V2))
}
