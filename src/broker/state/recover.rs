//! What brokers that died have left: their processes, with output that can be read as if nothing had happened.

use super::directory::{self, Locked, MAKING, PREFIX};
use super::journal::{self, Ended, Journal, Record, Started, Told};
use super::{Age, Entry, Home, Place, RECORDING, State};
use crate::broker::output::folder::{Files as _, Folder};
use crate::broker::output::{Output, Remains, Totals};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Making a directory takes no longer than this; one that is still being made after it never will be.
const MAKING_TIME: Duration = Duration::from_secs(600);

/// More than any output; a journal that claims more is wrong.
const MOST: u64 = 1 << 62;

/// A process of a broker that died.
#[derive(Debug)]
pub struct Recovered {
    pub record: Started,
    /// None: the broker died first.
    pub end: Option<Ended>,
    pub output: Arc<Output>,
}

#[derive(Debug, Default)]
pub struct Recovery {
    pub processes: Vec<Recovered>,
    /// Directories that were left alone, and why.
    pub warnings: Vec<String>,
    /// Lines of journals that made no sense.
    pub skipped_lines: u64,
}

/// The files of one process.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub segments: Vec<(u64, u64)>,
    pub recorded: bool,
    pub newest: Option<SystemTime>,
}

/// What a journal says of one process.
#[derive(Debug)]
pub(super) struct Story {
    pub started: Started,
    pub ended: Option<Ended>,
}

impl State {
    /// Adopts the directories of brokers of this agent that died in this workspace. Those of living ones are theirs, and so is what they
    /// adopted.
    pub fn recover(&self) -> Recovery {
        let mut recovery = Recovery::default();
        let Some(place) = &self.place else { return recovery };
        let entries = match directory::entries(&place.agent.path) {
            Ok(entries) => entries,
            Err(error) => {
                recovery.warnings.push(format!("earlier processes are not listed: {error}"));
                return recovery;
            }
        };
        let now = SystemTime::now();
        for (name, about) in entries {
            let age = about.modified().map_or(Duration::ZERO, |then| age(now, then));
            if name.starts_with(&format!("{MAKING}_")) && age > MAKING_TIME {
                // Whoever comes later looks again.
                let _ = directory::remove_unmade(&place.agent, &name);
            }
            if !name.starts_with(&format!("{PREFIX}-")) || name == place.own.name {
                continue;
            }
            // Another project's is for its own brokers to show; what nobody came back for is swept by anyone.
            let is_ours = name.starts_with(&place.siblings);
            if !is_ours && age <= self.limits.retention {
                continue;
            }
            let listed = recovery.processes.len();
            match directory::adopt(&place.agent, &name) {
                Ok(Some(locked)) => self.read_back(place, locked, &mut recovery),
                Ok(None) => {}
                Err(error) => recovery.warnings.push(format!("`{name}` was left alone: {error}")),
            }
            if !is_ours {
                recovery.processes.truncate(listed);
            }
        }
        recovery
    }

    fn read_back(&self, place: &Place, locked: Locked, recovery: &mut Recovery) {
        let name = locked.name.clone();
        let (records, skipped) = match journal::read(&locked.folder) {
            Told::Records { records, skipped } => (records, skipped),
            Told::Strange(why) => {
                recovery.warnings.push(format!("`{name}` was left alone: {why}"));
                return;
            }
        };
        recovery.skipped_lines += skipped;
        // Nobody answers there any more.
        let _ = locked.folder.remove(crate::broker::control::NAME);
        let mut files = match directory::entries(&place.agent.path.join(&name)) {
            Ok(entries) => segments(&entries),
            Err(error) => {
                recovery.warnings.push(format!("`{name}` was left alone: {error}"));
                return;
            }
        };
        let journal = Journal::resume(Arc::clone(&locked.folder), records.len()).ok();
        let folder = Arc::clone(&locked.folder);
        let mut known = self.known();
        let home = known.homes.len();
        known.homes.push(Home { journal, adopted: Some(locked) });
        let (since, now) = (Instant::now(), SystemTime::now());
        let mut keep = |proc_id: &str, files: Files, story: Option<&Story>| {
            let recorded = files.recorded;
            let remains = remains(&folder, proc_id, files, story, now);
            let ended = Some(Age { since, before: age(now, remains.active) });
            let output = Output::recovered(remains);
            let entry = Entry { home, output: Arc::clone(&output), ended, recorded };
            known.processes.entry(proc_id.to_owned()).or_insert(entry);
            output
        };
        for story in stories(records) {
            let proc_id = story.started.proc_id.clone();
            let output = keep(&proc_id, files.remove(&proc_id).unwrap_or_default(), Some(&story));
            recovery.processes.push(Recovered { record: story.started, end: story.ended, output });
        }
        // Output whose record was lost: listed by nobody, swept like the rest.
        for (proc_id, files) in files {
            keep(&proc_id, files, None);
        }
        known.leave(place, home);
    }
}

/// What is left of a process's output.
pub(super) fn remains(
    folder: &Arc<Folder>,
    proc_id: &str,
    files: Files,
    story: Option<&Story>,
    now: SystemTime,
) -> Remains {
    let told = story.map(|story| story.ended.as_ref().map_or(story.started.started_at, |ended| ended.ended_at));
    Remains {
        folder: Arc::clone(folder),
        proc_id: proc_id.to_owned(),
        segments: files.segments,
        known: story.and_then(|story| story.ended.as_ref()).map(totals),
        active: files.newest.or(told.map(from_micros)).unwrap_or(now),
    }
}

/// Processes in the order they started, without those that were removed.
pub(super) fn stories(records: Vec<Record>) -> Vec<Story> {
    let mut order = Vec::new();
    let mut told: HashMap<String, Story> = HashMap::new();
    for record in records {
        match record {
            Record::Started(started) => {
                order.push(started.proc_id.clone());
                told.insert(started.proc_id.clone(), Story { started, ended: None });
            }
            Record::Ended(ended) => {
                if let Some(story) = told.get_mut(&ended.proc_id) {
                    story.ended = Some(ended);
                }
            }
            Record::Removed { proc_id } => drop(told.remove(&proc_id)),
            // Its files are gone or nearly so; what it wrote later is in new ones.
            Record::OutputRemoved { proc_id } => {
                if let Some(ended) = told.get_mut(&proc_id).and_then(|story| story.ended.as_mut()) {
                    ended.dropped_bytes = ended.total_bytes;
                }
            }
        }
    }
    order.iter().filter_map(|proc_id| told.remove(proc_id)).collect()
}

/// Segment files and recordings by process.
pub(super) fn segments(entries: &[(String, std::fs::Metadata)]) -> HashMap<String, Files> {
    let mut found: HashMap<String, Files> = HashMap::new();
    for (name, about) in entries.iter().filter(|(_, about)| about.is_file()) {
        if let Some(proc_id) = name.strip_suffix(RECORDING) {
            let files = found.entry(proc_id.to_owned()).or_default();
            files.recorded = true;
            files.newest = files.newest.max(about.modified().ok());
        }
        let parts = name.strip_suffix(".log").and_then(|rest| rest.rsplit_once('.'));
        if let Some((proc_id, number)) = parts
            && let Ok(number) = number.parse()
        {
            let files = found.entry(proc_id.to_owned()).or_default();
            files.segments.push((number, about.len()));
            files.newest = files.newest.max(about.modified().ok());
        }
    }
    found
}

fn totals(ended: &Ended) -> Totals {
    Totals {
        total_bytes: ended.total_bytes.min(MOST),
        stdout_bytes: ended.stdout_bytes,
        stderr_bytes: ended.stderr_bytes,
        total_lines: ended.total_lines.min(MOST),
        dropped_bytes: ended.dropped_bytes,
        closed: true,
    }
}

/// How long ago something was; what is dated in the future is new.
fn age(now: SystemTime, then: SystemTime) -> Duration {
    now.duration_since(then).unwrap_or_default()
}

fn from_micros(micros: u64) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_micros(micros)).unwrap_or(UNIX_EPOCH)
}
