//! The thread that brings output to disk, for all processes: one at a time, a bounded amount each, in turn.
//!
//! It sleeps until something is there. Small amounts wait for a moment, because whoever replies often writes them itself
//! before; a disk that fails is tried again ten times a second. Dropping the scribe writes what is left and ends the thread.

use super::Output;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{fmt, io};

/// Of one output before the next has its turn.
const TURN: usize = 256 << 10;

/// How long small amounts wait for company.
const LINGER: Duration = Duration::from_millis(20);

/// Between two attempts on a disk that fails.
const REST: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub struct Scribe {
    list: Arc<List>,
    thread: Option<JoinHandle<()>>,
}

/// How an output reaches the scribe.
#[derive(Clone)]
pub(super) struct Line(Arc<List>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Everything is on disk.
    Idle,
    More,
    Failed,
}

#[derive(Debug, Default)]
struct List {
    tasks: Mutex<Tasks>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct Tasks {
    ready: VecDeque<Arc<Output>>,
    /// When the first of `ready` came.
    since: Option<Instant>,
    is_urgent: bool,
    resting: VecDeque<(Instant, Arc<Output>)>,
    is_ending: bool,
    has_ended: bool,
}

impl Scribe {
    pub fn start() -> io::Result<Scribe> {
        let list = Arc::new(List::default());
        let theirs = Arc::clone(&list);
        let thread = thread::Builder::new().name("scribe".into()).spawn(move || work(&theirs))?;
        Ok(Scribe { list, thread: Some(thread) })
    }

    pub(super) fn line(&self) -> Line {
        Line(Arc::clone(&self.list))
    }
}

impl Drop for Scribe {
    fn drop(&mut self) {
        self.list.lock().is_ending = true;
        self.list.wake.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic there was reported there.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Line")
    }
}

impl Line {
    pub(super) fn push(&self, output: Arc<Output>) {
        let mut tasks = self.0.lock();
        tasks.ready.push_back(output);
        if tasks.since.is_none() {
            tasks.since = Some(Instant::now());
            drop(tasks);
            self.0.wake.notify_one();
        }
    }

    /// What is on the list shall not wait for company.
    pub(super) fn hurry(&self) {
        let mut tasks = self.0.lock();
        if !std::mem::replace(&mut tasks.is_urgent, true) {
            drop(tasks);
            self.0.wake.notify_one();
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.0.lock().has_ended
    }
}

impl List {
    fn lock(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next output to write; none when it is time to end.
    fn next(&self) -> Option<Arc<Output>> {
        let mut tasks = self.lock();
        loop {
            let now = Instant::now();
            tasks.wake_rested(now);
            if tasks.is_due(now)
                && let Some(output) = tasks.ready.pop_front()
            {
                return Some(output);
            }
            if tasks.ready.is_empty() {
                (tasks.since, tasks.is_urgent) = (None, false);
                if tasks.is_ending {
                    tasks.has_ended = true;
                    return None;
                }
            }
            tasks = match tasks.alarm() {
                Some(alarm) => {
                    let waited = self.wake.wait_timeout(tasks, alarm.saturating_duration_since(now));
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.wake.wait(tasks).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn again(&self, output: Arc<Output>, turn: Turn) {
        let mut tasks = self.lock();
        match turn {
            Turn::Idle => {}
            Turn::More => {
                tasks.ready.push_back(output);
                tasks.since.get_or_insert_with(Instant::now);
                tasks.is_urgent = true;
            }
            // At the end, and for an output that nobody else holds, there is no other time.
            Turn::Failed if tasks.is_ending || Arc::strong_count(&output) == 1 => {}
            Turn::Failed => tasks.resting.push_back((Instant::now() + REST, output)),
        }
    }
}

impl Tasks {
    fn is_due(&self, now: Instant) -> bool {
        self.is_urgent || self.is_ending || self.since.is_some_and(|since| now >= since + LINGER)
    }

    fn wake_rested(&mut self, now: Instant) {
        while self.resting.front().is_some_and(|(due, _)| *due <= now || self.is_ending) {
            let rested = self.resting.pop_front().map(|(_, output)| output);
            self.ready.extend(rested);
            self.is_urgent = true;
        }
    }

    fn alarm(&self) -> Option<Instant> {
        let company = self.since.map(|since| since + LINGER);
        let rested = self.resting.front().map(|(due, _)| *due);
        company.into_iter().chain(rested).min()
    }
}

fn work(list: &List) {
    while let Some(output) = list.next() {
        let turn = output.turn(TURN);
        list.again(output, turn);
    }
}
