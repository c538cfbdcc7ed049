//! The audit log: one line per tool call, each holding the hash of the one before.
//!
//! [`Audit::record`] puts a record in a bounded queue and returns; a thread of its own writes (`writer`) to the
//! agent's files (`log`). A queue that is full or a disk that takes nothing never stops a call and never loses one in
//! silence: what could not be written is counted per tool, and the log says so as soon as it can. `verify` reads it
//! all back and trusts nothing. What may be written is decided in `redact`.

mod call;
pub mod files;
pub mod line;
mod log;
pub mod queue;
pub mod redact;
pub mod time;
pub mod verify;
mod writer;

pub use call::{Call, Decision, Exit, Record, Subject};
pub use redact::Redactor;

use queue::{Haste, Queue};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Records that wait: some ten thousand ordinary ones, seconds of the busiest agent.
const QUEUE_BYTES: usize = 8 << 20;

/// How long the end of a broker waits for a disk that hangs.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The writing end of one agent's log.
#[derive(Debug)]
pub struct Audit {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    queue: Queue<Arc<Record>>,
    notes: Mutex<Notes>,
}

#[derive(Debug, Default)]
struct Notes {
    lost: Option<Losses>,
    lost_ever: u64,
    trouble: Option<String>,
}

/// Calls that were not written and of which the log has not yet told.
#[derive(Debug, Clone)]
struct Losses {
    since: SystemTime,
    tools: BTreeMap<String, u64>,
}

impl Audit {
    /// Begins or goes on with the log in `directory`. Always works: what does not is told by [`Audit::trouble`] and
    /// tried again.
    pub fn open(directory: &Path) -> Audit {
        Self::with(directory, log::ROTATE_AT, QUEUE_BYTES)
    }

    fn with(directory: &Path, rotate_at: u64, queue_bytes: usize) -> Audit {
        let shared = Arc::new(Shared { queue: Queue::new(queue_bytes), notes: Mutex::default() });
        let (theirs, directory) = (Arc::clone(&shared), directory.to_owned());
        let writer = move || writer::run(&theirs, &directory, rotate_at);
        if let Err(error) = std::thread::Builder::new().name("audit".into()).spawn(writer) {
            shared.queue.leave();
            shared.set_trouble(Some(format!("the audit log has no thread to write it: {error}")));
        }
        Audit { shared }
    }

    /// Never waits.
    pub fn record(&self, record: Arc<Record>) {
        let weight = record.weight();
        if let Err(record) = self.shared.queue.push(record, weight, Haste::Usual) {
            self.shared.count_lost(record.tool);
        }
    }

    /// Why the log is not being written right now.
    pub fn trouble(&self) -> Option<String> {
        self.shared.notes().trouble.clone()
    }

    /// Records that never reached the log, of this broker.
    pub fn lost(&self) -> u64 {
        self.shared.notes().lost_ever
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        self.shared.queue.close();
        self.shared.queue.wait_until_left(LAST_WORDS);
    }
}

impl Shared {
    fn notes(&self) -> std::sync::MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_trouble(&self, trouble: Option<String>) {
        self.notes().trouble = trouble;
    }

    fn count_lost(&self, tool: &str) {
        let mut notes = self.notes();
        notes.lost_ever += 1;
        let losses = notes.lost.get_or_insert_with(|| Losses { since: SystemTime::now(), tools: BTreeMap::new() });
        *losses.tools.entry(tool.to_owned()).or_default() += 1;
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
