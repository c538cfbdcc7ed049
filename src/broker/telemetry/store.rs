//! The database in use: rows in, rows out, and what to do when it fails.

use super::open::{self, Failure};
use super::{Outcome, Place, Which};
use crate::broker::audit::{Record, time};
use rusqlite::{Connection, Row, params};
use serde_json::{Map, Value, json};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// Of a command line or a list of paths; the audit log has more of it.
const SUMMARY_CHARACTERS: usize = 512;

/// Feedback kept.
const FEEDBACK_ROWS: i64 = 1000;

/// Rows are counted out after this many new ones.
const SWEEP_EVERY: u64 = 1000;

/// Between two tries to open what could not be opened.
const RETRY: Duration = Duration::from_secs(1);

/// Holds the database while there is one.
pub(super) struct Keeper<'a> {
    place: &'a Place,
    store: Option<Store>,
    failure: Option<Failure>,
    tried: Instant,
}

impl<'a> Keeper<'a> {
    pub(super) fn new(place: &'a Place) -> Self {
        Keeper { place, store: None, failure: None, tried: Instant::now() }
    }

    /// Opens it; says what is in the way.
    pub(super) fn prepare(&mut self) -> Option<String> {
        self.tried = Instant::now();
        match open::open(&self.place.directory) {
            Ok(connection) => {
                self.failure = None;
                let (agent, keep, node) = (self.place.agent.clone(), self.place.keep, self.node());
                self.store = Some(Store { connection, agent, keep, node, unswept: SWEEP_EVERY });
            }
            Err(failure) => self.failure = Some(failure),
        }
        self.trouble()
    }

    pub(super) fn store(&mut self) -> Result<&mut Store, String> {
        // Another broker may have found it damaged and set it aside. SQLite would go on writing where it lies now.
        if self.store.as_ref().is_some_and(|store| store.node != self.node()) {
            self.store = None;
        }
        let due = match self.failure {
            Some(Failure::Lasting(_)) => false,
            Some(Failure::Passing(_)) => self.tried.elapsed() >= RETRY,
            None => true,
        };
        if self.store.is_none() && due {
            self.prepare();
        }
        let why = self.trouble();
        self.store.as_mut().ok_or_else(|| why.unwrap_or_default())
    }

    fn node(&self) -> Option<(u64, u64)> {
        let facts = std::fs::symlink_metadata(self.place.directory.join(super::FILE)).ok()?;
        Some((facts.dev(), facts.ino()))
    }

    pub(super) fn trouble(&self) -> Option<String> {
        self.failure.as_ref().map(|(Failure::Lasting(why) | Failure::Passing(why))| why.clone())
    }

    /// Stores records; how many could not be stored.
    pub(super) fn insert(&mut self, records: &[Arc<Record>]) -> u64 {
        // Once more after an error: a damaged file is set aside, and there is a new one.
        for _ in 0..2 {
            let Ok(store) = self.store() else { break };
            match store.insert(records) {
                Ok(()) => return 0,
                Err(error) => self.give_up(&error),
            }
        }
        records.len() as u64
    }

    /// Lets go of a database that failed: a damaged one is set aside, any other is opened again.
    pub(super) fn give_up(&mut self, error: &rusqlite::Error) {
        self.store = None;
        self.failure = Some(Failure::Passing(format!("`{}`: {error}", super::FILE)));
        if open::is_damage(error) {
            match open::discard(&self.place.directory) {
                Ok(()) => self.failure = None,
                Err(failure) => self.failure = Some(failure),
            }
        }
    }
}

/// An open database of the version this program knows.
pub(super) struct Store {
    pub(super) connection: Connection,
    pub(super) agent: String,
    keep: super::Keep,
    /// Device and inode it was opened from.
    node: Option<(u64, u64)>,
    unswept: u64,
}

impl Store {
    fn insert(&mut self, records: &[Arc<Record>]) -> rusqlite::Result<()> {
        let change = self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        {
            let mut insert = change.prepare_cached(
                "INSERT INTO calls (at_ms, call_id, session, tool, program, summary, cwd, decision, duration_us,
                    proc_id, exit_code, signal, reason, bytes_in, bytes_out)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
            )?;
            for record in records {
                let summary: String = record.summary().chars().take(SUMMARY_CHARACTERS).collect();
                insert.execute(params![
                    time::milliseconds(record.time),
                    record.call_id,
                    record.session,
                    record.tool,
                    record.program(),
                    summary,
                    record.cwd,
                    record.decision,
                    record.duration_us as i64,
                    record.proc_id,
                    record.exit.and_then(|exit| exit.code),
                    record.exit.and_then(|exit| exit.signal),
                    record.exit.map(|exit| exit.reason.name()),
                    record.bytes_in as i64,
                    record.bytes_out as i64,
                ])?;
            }
        }
        change.commit()?;
        self.unswept += records.len() as u64;
        if self.unswept >= SWEEP_EVERY { self.sweep() } else { Ok(()) }
    }

    /// Deletes what is too old or too much.
    fn sweep(&mut self) -> rusqlite::Result<()> {
        let oldest = SystemTime::now().checked_sub(self.keep.age).map_or(0, time::milliseconds);
        self.connection.execute("DELETE FROM calls WHERE at_ms < ?1", [oldest])?;
        let beyond = "DELETE FROM calls WHERE id <= (SELECT max(id) FROM calls) - ?1";
        self.connection.execute(beyond, [self.keep.calls as i64])?;
        self.unswept = 0;
        Ok(())
    }

    pub(super) fn recent_calls(&mut self, which: &Which) -> rusqlite::Result<Vec<Value>> {
        let errors = match which.outcome {
            Outcome::Any => "",
            Outcome::Errors => "AND decision <> 'allowed'",
        };
        let text = format!(
            "SELECT at_ms, call_id, session, tool, summary, cwd, decision, duration_us, proc_id, exit_code, signal,
                reason, bytes_in, bytes_out
             FROM calls WHERE (?1 IS NULL OR tool = ?1) {errors} ORDER BY id DESC LIMIT ?2"
        );
        let mut query = self.connection.prepare_cached(&text)?;
        let rows = query.query_map(params![which.tool, which.limit as i64], call_of)?;
        rows.collect()
    }

    pub(super) fn feedback(&mut self, text: &str, rating: Option<u8>) -> rusqlite::Result<i64> {
        let now = time::milliseconds(SystemTime::now());
        self.connection
            .execute("INSERT INTO feedback (at_ms, rating, text) VALUES (?1, ?2, ?3)", params![now, rating, text])?;
        let id = self.connection.last_insert_rowid();
        self.connection.execute("DELETE FROM feedback WHERE id <= ?1", [id - FEEDBACK_ROWS])?;
        Ok(id)
    }
}

fn call_of(row: &Row<'_>) -> rusqlite::Result<Value> {
    let mut call = Map::new();
    let at = u64::try_from(row.get::<_, i64>(0)?).unwrap_or(0);
    call.insert("time".into(), json!(time::rfc3339(SystemTime::UNIX_EPOCH + Duration::from_millis(at))));
    let texts = [(1, "call_id"), (2, "session"), (3, "tool"), (4, "summary"), (5, "cwd"), (6, "decision")];
    for (index, name) in texts.into_iter().chain([(8, "proc_id"), (11, "reason")]) {
        if let Some(text) = row.get::<_, Option<String>>(index)? {
            call.insert(name.into(), text.into());
        }
    }
    for (index, name) in [(9, "exit_code"), (10, "signal"), (12, "bytes_in"), (13, "bytes_out")] {
        if let Some(number) = row.get::<_, Option<i64>>(index)? {
            call.insert(name.into(), number.into());
        }
    }
    call.insert("duration_ms".into(), json!(row.get::<_, i64>(7)? / 1000));
    Ok(Value::Object(call))
}
