//! Which processes there are: running ones, ended ones that are still shown, and seats for those about to start.

use super::managed::Managed;
use super::refused::{Code, Refused};
use crate::policy::Processes;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Ended processes that are still shown. Each costs the broker a few hundred bytes.
const MAX_FINISHED: usize = 512;

#[derive(Debug, Default)]
pub struct Registry(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    by_id: HashMap<String, Arc<Managed>>,
    running: Vec<Arc<Managed>>,
    /// Those that ended first come first.
    finished: VecDeque<Arc<Managed>>,
    /// About to start, by session; foreground ones have none.
    seats: Vec<Option<String>>,
}

/// Room for one process, held while it starts.
#[derive(Debug)]
pub struct Seat<'a> {
    registry: &'a Registry,
    session: Option<String>,
}

/// Whether someone waits for it, as for a command; such processes do not count among a session's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    Fore,
    Back,
}

impl Registry {
    /// Keeps room for one more, or says which limit was reached.
    pub fn reserve(&self, session: &str, ground: Ground, limits: &Processes) -> Result<Seat<'_>, Refused> {
        let mut entries = self.lock();
        let total = entries.running.len() + entries.seats.len();
        if total >= limits.total as usize {
            return Err(Refused::new(
                Code::ProcLimitExceeded,
                format!("{total} processes run already and `processes.total` is {}; stop one first", limits.total),
            )
            .with("limit", limits.total));
        }
        let in_session = entries.in_session(session);
        if ground == Ground::Back && in_session >= limits.per_session as usize {
            return Err(Refused::new(
                Code::ProcLimitExceeded,
                format!(
                    "{in_session} processes run in session `{session}` already and `processes.per_session` is {}; \
                     stop one first or use another session",
                    limits.per_session
                ),
            )
            .with("limit", limits.per_session));
        }
        let session = (ground == Ground::Back).then(|| session.to_owned());
        entries.seats.push(session.clone());
        Ok(Seat { registry: self, session })
    }

    pub fn insert(&self, managed: &Arc<Managed>) {
        let mut entries = self.lock();
        entries.by_id.insert(managed.id.clone(), Arc::clone(managed));
        entries.running.push(Arc::clone(managed));
    }

    /// One that ended before this broker started.
    pub fn insert_finished(&self, managed: Managed) {
        let managed = Arc::new(managed);
        let mut entries = self.lock();
        entries.by_id.insert(managed.id.clone(), Arc::clone(&managed));
        entries.finished.push_back(managed);
    }

    /// Moves it to those that ended; returns those that had to make room.
    pub fn finish(&self, managed: &Arc<Managed>) -> Vec<Arc<Managed>> {
        let mut entries = self.lock();
        entries.running.retain(|other| other.id != managed.id);
        if entries.by_id.contains_key(&managed.id) {
            entries.finished.push_back(Arc::clone(managed));
        }
        let mut gone = Vec::new();
        while entries.finished.len() > MAX_FINISHED {
            gone.extend(entries.finished.pop_front());
        }
        gone.iter().for_each(|old| drop(entries.by_id.remove(&old.id)));
        gone
    }

    pub fn remove(&self, id: &str) -> Option<Arc<Managed>> {
        let mut entries = self.lock();
        entries.running.retain(|other| other.id != id);
        entries.finished.retain(|other| other.id != id);
        entries.by_id.remove(id)
    }

    /// Takes out those that ended longer ago than they are to be shown.
    pub fn expire(&self, keep: Duration) -> Vec<Arc<Managed>> {
        let now = Instant::now();
        let ended = |managed: &Arc<Managed>| managed.ended().and_then(|ended| ended.when);
        let is_old = |when: Instant| now.saturating_duration_since(when) >= keep;
        let mut entries = self.lock();
        let mut old = Vec::new();
        // Those of earlier brokers come first and go by retention; of ours, those that ended first.
        if let Some(first) = entries.finished.iter().position(|managed| ended(managed).is_some()) {
            while entries.finished.get(first).and_then(ended).is_some_and(is_old) {
                old.extend(entries.finished.remove(first));
            }
        }
        old.iter().for_each(|managed| drop(entries.by_id.remove(&managed.id)));
        old
    }

    pub fn find(&self, id: &str) -> Option<Arc<Managed>> {
        self.lock().by_id.get(id).cloned()
    }

    /// An id that was never given out and one of another agent look the same.
    pub fn get(&self, id: &str) -> Result<Arc<Managed>, Refused> {
        self.find(id).ok_or_else(|| {
            Refused::new(
                Code::ProcessNotFound,
                format!("no process `{}`; `proc_list` shows those there are", shown(id)),
            )
        })
    }

    pub fn running(&self) -> Vec<Arc<Managed>> {
        self.lock().running.clone()
    }

    /// All, in the order of their start.
    pub fn all(&self) -> Vec<Arc<Managed>> {
        let mut all: Vec<_> = self.lock().by_id.values().cloned().collect();
        all.sort_by_key(|managed| (managed.started_at, managed.started));
        all
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn in_session(&self, session: &str) -> usize {
        let running = self.running.iter().filter(|m| m.ground() == Ground::Back && m.session() == session).count();
        running + self.seats.iter().filter(|seat| seat.as_deref() == Some(session)).count()
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        let mut entries = self.registry.lock();
        if let Some(at) = entries.seats.iter().position(|seat| *seat == self.session) {
            entries.seats.swap_remove(at);
        }
    }
}

/// A word of the agent's, short enough for a sentence.
pub fn shown(word: &str) -> String {
    let mut text: String = word.chars().take(80).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if text.len() < word.len() && word.chars().count() > 80 {
        text.push('…');
    }
    text
}
