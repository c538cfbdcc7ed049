//! A bounded queue between calls and a writing thread.
//!
//! Pushing never waits. The reader is woken only when it sleeps and the item matters to it: a wake-up is the
//! dearest part of a push.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct Queue<T> {
    state: Mutex<State<T>>,
    arrival: Condvar,
    departure: Condvar,
    /// Of all items together.
    room: usize,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<T>,
    weight: usize,
    sleeper: Sleeper,
    urgent: bool,
    closed: bool,
    gone: bool,
}

/// What would wake the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sleeper {
    Awake,
    Any,
    Urgent,
}

#[derive(Debug)]
pub struct Taken<T> {
    pub items: VecDeque<T>,
    /// The queue is closed: nothing comes after these.
    pub last: bool,
}

impl<T> Taken<T> {
    pub fn nothing() -> Self {
        Taken { items: VecDeque::new(), last: false }
    }
}

/// How soon an item wants to be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Haste {
    Usual,
    Urgent,
}

impl<T> Queue<T> {
    pub fn new(room: usize) -> Self {
        let state = State {
            items: VecDeque::new(),
            weight: 0,
            sleeper: Sleeper::Awake,
            urgent: false,
            closed: false,
            gone: false,
        };
        Queue { state: Mutex::new(state), arrival: Condvar::new(), departure: Condvar::new(), room }
    }

    /// Gives the item back when there is no room, or nobody left to take it.
    pub fn push(&self, item: T, weight: usize, haste: Haste) -> Result<(), T> {
        let mut state = self.lock();
        if state.closed || state.gone || state.weight + weight > self.room {
            return Err(item);
        }
        state.weight += weight;
        state.items.push_back(item);
        state.urgent |= haste == Haste::Urgent;
        let wakes = match state.sleeper {
            Sleeper::Awake => false,
            Sleeper::Any => true,
            Sleeper::Urgent => haste == Haste::Urgent,
        };
        if wakes {
            state.sleeper = Sleeper::Awake;
            drop(state);
            self.arrival.notify_one();
        }
        Ok(())
    }

    /// Waits for items, at most `patience` long, then takes all there are.
    pub fn take(&self, patience: Option<Duration>) -> Taken<T> {
        self.sleep(Sleeper::Any, patience, |state| !state.items.is_empty())
    }

    /// Lets items gather for a while, unless an urgent one comes, then takes all there are.
    pub fn gather(&self, patience: Duration) -> Taken<T> {
        self.sleep(Sleeper::Urgent, Some(patience), |state| state.urgent)
    }

    fn sleep(&self, sleeper: Sleeper, patience: Option<Duration>, enough: impl Fn(&State<T>) -> bool) -> Taken<T> {
        let until = patience.map(|patience| Instant::now() + patience);
        let mut state = self.lock();
        while !enough(&state) && !state.closed {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            state.sleeper = sleeper;
            state = match left {
                None => self.arrival.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => break,
                Some(left) => self.arrival.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
        state.sleeper = Sleeper::Awake;
        state.weight = 0;
        state.urgent = false;
        Taken { items: std::mem::take(&mut state.items), last: state.closed }
    }

    /// Waits without taking anything or being woken by what comes. `true`: the queue was closed meanwhile.
    pub fn rest(&self, patience: Duration) -> bool {
        let rested = self.arrival.wait_timeout_while(self.lock(), patience, |state| !state.closed);
        rested.unwrap_or_else(PoisonError::into_inner).0.closed
    }

    /// Nothing more comes in; what is there is still taken.
    pub fn close(&self) {
        self.lock().closed = true;
        self.arrival.notify_all();
    }

    /// The reader says that it has gone.
    pub fn leave(&self) {
        let mut state = self.lock();
        state.gone = true;
        state.items.clear();
        drop(state);
        self.departure.notify_all();
    }

    /// Waits for the reader to go. Bounded: a disk that hangs must not keep the broker from ending.
    pub fn wait_until_left(&self, patience: Duration) {
        let waited = self.departure.wait_timeout_while(self.lock(), patience, |state| !state.gone);
        drop(waited);
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
