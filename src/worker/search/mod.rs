//! Search: the lines or the paths of a tree that match, page by page, in path order.
//!
//! `Searches` holds all searches of one worker; each has a few hands (threads) of its own. Which files
//! count is `rg`'s judgement: hidden ones and those an ignore file names are left out, links are not
//! followed, a file with a NUL byte is left at that byte and counted as binary. Paths are in the order of
//! the bytes of their components; a match once given out never changes its place.
//!
//! From here: `request` and `page` travel; `ground` says what is covered, `directory` lists it, `order`
//! keeps the order, `hunt` is one search, `seek` one of its hands. Nothing here knows of cells or sockets.

mod directory;
mod failure;
mod found;
mod globs;
mod ground;
mod hunt;
mod lines;
mod listing;
mod names;
mod order;
mod page;
mod pattern;
mod request;
mod rules;
mod seek;
#[cfg(test)]
mod tests;

pub use failure::{Code, Failure};
pub use page::{Bound, Entry, EntryKind, Line, Match, Page, State, Summary, Syntax, Unread};
pub use request::{Case, Kind, Request};

use directory::{Directory, Reading};
use ground::Ground;
use hunt::{Hunt, Label};
use pattern::Pattern;
use request::{WAIT_MAX, check_limit};
use seek::Hand;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Searches kept, running or not; the oldest finished one makes room.
const KEPT: usize = 16;
/// Searches at work at one time.
const RUNNING: usize = 4;
/// What finished searches may hold of matches, all together.
const KEPT_BYTES: usize = 32 << 20;
/// Hands of one search: more than a disk cache can feed help nobody.
const HANDS: std::ops::RangeInclusive<usize> = 2..=4;

/// All searches of one worker. Dropping it ends them.
#[derive(Debug)]
pub struct Searches {
    /// In the order they were started.
    hunts: Mutex<Vec<Arc<Hunt>>>,
    wide: Arc<Mutex<()>>,
    deadline: Duration,
}

impl Default for Searches {
    fn default() -> Self {
        Searches { hunts: Mutex::default(), wide: Arc::default(), deadline: hunt::DEADLINE }
    }
}

impl Searches {
    /// Begins a search and waits, up to the request's wait, for its first page.
    pub fn start(&self, request: &Request) -> Result<Page, Failure> {
        request.check()?;
        check_room(&self.lock(), request)?;
        let (pattern, read_as) = Pattern::compile(request)?;
        let (ground, start) = Ground::survey(request, &pattern)?;
        let mut reading = Reading { ground: &ground, is_halted: &|| false, problem: &mut |_| {}, looked_at: 0 };
        let stand_in = Directory::stand_in(&start, &mut reading);
        let looked_at = reading.looked_at;
        let label = Label {
            id: request.search_id.clone(),
            pattern: request.pattern.clone(),
            path: ground.show(b"").text,
            read_as,
        };
        let hunt = Arc::new(Hunt::new(label, ground, stand_in, self.deadline));
        hunt.searched.store(looked_at, Ordering::Relaxed);
        {
            let mut hunts = self.lock();
            check_room(&hunts, request)?;
            make_room(&mut hunts);
            hunts.push(hunt.clone());
        }
        self.employ(&hunt, &pattern, request.context).inspect_err(|_| {
            self.forget(&request.search_id);
        })?;
        Ok(hunt.page(0, check_limit(request.limit)?, request.wait()))
    }

    /// A page from `offset`, as soon as it is full, the search is over, or the wait is.
    pub fn more(&self, id: &str, offset: usize, limit: Option<usize>, wait: Duration) -> Result<Page, Failure> {
        let limit = check_limit(limit)?;
        let hunt = self.find(id).ok_or_else(|| unknown(id))?;
        Ok(hunt.page(offset, limit, wait.min(WAIT_MAX)))
    }

    /// Ends a search; what it found can still be read. Whether it was running.
    pub fn stop(&self, id: &str) -> Result<bool, Failure> {
        let hunt = self.find(id).ok_or_else(|| unknown(id))?;
        Ok(hunt.end(State::Stopped, None))
    }

    /// Ends a search and drops what it found. Whether there was one.
    pub fn forget(&self, id: &str) -> bool {
        let mut hunts = self.lock();
        let Some(number) = hunts.iter().position(|hunt| hunt.id == id) else {
            return false;
        };
        hunts.remove(number).end(State::Stopped, None);
        true
    }

    /// All searches kept, oldest first.
    pub fn list(&self) -> Vec<Summary> {
        let hunts = self.lock().clone();
        hunts.iter().map(|hunt| hunt.summary()).collect()
    }

    fn employ(&self, hunt: &Arc<Hunt>, pattern: &Pattern, context: usize) -> Result<(), Failure> {
        let hands = thread::available_parallelism().map_or(*HANDS.start(), usize::from);
        for number in 0..hands.clamp(*HANDS.start(), *HANDS.end()) {
            let hand = Hand { hunt: hunt.clone(), pattern: pattern.clone(), context, wide: self.wide.clone() };
            let started = thread::Builder::new().name("search".into()).spawn(move || hand.work());
            // Fewer hands are slower; none is a failure.
            match started {
                Err(error) if number == 0 => {
                    let message = format!("no thread can be started for the search: {error}");
                    return Err(Failure::new(Code::LimitExceeded, message));
                }
                Err(_) => break,
                Ok(_) => {}
            }
        }
        Ok(())
    }

    fn find(&self, id: &str) -> Option<Arc<Hunt>> {
        self.lock().iter().find(|hunt| hunt.id == id).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Hunt>>> {
        self.hunts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Searches {
    fn drop(&mut self) {
        for hunt in self.lock().iter() {
            hunt.end(State::Stopped, None);
        }
    }
}

fn unknown(id: &str) -> Failure {
    let shown: String = id.escape_debug().take(80).collect();
    let message = format!("no search `{shown}`; it was never started, made room for later ones, or its worker ended");
    Failure::new(Code::SearchNotFound, message)
}

fn check_room(hunts: &[Arc<Hunt>], request: &Request) -> Result<(), Failure> {
    if hunts.iter().any(|hunt| hunt.id == request.search_id) {
        return Err(Failure::invalid(format!("a search `{}` exists already", request.search_id)));
    }
    let running: Vec<&str> = hunts.iter().filter(|hunt| hunt.is_running()).map(|hunt| hunt.id.as_str()).collect();
    if running.len() >= RUNNING {
        let message = format!("{RUNNING} searches are running, the most at one time; stop one or wait for it");
        return Err(Failure::new(Code::LimitExceeded, message).with("running", running));
    }
    Ok(())
}

/// Drops the oldest finished searches until one more fits.
fn make_room(hunts: &mut Vec<Arc<Hunt>>) {
    loop {
        let finished: Vec<usize> = (0..hunts.len()).filter(|number| !hunts[*number].is_running()).collect();
        let bytes: usize = finished.iter().map(|number| hunts[*number].kept_bytes()).sum();
        match finished.first() {
            Some(oldest) if hunts.len() >= KEPT || bytes > KEPT_BYTES => drop(hunts.remove(*oldest)),
            _ => return,
        }
    }
}
