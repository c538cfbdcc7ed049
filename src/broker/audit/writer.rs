//! The thread that writes the log.
//!
//! It writes what has come at once, names the last line in `audit.head` when it has a moment, and when the disk takes
//! nothing it keeps what it has and tries again.

use super::line::{Marker, now};
use super::log::{Content, Log};
use super::queue::Taken;
use super::{Losses, Record, Shared, time};
use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// Between two tries on a disk that takes nothing.
const RETRY: Duration = Duration::from_millis(500);

/// The head is replaced no oftener: it waits for the disk.
const HEAD_EVERY: Duration = Duration::from_secs(1);

/// Lines written under one lock, so that a second broker gets its turn.
const BATCH: usize = 256;

pub(super) fn run(shared: &Shared, directory: &Path, rotate_at: u64) {
    let mut writer = Writer { log: None, waiting: VecDeque::new(), failing: None, head_at: Instant::now() };
    loop {
        let closed = writer.is_stuck() && shared.queue.rest(RETRY);
        // What waits already is tried first; the rest stays in the queue, which is bounded.
        let taken = if writer.is_stuck() && !closed { Taken::nothing() } else { shared.queue.take(writer.patience()) };
        let Taken { items, last } = taken;
        writer.waiting.extend(items);
        let done = writer.write_all(shared, directory, rotate_at);
        writer.note(shared, done);
        if last {
            break;
        }
    }
    writer.seal_head_now(shared);
    shared.queue.leave();
}

struct Writer {
    log: Option<Log>,
    waiting: VecDeque<Arc<Record>>,
    failing: Option<Failing>,
    head_at: Instant,
}

struct Failing {
    since: SystemTime,
    why: String,
}

impl Writer {
    /// How long there is nothing to do unless a call comes.
    fn patience(&self) -> Option<Duration> {
        if self.failing.is_some() {
            return Some(RETRY);
        }
        let stale = self.log.as_ref().is_some_and(Log::has_stale_head);
        stale.then(|| HEAD_EVERY.saturating_sub(self.head_at.elapsed()))
    }

    fn is_stuck(&self) -> bool {
        self.failing.is_some() && !self.waiting.is_empty()
    }

    fn write_all(&mut self, shared: &Shared, directory: &Path, rotate_at: u64) -> io::Result<()> {
        let mut log = match self.log.take() {
            Some(log) => log,
            None => Log::open(directory, rotate_at)?,
        };
        if let Some(failing) = &self.failing {
            let since = time::rfc3339(failing.since);
            log.append(&[&Marker::Gap { time: now(), since, why: failing.why.clone() }])?;
            self.failing = None;
        }
        while !self.waiting.is_empty() {
            let batch: Vec<&dyn Content> = self.waiting.iter().take(BATCH).map(|record| record as _).collect();
            let count = batch.len();
            log.append(&batch)?;
            self.waiting.drain(..count);
        }
        tell_losses(&mut log, shared)?;
        if log.has_stale_head() && self.head_at.elapsed() >= HEAD_EVERY {
            log.seal_head()?;
            self.head_at = Instant::now();
        }
        // Only a log that did all this is trusted again; any other is opened anew, and looks at the files first.
        self.log = Some(log);
        Ok(())
    }

    fn note(&mut self, shared: &Shared, done: io::Result<()>) {
        match done {
            Ok(()) => shared.set_trouble(None),
            Err(error) => {
                let why = error.to_string();
                if self.failing.is_none() {
                    tracing::warn!("the audit log cannot be written: {why}");
                }
                shared.set_trouble(Some(format!("the audit log cannot be written: {why}")));
                self.failing.get_or_insert_with(|| Failing { since: SystemTime::now(), why });
            }
        }
    }

    fn seal_head_now(&mut self, shared: &Shared) {
        if let Some(Err(error)) = self.log.as_mut().map(Log::seal_head) {
            shared.set_trouble(Some(format!("the audit log's head cannot be written: {error}")));
        }
    }
}

/// The losses leave the books only when the log holds them.
fn tell_losses(log: &mut Log, shared: &Shared) -> io::Result<()> {
    let told = shared.notes().lost.take();
    let Some(Losses { since, tools }) = told else {
        return Ok(());
    };
    let count = tools.values().sum();
    let marker = Marker::Lost { time: now(), since: time::rfc3339(since), count, tools };
    let done = log.append(&[&marker]);
    if let (Err(_), Marker::Lost { tools, .. }) = (&done, marker) {
        let mut notes = shared.notes();
        let lost = notes.lost.get_or_insert_with(|| Losses { since, tools: Default::default() });
        lost.since = lost.since.min(since);
        for (tool, count) in tools {
            *lost.tools.entry(tool).or_default() += count;
        }
    }
    done
}
