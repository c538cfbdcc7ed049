//! What outlives a broker: a directory per run with a journal and the output of its processes, and what earlier runs left.
//!
//! A broker deletes only in directories whose lock it holds: its own, and those of brokers that died, which it adopts when it
//! starts and keeps until it ends. Where no directory can be had the broker still runs, with its output in memory.

mod directory;
mod id;
mod journal;
pub mod look;
mod recover;

#[cfg(test)]
mod tests;

pub use id::new_id;
pub use journal::{Ended, Started};
pub use recover::{Recovered, Recovery};

use super::output::folder::{Files, Folder};
use super::output::{Bounds, Log, Output, Scribe};
use directory::{Agent, Locked};
use journal::{Journal, Record};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Finished processes of one agent whose output is kept: each has a file or more, and a line at the next start.
const MAX_KEPT: usize = 4096;

#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How long the output of a process is kept after its end.
    pub retention: Duration,
    /// Of all output of the agent's finished processes; the oldest goes first.
    pub max_bytes: u64,
}

#[derive(Debug)]
pub struct State {
    /// None: everything lives in memory.
    place: Option<Place>,
    /// Why there is no place.
    reason: Option<String>,
    limits: Limits,
    known: Mutex<Known>,
    deleted: Mutex<Deleted>,
}

/// What retention took away, since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deleted {
    pub processes: u64,
    pub bytes: u64,
}

#[derive(Debug)]
struct Place {
    agent: Agent,
    own: Locked,
    /// How the directories of this workspace's brokers begin.
    siblings: String,
}

#[derive(Debug)]
struct Known {
    /// This broker's first, then those of the directories it adopted.
    homes: Vec<Home>,
    processes: HashMap<String, Entry>,
}

#[derive(Debug)]
struct Home {
    journal: Option<Journal>,
    /// Of a broker that died; gone once it is empty.
    adopted: Option<Locked>,
}

#[derive(Debug)]
struct Entry {
    home: usize,
    output: Arc<Output>,
    ended: Option<Age>,
    /// Whether a recording lies beside its output.
    recorded: bool,
}

/// How old something is, by a clock that does not jump.
#[derive(Debug, Clone, Copy)]
struct Age {
    since: Instant,
    /// How old it was then.
    before: Duration,
}

impl Age {
    fn at(self, now: Instant) -> Duration {
        self.before + now.saturating_duration_since(self.since)
    }
}

/// What a sweep deleted.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Swept {
    pub proc_ids: Vec<String>,
    pub bytes: u64,
}

impl State {
    /// Makes this broker's directory below `<base>/<agent>/` and takes its lock.
    pub fn open(base: &Path, agent: &str, workspace: &Path, limits: Limits) -> Result<State, String> {
        let agent = directory::open_agent(base, agent)?;
        let own = directory::make(&agent, workspace).map_err(|error| format!("`{}`: {error}", agent.path.display()))?;
        let home = Home { journal: Some(Journal::new(Arc::clone(&own.folder))), adopted: None };
        let siblings = directory::place(workspace);
        Ok(State::with(Some(Place { agent, own, siblings }), None, limits, home))
    }

    /// A state that keeps nothing, and says why.
    pub fn nowhere(reason: impl Into<String>, limits: Limits) -> State {
        State::with(None, Some(reason.into()), limits, Home { journal: None, adopted: None })
    }

    fn with(place: Option<Place>, reason: Option<String>, limits: Limits, home: Home) -> State {
        let known = Mutex::new(Known { homes: vec![home], processes: HashMap::new() });
        State { place, reason, limits, known, deleted: Mutex::default() }
    }

    /// The agent's directory, or why there is none.
    pub fn directory(&self) -> Result<PathBuf, String> {
        let missing = || self.reason.clone().unwrap_or_default();
        self.place.as_ref().map(|place| place.agent.path.clone()).ok_or_else(missing)
    }

    /// The output of a process that is about to start.
    pub fn output(&self, proc_id: &str, bounds: Bounds, scribe: &Scribe) -> Arc<Output> {
        let log = self.place.as_ref().map(|place| Log::new(Arc::clone(&place.own.folder), proc_id));
        let output = Output::new(bounds, log, scribe);
        let entry = Entry { home: 0, output: Arc::clone(&output), ended: None, recorded: false };
        self.known().processes.insert(proc_id.to_owned(), entry);
        output
    }

    /// This broker's own directory.
    pub(super) fn folder(&self) -> Option<Arc<Folder>> {
        self.place.as_ref().map(|place| Arc::clone(&place.own.folder))
    }

    /// What every sweep so far deleted.
    pub fn deleted(&self) -> Deleted {
        *self.deleted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the recording of a process goes.
    pub fn transcript(&self, proc_id: &str) -> Option<PathBuf> {
        let place = self.place.as_ref()?;
        if let Some(entry) = self.known().processes.get_mut(proc_id) {
            entry.recorded = true;
        }
        Some(place.agent.path.join(&place.own.name).join(recording(proc_id)))
    }

    /// An error means that the record waits for the next one; the process may go on.
    pub fn started(&self, started: Started) -> io::Result<()> {
        self.known().write(0, &Record::Started(started))
    }

    pub fn ended(&self, ended: Ended) -> io::Result<()> {
        let mut known = self.known();
        if let Some(entry) = known.processes.get_mut(&ended.proc_id) {
            entry.ended = Some(Age { since: Instant::now(), before: Duration::ZERO });
        }
        known.write(0, &Record::Ended(ended))
    }

    /// Forgets a process, its output included, also one of an earlier broker.
    pub fn removed(&self, proc_id: &str) -> io::Result<()> {
        let mut known = self.known();
        let Some(entry) = known.processes.remove(proc_id) else { return Ok(()) };
        // The record goes first: files without a process are swept, a process without files would be listed.
        let written = known.write(entry.home, &Record::Removed { proc_id: proc_id.to_owned() });
        entry.output.discard();
        if let Some(place) = &self.place {
            let adopted = known.homes.get(entry.home).and_then(|home| home.adopted.as_ref());
            let _ = adopted.unwrap_or(&place.own).folder.remove(&recording(proc_id));
            known.leave(place, entry.home);
        }
        written
    }

    /// Forgets what a process wrote until now.
    pub fn output_removed(&self, proc_id: &str) -> io::Result<()> {
        let mut known = self.known();
        let Some(entry) = known.processes.get(proc_id) else { return Ok(()) };
        let (home, output) = (entry.home, Arc::clone(&entry.output));
        let written = known.write(home, &Record::OutputRemoved { proc_id: proc_id.to_owned() });
        drop(known);
        output.clear();
        written
    }

    /// Why something is not kept at present.
    pub fn trouble(&self) -> Option<String> {
        let known = self.known();
        self.reason.clone().or_else(|| known.homes.iter().find_map(|home| home.journal.as_ref()?.trouble()))
    }

    /// Deletes finished processes that are older than `retention`, then the oldest beyond [`MAX_KEPT`] or `max_bytes`.
    pub fn sweep(&self, now: Instant) -> Swept {
        let mut ended: Vec<(Duration, String, u64)> = Vec::new();
        let mut bytes = 0;
        let known = self.known();
        for (proc_id, entry) in &known.processes {
            let size = entry.output.disk_bytes() + self.recorded_bytes(&known, proc_id, entry);
            bytes += size;
            ended.extend(entry.ended.map(|age| (age.at(now), proc_id.clone(), size)));
        }
        drop(known);
        ended.sort_unstable_by(|one, other| other.cmp(one));
        let mut left = ended.len();
        let mut swept = Swept::default();
        for (age, proc_id, size) in ended {
            let (is_young, are_few) = (age <= self.limits.retention, left <= MAX_KEPT);
            if is_young && are_few && bytes <= self.limits.max_bytes {
                break;
            }
            // Among those young enough, one without output would free nothing.
            if is_young && are_few && size == 0 {
                continue;
            }
            left -= 1;
            bytes -= size;
            swept.bytes += size;
            // A record that waits for space is written with the next one.
            let _ = self.removed(&proc_id);
            swept.proc_ids.push(proc_id);
        }
        let mut deleted = self.deleted.lock().unwrap_or_else(PoisonError::into_inner);
        deleted.processes += swept.proc_ids.len() as u64;
        deleted.bytes += swept.bytes;
        drop(deleted);
        swept
    }

    fn recorded_bytes(&self, known: &Known, proc_id: &str, entry: &Entry) -> u64 {
        let Some(place) = self.place.as_ref().filter(|_| entry.recorded) else { return 0 };
        let adopted = known.homes.get(entry.home).and_then(|home| home.adopted.as_ref());
        let folder = &adopted.unwrap_or(&place.own).folder;
        folder.read(&recording(proc_id)).and_then(|file| file.metadata()).map_or(0, |about| about.len())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the recording of a process is called.
fn recording(proc_id: &str) -> String {
    format!("{proc_id}{RECORDING}")
}

const RECORDING: &str = ".cast";

impl Known {
    fn write(&mut self, home: usize, record: &Record) -> io::Result<()> {
        match self.homes.get_mut(home).and_then(|home| home.journal.as_mut()) {
            Some(journal) => journal.write(record),
            None => Ok(()),
        }
    }

    /// Removes an adopted directory when nobody is at home any more.
    fn leave(&mut self, place: &Place, home: usize) {
        if self.processes.values().any(|entry| entry.home == home) {
            return;
        }
        if let Some(adopted) = self.homes.get_mut(home).and_then(|home| home.adopted.take()) {
            self.homes[home].journal = None;
            // One that is not empty stays, and a later broker looks again.
            let _ = directory::remove(&place.agent, &adopted);
        }
    }
}
