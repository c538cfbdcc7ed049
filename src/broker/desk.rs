//! The broker's side of the worker: requests go out, answers come back in any order, and a worker that died is replaced.
//!
//! The worker is a process like any other in the cell, started at the first request. Its death is told to whoever
//! waits for it; the next request gets a new one.

use super::Broker;
use super::cell::{Ready, Stdio};
use super::refused::{Code, Refused};
use crate::path::CellPath;
use crate::plan::command;
use crate::policy::Policy;
use crate::worker::ask::{Order, Reply, Terms, Told, Work};
use crate::worker::failure::Failure;
use serde::Serialize;
use std::collections::HashMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as Pair;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::oneshot;

/// A filesystem that takes longer does not answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// What one answer may weigh; the worker keeps its replies far below.
const MAX_ANSWER: usize = 16 << 20;

/// Of the text in one reply; clients show a model no more.
const REPLY_BYTES: u64 = 256 << 10;

type Waiting = Arc<Mutex<HashMap<u64, oneshot::Sender<Result<Told, Failure>>>>>;

#[derive(Debug, Default)]
pub struct Desk {
    next: AtomicU64,
    /// Held while one is started, and while a request is written.
    worker: tokio::sync::Mutex<Option<Worker>>,
}

#[derive(Debug)]
struct Worker {
    to: OwnedWriteHalf,
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

impl Broker {
    /// Has the worker do something, and waits for its answer.
    pub async fn work(&self, work: Work) -> Result<Told, Refused> {
        let id = self.desk.next.fetch_add(1, Ordering::Relaxed);
        let order = frame(&Order { id, work })?;
        let told = {
            let mut worker = self.desk.worker.lock().await;
            if worker.as_ref().is_none_or(|worker| worker.listener.is_finished()) {
                *worker = Some(self.hire().await?);
            }
            let Some(live) = worker.as_mut() else { return Err(gone()) };
            let (tell, told) = oneshot::channel();
            lock(&live.waiting).insert(id, tell);
            if live.to.write_all(&order).await.is_err() {
                *worker = None;
                return Err(gone());
            }
            told
        };
        match tokio::time::timeout(PATIENCE, told).await {
            Ok(Ok(answer)) => answer.map_err(Into::into),
            Ok(Err(_)) => Err(gone()),
            Err(_) => {
                let message = format!("no answer within {} s; the filesystem may hang", PATIENCE.as_secs());
                Err(Refused::new(Code::Timeout, message))
            }
        }
    }

    async fn hire(&self) -> Result<Worker, Refused> {
        let policy = self.policy();
        let plan = command::worker(&policy)?;
        let ready = self.home.pool().await?.take().await?;
        let lost = |error: std::io::Error| Refused::new(Code::SandboxUnavailable, error.to_string());
        let (ours, theirs) = Pair::pair().map_err(lost)?;
        ours.set_nonblocking(true).map_err(lost)?;
        // What it may print goes nowhere.
        let nowhere = || File::options().write(true).open("/dev/null").map(OwnedFd::from).map_err(lost);
        ready.start(&plan, &Stdio::Descriptors([theirs.into(), nowhere()?, nowhere()?]))?;
        let (from, mut to) = UnixStream::from_std(ours).map_err(lost)?.into_split();
        to.write_all(&frame(&terms(&policy))?).await.map_err(lost)?;
        let waiting = Waiting::default();
        let listener = tokio::spawn(listen(from, Arc::clone(&waiting)));
        Ok(Worker { to, waiting, listener, _ready: ready })
    }
}

/// Hands out answers until the worker is gone; whoever still waits then learns that.
async fn listen(mut from: OwnedReadHalf, waiting: Waiting) {
    while let Some(Reply { id, told }) = next(&mut from).await {
        // Nobody may be waiting any more.
        let tell = lock(&waiting).remove(&id);
        if let Some(tell) = tell {
            let _ = tell.send(told);
        }
    }
    lock(&waiting).clear();
}

async fn next(from: &mut OwnedReadHalf) -> Option<Reply> {
    let mut length = [0; 4];
    from.read_exact(&mut length).await.ok()?;
    let length = u32::from_ne_bytes(length) as usize;
    if length > MAX_ANSWER {
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
    let length = (frame.len() - 4) as u32;
    frame[..4].copy_from_slice(&length.to_ne_bytes());
    Ok(frame)
}

fn terms(policy: &Policy) -> Terms {
    Terms {
        workspace: CellPath::new(&policy.workspace),
        roots: policy.filesystem.grants.iter().map(|grant| CellPath::new(&grant.path)).collect(),
        max_file_bytes: policy.filesystem.max_file_bytes.0,
        reply_bytes: REPLY_BYTES,
    }
}

fn gone() -> Refused {
    let message = "the file worker died at this, for want of memory or by a kill; nothing half-written is left, and the \
                   next call gets a new one";
    Refused::new(Code::IoError, message)
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        use crate::worker::failure::Code as Worker;
        let code = match failure.code {
            Worker::InvalidArgument => Code::InvalidArgument,
            Worker::PathNotAllowed => Code::PathNotAllowed,
            Worker::LimitExceeded => Code::LimitExceeded,
            Worker::NotFound => Code::NotFound,
            Worker::AlreadyExists => Code::AlreadyExists,
            Worker::NotAFile => Code::NotAFile,
            Worker::TooLarge => Code::TooLarge,
            Worker::Conflict => Code::Conflict,
            Worker::EditNoMatch => Code::EditNoMatch,
            Worker::SearchNotFound => Code::SearchNotFound,
            Worker::IoError => Code::IoError,
        };
        Refused { code, message: failure.message, details: failure.details }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
