//! Figures about calls, for the agent and its operator, in `telemetry.sqlite`.
//!
//! A thread of its own holds the database (`store`). Records go through a bounded queue and are dropped and counted
//! when it is full; questions go through the same queue and are answered after what came before them. A database that
//! is damaged is set aside and a new one begun, one from a newer stockade is left alone (`open`). The audit log is the
//! record that counts; this one may be thrown away.

mod open;
mod stats;
mod store;

use super::audit::queue::{Haste, Queue, Taken};
use super::audit::{Record, Redactor};
use super::refused::{Code, Refused};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use store::Store;
use tokio::sync::oneshot;

pub const FILE: &str = "telemetry.sqlite";

/// Answered at once at most.
pub const MOST_CALLS: usize = 500;
/// Characters of one feedback.
pub const LONGEST_FEEDBACK: usize = 4000;

const QUEUE_BYTES: usize = 4 << 20;

/// Records gather for this long before they are written in one transaction.
const GATHER: Duration = Duration::from_millis(250);

const LAST_WORDS: Duration = Duration::from_secs(2);

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub struct Keep {
    pub calls: u64,
    pub age: Duration,
}

impl Default for Keep {
    fn default() -> Self {
        Keep { calls: 100_000, age: Duration::from_secs(90 * 86_400) }
    }
}

#[derive(Debug)]
pub struct Telemetry {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    queue: Queue<Message>,
    dropped: AtomicU64,
    trouble: Mutex<Option<String>>,
}

enum Message {
    Record(Arc<Record>),
    Question(Question),
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Message::Record(_) => "Record",
            Message::Question(_) => "Question",
        })
    }
}

/// Gives back what went wrong with the database, if anything did.
type Question = Box<dyn FnOnce(Result<&mut Store, String>) -> Option<rusqlite::Error> + Send>;

impl Telemetry {
    /// Always works: what does not is told by [`Telemetry::trouble`].
    pub fn open(directory: &Path, agent: &str, keep: Keep) -> Telemetry {
        let shared =
            Arc::new(Shared { queue: Queue::new(QUEUE_BYTES), dropped: AtomicU64::new(0), trouble: Mutex::default() });
        let theirs = Arc::clone(&shared);
        let place = Place { directory: directory.to_owned(), agent: agent.to_owned(), keep };
        let spawned = std::thread::Builder::new().name("telemetry".into()).spawn(move || run(&theirs, &place));
        if let Err(error) = spawned {
            shared.queue.leave();
            shared.set_trouble(Some(format!("telemetry has no thread: {error}")));
        }
        Telemetry { shared }
    }

    /// Never waits; a record that finds no room is dropped and counted.
    pub fn record(&self, record: Arc<Record>) {
        let weight = record.weight();
        if self.shared.queue.push(Message::Record(record), weight, Haste::Usual).is_err() {
            self.shared.count_dropped(1);
        }
    }

    /// Counts, bytes, durations, failures, token estimates and top commands, since a moment or all that is kept.
    pub async fn usage_stats(&self, since: Option<SystemTime>) -> Result<Value, Refused> {
        let dropped = self.dropped();
        self.ask(move |store| store.usage_stats(since, dropped)).await
    }

    /// The last calls, newest first.
    pub async fn recent_calls(&self, which: Which) -> Result<Vec<Value>, Refused> {
        if which.limit == 0 || which.limit > MOST_CALLS {
            return Err(Refused::invalid(format!("`limit` is {}; accepted: 1 to {MOST_CALLS}", which.limit)));
        }
        self.ask(move |store| store.recent_calls(&which)).await
    }

    /// Stores what an agent has to say, without its secrets; the number it is stored under.
    pub async fn feedback(&self, redactor: &Redactor, text: &str, rating: Option<u8>) -> Result<i64, Refused> {
        let length = text.chars().count();
        if text.trim().is_empty() || length > LONGEST_FEEDBACK {
            let rule = format!("accepted: 1 to {LONGEST_FEEDBACK}, not only blanks");
            return Err(Refused::invalid(format!("`text` has {length} characters; {rule}")));
        }
        if let Some(rating) = rating.filter(|rating| !(1..=5).contains(rating)) {
            return Err(Refused::invalid(format!("`rating` is {rating}; accepted: 1 to 5")));
        }
        let text = redactor.text(text);
        self.ask(move |store| store.feedback(&text, rating)).await
    }

    /// Why nothing is being stored right now.
    pub fn trouble(&self) -> Option<String> {
        self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records that were not stored, of this broker.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Store) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Refused> {
        let unavailable = |why: String| Refused::new(Code::IoError, format!("telemetry is not available: {why}"));
        let (sender, receiver) = oneshot::channel();
        let question: Question = Box::new(move |store| {
            let (answer, error) = match store.map(work) {
                Ok(Ok(answer)) => (Ok(answer), None),
                Ok(Err(error)) => (Err(error.to_string()), Some(error)),
                Err(why) => (Err(why), None),
            };
            // Whoever asked may have gone.
            drop(sender.send(answer));
            error
        });
        if self.shared.queue.push(Message::Question(question), 256, Haste::Urgent).is_err() {
            return Err(unavailable(self.trouble().unwrap_or_else(|| "too much is waiting to be stored".into())));
        }
        let answer = receiver.await.unwrap_or_else(|_| Err("it has ended".into()));
        answer.map_err(unavailable)
    }
}

/// Which calls to tell of.
#[derive(Debug, Clone)]
pub struct Which {
    pub limit: usize,
    pub tool: Option<String>,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Any,
    /// Refused calls.
    Errors,
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        self.shared.queue.close();
        self.shared.queue.wait_until_left(LAST_WORDS);
    }
}

impl Shared {
    fn set_trouble(&self, trouble: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    fn count_dropped(&self, count: u64) {
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }
}

struct Place {
    directory: PathBuf,
    agent: String,
    keep: Keep,
}

fn run(shared: &Shared, place: &Place) {
    let mut keeper = store::Keeper::new(place);
    shared.set_trouble(keeper.prepare());
    loop {
        let first = shared.queue.take(None);
        let Taken { items: more, last } = match first.last || first.items.iter().any(is_question) {
            true => Taken { items: Default::default(), last: first.last },
            false => shared.queue.gather(GATHER),
        };
        let mut records = Vec::new();
        for message in first.items.into_iter().chain(more) {
            match message {
                Message::Record(record) => records.push(record),
                Message::Question(question) => {
                    store_all(shared, &mut keeper, &mut records);
                    // Told before the answer: whoever has it may ask about trouble next.
                    let _ = keeper.store();
                    shared.set_trouble(keeper.trouble());
                    if let Some(error) = question(keeper.store()) {
                        keeper.give_up(&error);
                        shared.set_trouble(keeper.trouble());
                    }
                }
            }
        }
        store_all(shared, &mut keeper, &mut records);
        if last {
            break;
        }
    }
    // Closing it is part of the work that whoever closes the queue waits for.
    drop(keeper);
    shared.queue.leave();
}

fn is_question(message: &Message) -> bool {
    matches!(message, Message::Question(_))
}

fn store_all(shared: &Shared, keeper: &mut store::Keeper<'_>, records: &mut Vec<Arc<Record>>) {
    if !records.is_empty() {
        shared.count_dropped(keeper.insert(records));
        shared.set_trouble(keeper.trouble());
        records.clear();
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
