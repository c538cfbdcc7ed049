//! A started process until everything in it is dead: its end, its deadlines, the signals passed to it.
//!
//! It waits for nothing itself: `watch` drives it with a poll loop, `supervise` from tokio. Deadlines are kept here,
//! outside the cell, so that a stopped launcher or a stopped command cannot stretch them.

use super::answer::{End, Reason, Usage};
use super::cell::Ready;
use super::fault::Trouble;
use crate::sys::{Errno, descriptor, process};
use crate::wire::{FromInit, Left, Report};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Between asking a command to end and killing everything.
const GRACE: Duration = Duration::from_millis(500);

/// When a process must end by itself or be ended.
#[derive(Debug, Clone, Copy)]
pub struct Deadlines {
    pub wall: Duration,
    pub idle: Duration,
    pub cpu: Option<Duration>,
}

/// Milliseconds since a start, updated by whoever moves bytes.
#[derive(Debug)]
pub struct Activity {
    start: Instant,
    last: AtomicU64,
}

impl Activity {
    pub fn new() -> Self {
        Activity { start: Instant::now(), last: AtomicU64::new(0) }
    }

    pub fn touch(&self) {
        self.last.store(self.start.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    pub fn idle_since(&self) -> Instant {
        self.start + Duration::from_millis(self.last.load(Ordering::Relaxed))
    }
}

impl Default for Activity {
    fn default() -> Self {
        Self::new()
    }
}

#[derive(Debug)]
pub struct Process<'a> {
    pub(super) ready: &'a Ready,
    pub(super) launcher: Option<BorrowedFd<'a>>,
    deadlines: Deadlines,
    activity: &'a Activity,
    started: Instant,
    /// Why it is being ended, and when it will be killed.
    ending: Option<(Reason, Instant)>,
    pub(super) told: Option<FromInit>,
    failed: Option<Trouble>,
    pub(super) door_open: bool,
}

impl<'a> Process<'a> {
    pub fn new(
        ready: &'a Ready,
        launcher: Option<BorrowedFd<'a>>,
        deadlines: Deadlines,
        activity: &'a Activity,
    ) -> Self {
        Process {
            ready,
            launcher,
            deadlines,
            activity,
            started: Instant::now(),
            ending: None,
            told: None,
            failed: None,
            door_open: true,
        }
    }

    /// Silence at the door means that exec worked.
    pub(super) fn hear_door(&mut self) {
        let mut bytes = [0; Report::BYTES];
        match descriptor::read(self.ready.door.as_raw_fd(), &mut bytes) {
            Ok(Report::BYTES) => self.failed = Report::from_bytes(&bytes).map(Into::into),
            Err(Errno::EINTR | Errno::EAGAIN) => return,
            Ok(_) | Err(_) => {}
        }
        self.door_open = false;
    }

    pub(super) fn hear_leash(&mut self) {
        let mut bytes = [0; FromInit::BYTES];
        match descriptor::read(self.ready.leash.as_raw_fd(), &mut bytes).map(|got| FromInit::from_bytes(&bytes[..got]))
        {
            Ok(Some(FromInit::Ready)) => {}
            Ok(Some(FromInit::Failed(report))) => self.failed = Some(report.into()),
            Ok(Some(told @ FromInit::Exited { .. })) => self.told = Some(told),
            // PID 1 is gone without a word: killed. The pidfd says so too.
            Ok(None) | Err(_) => {}
        }
    }

    /// All that was said on the leash so far; true when nothing of the process is left but a PID 1 about to end.
    pub(super) fn has_told_all(&mut self) -> bool {
        while self.told.is_none() && pending(self.ready.leash.as_fd()) {
            self.hear_leash();
        }
        let alone = matches!(self.told, Some(FromInit::Exited { left: Left::Nobody, .. }));
        if alone {
            // It takes its namespaces apart now, which nobody need wait for. Its word is not all that ends it.
            self.kill();
        }
        alone
    }

    /// Passes a signal to the command's group; STOP, CONT and KILL to everything.
    pub(super) fn signal(&self, signal: i32) {
        let _ = descriptor::write(self.ready.leash.as_raw_fd(), &[signal as u8]);
    }

    /// Asks it to end, and sees to it after the grace time. The first reason given stays.
    pub(super) fn end(&mut self, reason: Reason, signal: i32, grace: Duration) {
        let kill_at = Instant::now() + grace;
        self.signal(signal);
        // A stopped process would not hear it.
        self.signal(libc::SIGCONT);
        self.ending = Some(match self.ending {
            Some((first, before)) => (first, before.min(kill_at)),
            None => (reason, kill_at),
        });
    }

    pub(super) fn end_now(&mut self, reason: Reason) {
        self.ending = Some((self.ending.map_or(reason, |(first, _)| first), Instant::now()));
        self.kill();
    }

    fn kill(&self) {
        let _ = process::pidfd_signal(self.ready.pidfd.as_fd(), libc::SIGKILL);
    }

    pub(super) fn keep_deadlines(&mut self) {
        if let Some((_, kill_at)) = self.ending {
            if Instant::now() >= kill_at {
                self.kill();
            }
            return;
        }
        if let Some(reason) = self.overdue() {
            self.end(reason, libc::SIGTERM, GRACE);
        }
    }

    fn overdue(&self) -> Option<Reason> {
        if self.started.elapsed() >= self.deadlines.wall || self.cpu_left().is_some_and(|left| left.is_zero()) {
            return Some(Reason::Timeout);
        }
        (self.activity.idle_since().elapsed() >= self.deadlines.idle).then_some(Reason::IdleTimeout)
    }

    fn cpu_left(&self) -> Option<Duration> {
        let used = self.ready.gauges.as_ref()?.cpu_time();
        Some(self.deadlines.cpu?.saturating_sub(used))
    }

    /// Until the next thing that could be due. CPU time cannot run faster than all cores together.
    pub(super) fn patience(&self) -> Duration {
        let now = Instant::now();
        let mut next = match self.ending {
            Some((_, kill_at)) => kill_at.saturating_duration_since(now).max(Duration::from_millis(10)),
            None => {
                let wall = (self.started + self.deadlines.wall).saturating_duration_since(now);
                let idle = (self.activity.idle_since() + self.deadlines.idle).saturating_duration_since(now);
                wall.min(idle)
            }
        };
        if let Some(left) = self.cpu_left() {
            let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u32;
            next = next.min(left / cores + Duration::from_millis(5));
        }
        next + Duration::from_millis(1)
    }

    pub(super) fn conclude(mut self) -> Result<End, Trouble> {
        // What was said before death is still in the sockets.
        while self.told.is_none() && self.failed.is_none() && pending(self.ready.leash.as_fd()) {
            let before = (self.told, self.failed.is_some());
            self.hear_leash();
            if before == (self.told, self.failed.is_some()) && !pending(self.ready.leash.as_fd()) {
                break;
            }
        }
        if self.door_open && pending(self.ready.door.as_fd()) {
            self.hear_door();
        }
        if let Some(trouble) = self.failed {
            return Err(trouble);
        }
        let gauges = self.ready.gauges.as_ref();
        let killed_for_memory = gauges.is_some_and(|gauges| gauges.oom_kills() > 0);
        // Nobody asked for this end: it may be the launcher that died and took PID 1 along.
        if self.told.is_none() && self.ending.is_none() && !killed_for_memory && self.launcher_is_dead() {
            return Err(Trouble::lost("the launcher"));
        }
        let (status, cpu, max_rss_kib) = match self.told {
            Some(FromInit::Exited { status, cpu_micros, max_rss_kib, .. }) => {
                // PID 1 knows only what was waited for; the group also counts what a daemon used.
                let cpu = gauges.map_or(Duration::from_micros(cpu_micros), |gauges| gauges.cpu_time());
                (Some(status), cpu, max_rss_kib)
            }
            _ => {
                let peak = gauges.and_then(|gauges| gauges.peak_bytes()).unwrap_or(0) / 1024;
                (None, gauges.map(|gauges| gauges.cpu_time()).unwrap_or_default(), peak)
            }
        };
        let exit_code = status.filter(|status| libc::WIFEXITED(*status)).map(|status| libc::WEXITSTATUS(status));
        let signal = match status {
            Some(status) if libc::WIFSIGNALED(status) => Some(libc::WTERMSIG(status)),
            Some(_) => None,
            None => Some(libc::SIGKILL),
        };
        let reason = match self.ending {
            _ if killed_for_memory => Reason::Memory,
            Some((reason, _)) => reason,
            None if signal.is_some() => Reason::Signal,
            None => Reason::Exit,
        };
        Ok(End { reason, exit_code, signal, usage: Usage { cpu, max_rss_kib } })
    }

    /// The kernel tells a dying process's children before it tells those who watch it; that takes microseconds.
    fn launcher_is_dead(&self) -> bool {
        let Some(launcher) = self.launcher else { return false };
        poll(&mut [PollFd::new(launcher, PollFlags::POLLIN)], PollTimeout::from(20_u8)).is_ok_and(|count| count > 0)
    }
}

fn pending(socket: BorrowedFd<'_>) -> bool {
    descriptor::unread(socket) > 0
}
