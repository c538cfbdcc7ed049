//! The output of one process: every byte, in one offset space over both streams, exact and in order.
//!
//! New bytes go to a ring in memory; the scribe's thread brings them to segment files; readers find them in either. The pump
//! that appends never waits for a disk, a reader never makes it wait, and what waits for the disk is bounded: [`Output::room`]
//! is the back-pressure. Two locks: `held` for as long as a memcpy takes, and the log's writer, held while a file is written.

mod bounds;
pub(in crate::broker) mod folder;
mod frame;
mod held;
mod lines;
pub(in crate::broker) mod log;
mod reload;
mod ring;
mod scribe;
mod walk;

#[cfg(test)]
mod disk_tests;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
pub(in crate::broker) mod tests;

pub use bounds::{Bounds, Overflow, Room, Totals};
pub use lines::{Lines, Page};
pub use log::Log;
pub(in crate::broker) use reload::Remains;
pub use scribe::Scribe;

use super::answer::Stream;
use held::Held;
use log::{Shape, Writer};
use reload::Old;
use scribe::{Line as ScribeLine, Turn};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Instant, SystemTime};
use tokio::sync::Notify;

/// What is written by whoever sends a reply, instead of waiting for the scribe.
const SMALL: u64 = 64 << 10;

#[derive(Debug)]
pub struct Output {
    held: Mutex<Held>,
    log: Option<Log>,
    /// Of an earlier broker's process: what its log says, once read.
    old: Option<Old>,
    scribe: Option<ScribeLine>,
    changed: Notify,
    roomy: Notify,
    written: Notify,
}

impl Output {
    pub fn new(bounds: Bounds, log: Option<Log>, scribe: &Scribe) -> Arc<Output> {
        let mut held = Held::new(bounds);
        held.logged = log.is_some();
        Arc::new(Output::with(held, log, None, Some(scribe.line())))
    }

    fn with(held: Held, log: Option<Log>, old: Option<Old>, scribe: Option<ScribeLine>) -> Output {
        let (changed, roomy, written) = (Notify::new(), Notify::new(), Notify::new());
        Output { held: Mutex::new(held), log, old, scribe, changed, roomy, written }
    }

    /// Stores what came. More than `room` said makes the oldest bytes that are not on disk yet go, at the latest when
    /// twice as much waits as the ring holds.
    pub fn append(self: &Arc<Self>, stream: Stream, bytes: &[u8]) -> Room {
        let mut held = self.held();
        held.append(stream, bytes);
        let verdict = held.verdict();
        let queue = held.logged && held.waiting() > 0 && !std::mem::replace(&mut held.queued, true);
        let hurry = held.logged && held.waiting() >= SMALL && !std::mem::replace(&mut held.hurried, true);
        drop(held);
        if let Some(scribe) = &self.scribe {
            if queue {
                scribe.push(Arc::clone(self));
            }
            if hurry {
                scribe.hurry();
            }
        }
        self.changed.notify_waiters();
        verdict
    }

    /// How many bytes may be appended now.
    pub fn room(&self) -> usize {
        self.held().room()
    }

    /// Whether the process waits until its output is removed.
    pub fn is_paused(&self) -> bool {
        let held = self.held();
        held.bounds.overflow == Overflow::Pause && !held.closed && held.room() == 0 && held.waiting() == 0
    }

    /// Returns when something may be appended.
    pub async fn has_room(&self) {
        loop {
            let notified = self.roomy.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            if self.room() > 0 {
                return;
            }
            // Without the scribe, whoever waits writes.
            let is_alone = self.scribe.as_ref().is_none_or(ScribeLine::has_ended);
            if is_alone && self.try_turn(usize::MAX).is_some() && self.room() > 0 {
                return;
            }
            notified.await;
        }
    }

    pub fn totals(&self) -> Totals {
        if let Some(known) = self.old.as_ref().and_then(Old::known) {
            return known;
        }
        let oldest = self.oldest();
        let held = self.held();
        let tally = &held.tally;
        Totals {
            total_bytes: tally.total,
            stdout_bytes: tally.stdout,
            stderr_bytes: tally.stderr,
            total_lines: tally.lines,
            dropped_bytes: held.dropped(oldest.max(held.oldest())),
            closed: held.closed,
        }
    }

    /// When the last byte came; before the first, when the output was made.
    pub fn last_activity(&self) -> (Instant, SystemTime) {
        self.held().active
    }

    /// Returns when there are more than `seen` bytes, or when no more will come.
    pub async fn changed(&self, seen: u64) {
        loop {
            let notified = self.changed.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            {
                let held = self.held();
                if held.closed || held.tally.total > seen {
                    return;
                }
            }
            notified.await;
        }
    }

    /// No more will come. Memory is given back as soon as everything is on disk.
    pub fn close(&self) {
        let mut held = self.held();
        held.closed = true;
        held.settle();
        let settled = held.waiting() == 0;
        drop(held);
        if settled
            && let Some(log) = &self.log
            && let Ok(mut writer) = log.writer.try_lock()
        {
            writer.close();
        }
        self.changed.notify_waiters();
    }

    /// Forgets everything stored, and deletes the files.
    pub fn clear(self: &Arc<Self>) {
        self.load();
        let mut held = self.held();
        held.clear();
        // Whoever is writing just now finds the files gone out of date at the end of that.
        let queue = held.logged && !std::mem::replace(&mut held.queued, true);
        drop(held);
        if let Some(old) = &self.old {
            old.delete();
        }
        if queue && let Some(scribe) = &self.scribe {
            scribe.push(Arc::clone(self));
        }
        self.try_turn(0);
        self.roomy.notify_waiters();
        self.written.notify_waiters();
    }

    /// Deletes the files of an output that nobody will read any more.
    pub(in crate::broker) fn discard(self: &Arc<Self>) {
        match &self.old {
            // Without reading it first.
            Some(old) => old.delete(),
            None => self.clear(),
        }
    }

    /// Why bytes do not reach the disk at present.
    pub fn trouble(&self) -> Option<String> {
        self.held().trouble.clone()
    }

    /// The size of its files.
    pub fn disk_bytes(&self) -> u64 {
        match self.old.as_ref().and_then(Old::unread_bytes) {
            Some(bytes) => bytes,
            None => self.held().segments.iter().map(|segment| segment.bytes).sum(),
        }
    }

    /// Brings what came last to disk at once, if that is little and nobody else is at it. True: everything is there.
    pub fn flush_small(&self) -> bool {
        let waiting = {
            let held = self.held();
            if held.logged && held.trouble.is_some() {
                return false;
            }
            if held.logged { held.waiting() } else { 0 }
        };
        match waiting {
            0 => true,
            1..=SMALL => self.try_turn(SMALL as usize) == Some(Turn::Idle),
            _ => false,
        }
    }

    /// Returns when everything before `offset` is on disk, or cannot get there.
    pub async fn persisted(&self, offset: u64) {
        if let Some(scribe) = &self.scribe {
            scribe.hurry();
        }
        loop {
            let notified = self.written.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            {
                let held = self.held();
                if !held.logged || held.done >= offset.min(held.tally.total) || held.trouble.is_some() {
                    return;
                }
            }
            if self.scribe.as_ref().is_none_or(ScribeLine::has_ended) {
                self.try_turn(usize::MAX);
                return;
            }
            notified.await;
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        // Whoever panicked under the lock did so between two whole steps: counts stay usable.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A turn for whoever does not want to wait for the writer.
    fn try_turn(&self, limit: usize) -> Option<Turn> {
        let log = self.log.as_ref()?;
        match log.writer.try_lock() {
            Ok(mut writer) => Some(self.write(log, &mut writer, limit)),
            Err(TryLockError::Poisoned(writer)) => Some(self.write(log, &mut writer.into_inner(), limit)),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The scribe's turn: at most about `limit` bytes, and off its list when nothing is left.
    fn turn(&self, limit: usize) -> Turn {
        let Some(log) = &self.log else { return Turn::Idle };
        let mut writer = log.writer.lock().unwrap_or_else(PoisonError::into_inner);
        self.write(log, &mut writer, limit);
        let mut held = self.held();
        held.hurried = false;
        if held.trouble.is_some() {
            return Turn::Failed;
        }
        held.queued = held.waiting() > 0 || held.epoch != writer.epoch;
        if held.queued { Turn::More } else { Turn::Idle }
    }

    fn write(&self, log: &Log, writer: &mut Writer, limit: usize) -> Turn {
        let (runs, epoch, shape) = {
            let held = self.held();
            let Bounds { kept, lines, .. } = held.bounds;
            (held.gather(limit), held.epoch, Shape { kept, window: held.bounds.window(), lines })
        };
        if writer.epoch != epoch {
            writer.wipe(&*log.files, &log.name);
            writer.epoch = epoch;
        }
        let mut rest = &runs[..];
        while !rest.is_empty() {
            let batch = writer.write(&*log.files, &log.name, shape, rest, || self.held().retire(epoch));
            let mut held = self.held();
            if held.epoch != epoch {
                break;
            }
            match batch {
                Ok(batch) => {
                    held.commit(batch.segment, &batch.marks, rest[0].offset());
                    rest = &rest[batch.used..];
                }
                Err(error) => {
                    held.trouble = Some(in_words(&log.name, &error));
                    break;
                }
            }
        }
        drop(runs);
        self.wrote(writer)
    }

    fn wrote(&self, writer: &mut Writer) -> Turn {
        let mut held = self.held();
        held.settle();
        if held.closed && held.waiting() == 0 {
            writer.close();
        }
        let turn = match held.waiting() {
            _ if held.trouble.is_some() => Turn::Failed,
            0 => Turn::Idle,
            _ => Turn::More,
        };
        drop(held);
        self.written.notify_waiters();
        self.roomy.notify_waiters();
        turn
    }
}

fn in_words(proc_id: &str, error: &io::Error) -> String {
    format!("the output of `{proc_id}` cannot be written to the state directory and stays in memory: {error}")
}
