//! The broker's side of the worker: requests go out, answers come back in any order, and a worker that died is replaced.
//!
//! The worker is a process like any other in the cell, started at the first request. Its death is told to whoever
//! waits for it; the next request gets a new one. One that finds something hidden bare begins nothing: it is let go when
//! its last request is answered, and a process that has covered it again takes over. What it says is data and may be
//! anything; what cannot be read as an answer is its end.

use super::Broker;
use super::cell::{Ready, Stdio};
use super::fault::Trouble;
use super::refused::{Code, Refused};
use crate::path::CellPath;
use crate::plan::command;
use crate::policy::Policy;
use crate::sys::Errno;
use crate::sys::reactor::watch_borrowed;
use crate::wire::Stage;
use crate::worker::ask::{Answer, Order, Reply, Terms, Told, Work};
use serde::Serialize;
use std::collections::HashMap;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as Pair;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::oneshot;

/// A filesystem that takes longer does not answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process that was ready and does not begin in this time is given up.
const BEGINNING: Duration = Duration::from_secs(10);

/// A worker may have died while it was idle, or found something bare; so often another one is tried.
const TRIES: usize = 3;

/// What one message may weigh, either way; the worker keeps its replies far below.
const MAX_FRAME: usize = 16 << 20;

/// Of the text in one reply, at most; what is asked for without a number is far less.
const REPLY_BYTES: u64 = 2 << 20;

/// Of what a write replaced: as base64 it fits a message.
pub const BACKUP_BYTES: u64 = 8 << 20;

type Waiting = Arc<Mutex<HashMap<u64, oneshot::Sender<Answer>>>>;

#[derive(Debug, Default)]
pub struct Desk {
    next: AtomicU64,
    /// Held while one is started.
    worker: tokio::sync::Mutex<Option<Arc<Worker>>>,
}

/// A worker, and whoever waits for it. It ends when nobody holds it any more.
#[derive(Debug)]
struct Worker {
    /// Held while a request is written.
    to: tokio::sync::Mutex<OwnedWriteHalf>,
    waiting: Waiting,
    listener: tokio::task::JoinHandle<()>,
    /// Letting go ends it.
    _ready: Ready,
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

/// What came of asking a worker.
enum Asked {
    Answered(Answer),
    /// It never got the whole request.
    Unheard,
    Died,
    Silent,
}

impl Broker {
    /// Has the worker do something, and waits for its answer.
    pub async fn work(&self, work: Work) -> Result<Told, Refused> {
        let id = self.desk.next.fetch_add(1, Ordering::Relaxed);
        let order = frame(&Order { id, work })?;
        for _ in 0..TRIES {
            let worker = self.worker().await?;
            match worker.ask(id, &order).await {
                Asked::Answered(Answer::Told(told)) => return Ok(told),
                Asked::Answered(Answer::Failed(failure)) => return Err(failure.into()),
                Asked::Answered(Answer::Bare) => {
                    self.dismiss(&worker).await;
                    self.home.pool().await?.discard();
                }
                Asked::Unheard => self.dismiss(&worker).await,
                Asked::Died => return Err(gone()),
                Asked::Silent => {
                    self.dismiss(&worker).await;
                    let message = format!("no answer within {} s; the filesystem may hang", PATIENCE.as_secs());
                    return Err(Refused::new(Code::Timeout, message));
                }
            }
        }
        Err(stale().into())
    }

    /// The worker at the desk, a new one if need be.
    async fn worker(&self) -> Result<Arc<Worker>, Refused> {
        let mut desk = self.desk.worker.lock().await;
        if let Some(worker) = desk.as_ref().filter(|worker| !worker.listener.is_finished()) {
            return Ok(Arc::clone(worker));
        }
        let worker = Arc::new(self.hire().await?);
        *desk = Some(Arc::clone(&worker));
        Ok(worker)
    }

    /// It gets no more requests; those it has are still answered.
    async fn dismiss(&self, worker: &Arc<Worker>) {
        let mut desk = self.desk.worker.lock().await;
        if desk.as_ref().is_some_and(|held| Arc::ptr_eq(held, worker)) {
            *desk = None;
        }
    }

    async fn hire(&self) -> Result<Worker, Refused> {
        let policy = self.policy();
        let plan = command::worker(&policy)?;
        let pool = self.home.pool().await?;
        let hidden = match self.home.walls() {
            Some(Ok(walls)) => walls.hidden.clone(),
            _ => Vec::new(),
        };
        let terms = frame(&terms(&policy, hidden))?;
        let mut tries = 0;
        let (ready, ours) = loop {
            tries += 1;
            let ready = pool.take().await?;
            match introduce(&ready, &plan).await {
                Ok(ours) => break (ready, ours),
                Err(trouble) if tries < TRIES && is_passing(&trouble) => {
                    // What waited ready is out of date, or died while it waited.
                    pool.discard();
                }
                Err(trouble) => return Err(trouble.into()),
            }
        };
        let lost = |error: std::io::Error| Refused::new(Code::SandboxUnavailable, error.to_string());
        let (from, mut to) = UnixStream::from_std(ours).map_err(lost)?.into_split();
        to.write_all(&terms).await.map_err(lost)?;
        let waiting = Waiting::default();
        let listener = tokio::spawn(listen(from, Arc::clone(&waiting)));
        pool.refill();
        Ok(Worker { to: tokio::sync::Mutex::new(to), waiting, listener, _ready: ready })
    }
}

impl Worker {
    async fn ask(&self, id: u64, order: &[u8]) -> Asked {
        let (tell, told) = oneshot::channel();
        lock(&self.waiting).insert(id, tell);
        // Whoever stops waiting takes its name off the list.
        let _entry = Entry { waiting: &self.waiting, id };
        if self.listener.is_finished() || self.to.lock().await.write_all(order).await.is_err() {
            return Asked::Unheard;
        }
        match tokio::time::timeout(PATIENCE, told).await {
            Ok(Ok(answer)) => Asked::Answered(answer),
            Ok(Err(_)) => Asked::Died,
            Err(_) => Asked::Silent,
        }
    }
}

struct Entry<'a> {
    waiting: &'a Waiting,
    id: u64,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        lock(self.waiting).remove(&self.id);
    }
}

/// Makes a waiting process the worker, and returns our end of its socket once it stands.
async fn introduce(ready: &Ready, plan: &command::CommandPlan) -> Result<Pair, Trouble> {
    let lost = |error: std::io::Error| Trouble {
        stage: Some(Stage::Stdio),
        errno: Errno::from_raw(error.raw_os_error().unwrap_or(0)),
        at: String::new(),
    };
    let (ours, theirs) = Pair::pair().map_err(lost)?;
    ours.set_nonblocking(true).map_err(lost)?;
    // What it may print goes nowhere.
    let nowhere = || File::options().write(true).open("/dev/null").map(OwnedFd::from).map_err(lost);
    ready.start(plan, &Stdio::Descriptors([theirs.into(), nowhere()?, nowhere()?]))?;
    let door = watch_borrowed(ready.door.as_fd(), Interest::READABLE).map_err(lost)?;
    if tokio::time::timeout(BEGINNING, door.readable()).await.is_err() {
        return Err(Trouble { stage: Some(Stage::Receive), errno: Errno::ETIMEDOUT, at: String::new() });
    }
    drop(door);
    ready.verdict().map_or(Ok(ours), Err)
}

fn is_passing(trouble: &Trouble) -> bool {
    trouble.stage.is_none_or(|stage| matches!(stage, Stage::Receive | Stage::CoverHidden))
}

/// Hands out answers until the worker is gone; whoever still waits then learns that.
async fn listen(mut from: OwnedReadHalf, waiting: Waiting) {
    while let Some(Reply { id, answer }) = next(&mut from).await {
        // Nobody may be waiting any more.
        let tell = lock(&waiting).remove(&id);
        if let Some(tell) = tell {
            let _ = tell.send(answer);
        }
    }
    lock(&waiting).clear();
}

async fn next(from: &mut OwnedReadHalf) -> Option<Reply> {
    let mut length = [0; 4];
    from.read_exact(&mut length).await.ok()?;
    let length = u32::from_ne_bytes(length) as usize;
    if length > MAX_FRAME {
        return None;
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes).await.ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// As `wire::Channel` takes it: a length, then JSON.
fn frame(message: &impl Serialize) -> Result<Vec<u8>, Refused> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, message).map_err(|error| Refused::new(Code::Internal, error.to_string()))?;
    let length = frame.len() - 4;
    if length > MAX_FRAME {
        let message = format!("the request has {length} bytes; at most {MAX_FRAME} reach the file worker");
        return Err(Refused::new(Code::TooLarge, message));
    }
    frame[..4].copy_from_slice(&(length as u32).to_ne_bytes());
    Ok(frame)
}

fn terms(policy: &Policy, hidden: Vec<CellPath>) -> Terms {
    Terms {
        workspace: CellPath::new(&policy.workspace),
        roots: policy.filesystem.grants.iter().map(|grant| CellPath::new(&grant.path)).collect(),
        max_file_bytes: policy.filesystem.max_file_bytes.0,
        reply_bytes: REPLY_BYTES,
        backup_bytes: BACKUP_BYTES,
        hidden,
    }
}

fn gone() -> Refused {
    let message = "the file worker died at this, for want of memory or by a kill; nothing half-written is left, and the \
                   next call gets a new one";
    Refused::new(Code::IoError, message)
}

fn stale() -> Trouble {
    Trouble { stage: Some(Stage::CoverHidden), errno: Errno::ESTALE, at: String::new() }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "desk_tests.rs"]
mod tests;
