//! How many calls run at once, how many may wait, and how much memory those requests may hold.

use crate::broker::refused::{Code, Refused};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Calls that run at once. Most of them wait for a process; the policy bounds how many of those there are.
const RUNNING: usize = 256;
const WAITING: usize = 1024;

/// Of the requests of all calls that run or wait, as they came in.
const BYTES: usize = 32 << 20;

#[derive(Debug)]
pub struct Admission {
    running: Arc<Semaphore>,
    held: Arc<Mutex<Held>>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Held {
    calls: usize,
    bytes: usize,
}

/// A place in the queue, given back when dropped.
#[derive(Debug)]
pub struct Place {
    running: Arc<Semaphore>,
    held: Arc<Mutex<Held>>,
    bytes: usize,
}

impl Default for Admission {
    fn default() -> Self {
        Admission { running: Arc::new(Semaphore::new(RUNNING)), held: Arc::default() }
    }
}

impl Admission {
    /// A place for a request that came in so many bytes.
    pub fn admit(&self, bytes: usize) -> Result<Place, Refused> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.calls >= RUNNING + WAITING || held.bytes + bytes > BYTES {
            let message = format!(
                "too many calls at once: {} are held with {} bytes, at most {} with {BYTES} are; wait for answers",
                held.calls,
                held.bytes,
                RUNNING + WAITING
            );
            return Err(Refused::new(Code::LimitExceeded, message));
        }
        held.calls += 1;
        held.bytes += bytes;
        Ok(Place { running: self.running.clone(), held: self.held.clone(), bytes })
    }
}

impl Place {
    /// Waits for its turn, which lasts as long as what this returns.
    pub async fn turn(&self) -> Result<OwnedSemaphorePermit, Refused> {
        let turn = self.running.clone().acquire_owned().await;
        turn.map_err(|_| Refused::new(Code::Canceled, "the server is ending"))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.calls -= 1;
        held.bytes -= self.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::{Admission, BYTES, RUNNING, WAITING};
    use crate::broker::refused::Code;

    #[tokio::test]
    async fn calls_beyond_the_bound_are_refused_until_one_ends() {
        let admission = Admission::default();
        let mut places: Vec<_> = (0..RUNNING + WAITING).map(|_| admission.admit(1).unwrap()).collect();
        assert_eq!(admission.admit(1).unwrap_err().code, Code::LimitExceeded);
        places.pop();
        let last = admission.admit(1).unwrap();
        let mut turns = Vec::new();
        for place in &places[..RUNNING] {
            turns.push(place.turn().await.unwrap());
        }
        let waiting = last.turn();
        tokio::pin!(waiting);
        assert!(asked_once(waiting.as_mut()).await.is_none(), "only {RUNNING} run at once");
        turns.pop();
        drop(waiting.await.unwrap());
    }

    #[tokio::test]
    async fn large_requests_are_counted_by_their_bytes() {
        let admission = Admission::default();
        let place = admission.admit(BYTES).unwrap();
        assert_eq!(admission.admit(1).unwrap_err().code, Code::LimitExceeded);
        drop(place);
        admission.admit(BYTES).unwrap();
    }

    /// What a future has to say when it is asked once.
    async fn asked_once<F: Future + Unpin>(future: F) -> Option<F::Output> {
        tokio::select! {
            biased;
            done = future => Some(done),
            () = std::future::ready(()) => None,
        }
    }
}
