//! Sealed processes that wait for the next request, and the requests that wait for a process.
//!
//! A waiting process buys latency, not throughput: few are kept, and they are replaced when a command has ended, not
//! while it starts.

use super::cell::{Cell, Ready};
use super::fault::Trouble;
use crate::sys::Errno;
use crate::sys::reactor::watch_owned;
use crate::wire::Stage;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// How many wait ready. One serves an agent that does one thing after the other; the second a burst.
const SPARE: usize = 2;

/// How long a request waits for the launcher, which may be stopped or busy.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub struct Pool {
    shared: Arc<Mutex<Shared>>,
    listener: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    /// `None` once the launcher is gone.
    cell: Option<Cell>,
    ready: VecDeque<Ready>,
    waiting: VecDeque<oneshot::Sender<Result<Ready, Trouble>>>,
}

impl Pool {
    pub fn new(mut cell: Cell) -> std::io::Result<Pool> {
        let ready = cell.drain();
        let answers = cell.answers().ok_or(Errno::EBADF)?.try_clone_to_owned()?;
        let answers = watch_owned(answers, Interest::READABLE)?;
        let shared = Arc::new(Mutex::new(Shared { cell: Some(cell), ready, waiting: VecDeque::new() }));
        let listener = tokio::spawn(listen(answers, Arc::clone(&shared)));
        Ok(Pool { shared, listener: Mutex::new(Some(listener)) })
    }

    /// A prepared process; waits for the launcher when none is ready.
    pub async fn take(&self) -> Result<Ready, Trouble> {
        let told = {
            let mut shared = lock(&self.shared);
            if let Some(ready) = shared.ready.pop_front() {
                return Ok(ready);
            }
            let (tell, told) = oneshot::channel();
            shared.waiting.push_back(tell);
            let wanted = shared.waiting.len();
            shared.ask(wanted)?;
            told
        };
        match tokio::time::timeout(PATIENCE, told).await {
            Ok(answer) => answer.unwrap_or_else(|_| Err(Trouble::lost("the launcher"))),
            Err(_) => Err(Trouble { stage: Some(Stage::Clone), errno: Errno::ETIMEDOUT, at: "launcher".into() }),
        }
    }

    /// Has the launcher replace what was taken.
    pub fn refill(&self) {
        let mut shared = lock(&self.shared);
        if shared.waiting.is_empty() {
            let missing = SPARE.saturating_sub(shared.ready.len());
            let _ = shared.ask(missing);
        }
    }

    /// Whether the launcher is gone, and the cell with it.
    pub fn is_lost(&self) -> bool {
        lock(&self.shared).cell.is_none()
    }

    /// Lets go of what waits: it is out of date.
    pub fn discard(&self) {
        lock(&self.shared).ready.clear();
    }

    /// Ends everything in the cell, and waits until it is gone.
    pub async fn close(&self) {
        let listener = lock(&self.listener).take();
        if let Some(listener) = listener {
            // It holds the socket too, and the launcher ends when the last holder lets go.
            listener.abort();
            let _ = listener.await;
        }
        let cell = {
            let mut shared = lock(&self.shared);
            shared.ready.clear();
            shared.waiting.clear();
            shared.cell.take()
        };
        let _ = tokio::task::spawn_blocking(|| drop(cell)).await;
    }
}

impl Shared {
    /// Sees to it that so many are on their way.
    fn ask(&mut self, wanted: usize) -> Result<(), Trouble> {
        let cell = self.cell.as_mut().ok_or_else(|| Trouble::lost("the launcher"))?;
        while cell.coming() < wanted {
            cell.prepare()?;
        }
        Ok(())
    }

    /// To whoever waits longest and is still there.
    fn deliver(&mut self, answer: Result<Ready, Trouble>) {
        let mut answer = answer;
        while let Some(waiting) = self.waiting.pop_front() {
            match waiting.send(answer) {
                Ok(()) => return,
                Err(back) => answer = back,
            }
        }
        self.ready.extend(answer);
    }
}

/// Passes on what the launcher says, until it is gone.
async fn listen(answers: AsyncFd<OwnedFd>, shared: Arc<Mutex<Shared>>) {
    while let Ok(mut guard) = answers.readable().await {
        guard.clear_ready();
        let mut shared = lock(&shared);
        while let Some(cell) = shared.cell.as_mut().filter(|cell| cell.has_answer()) {
            let answer = cell.hear();
            let lost = answer.as_ref().err().is_some_and(|trouble| trouble.stage.is_none());
            shared.deliver(answer);
            if lost {
                // Everything in the cell died with the launcher; what is left of it is removed.
                shared.cell = None;
                shared.ready.clear();
                shared.waiting.clear();
                return;
            }
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
