//! The requests that wait for an answer, under the client's ids and under ours.
//!
//! rmcp loses an answer when two requests in flight bear one id, and mixes two up when an id is used again after a
//! cancellation. It therefore sees ids of our own that never come twice; the client's come back on the way out.

use rmcp::model::RequestId;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Past this no line is read until answers were given. Tool calls that wait are far fewer (`admission`), and
/// everything else ends by itself, so this never keeps a cancellation from being heard.
const MOST: usize = 4096;

#[derive(Debug, Default)]
pub struct Ledger {
    entries: Mutex<Entries>,
    open: watch::Sender<Open>,
}

#[derive(Debug, Default)]
struct Entries {
    next: i64,
    by_ours: HashMap<i64, RequestId>,
    by_theirs: HashMap<RequestId, i64>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Open {
    requests: usize,
    /// The client sends no more.
    ended: bool,
}

impl Ledger {
    /// The id rmcp shall see; `None` when a request of that id is in flight.
    pub fn enter(&self, theirs: &RequestId) -> Option<RequestId> {
        let mut entries = self.entries();
        if entries.by_theirs.contains_key(theirs) {
            return None;
        }
        let ours = entries.next;
        entries.next += 1;
        entries.by_ours.insert(ours, theirs.clone());
        entries.by_theirs.insert(theirs.clone(), ours);
        self.tell(&entries);
        Some(RequestId::Number(ours))
    }

    /// The client's id of a request that is now answered; `None` when it was cancelled.
    pub fn answered(&self, ours: &RequestId) -> Option<RequestId> {
        let RequestId::Number(ours) = ours else { return None };
        let mut entries = self.entries();
        let theirs = entries.by_ours.remove(ours)?;
        entries.by_theirs.remove(&theirs);
        self.tell(&entries);
        Some(theirs)
    }

    /// Our id of a request the client gave up; `None` when there is no such request.
    pub fn canceled(&self, theirs: &RequestId) -> Option<RequestId> {
        let mut entries = self.entries();
        let ours = entries.by_theirs.remove(theirs)?;
        entries.by_ours.remove(&ours);
        self.tell(&entries);
        Some(RequestId::Number(ours))
    }

    pub fn end(&self) {
        self.open.send_modify(|open| open.ended = true);
    }

    pub async fn ended(&self) {
        self.until(|open| open.ended).await;
    }

    /// Waits until every request was answered.
    pub async fn settled(&self) {
        self.until(|open| open.requests == 0).await;
    }

    pub async fn room(&self) {
        self.until(|open| open.requests < MOST).await;
    }

    async fn until(&self, condition: impl Fn(&Open) -> bool) {
        if !condition(&self.open.borrow()) {
            // The sender lives as long as `self`.
            let _ = self.open.subscribe().wait_for(condition).await;
        }
    }

    fn tell(&self, entries: &Entries) {
        self.open.send_modify(|open| open.requests = entries.by_ours.len());
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
