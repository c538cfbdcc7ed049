//! One search: its hands, its bounds, and what it has found so far.
//!
//! The hands share one lock, held for moments: to take the next entry, to put down a match. Memory is
//! bounded whatever the tree: at most `KEPT` matches of `KEPT_BYTES` are kept, and at most as many again
//! wait for their turn, after which only the hand at the first place goes on.

use super::directory::Directory;
use super::found::Found;
use super::ground::Ground;
use super::order::{Order, Taken};
use super::page::{Bound, Page, State, Summary, Syntax, Unread};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Matches kept of one search; whoever needs more needs a narrower pattern.
pub const KEPT: usize = 10_000;
pub const KEPT_BYTES: usize = 8 << 20;
/// A page is cut here whatever its limit, so that a reply fits a message.
const PAGE_BYTES: usize = 1 << 20;
/// A search that takes longer is limited and says so.
pub const DEADLINE: Duration = Duration::from_secs(300);
/// Unreadable paths that are named; all are counted.
const ERRORS: usize = 10;

#[derive(Debug)]
pub struct Hunt {
    pub id: String,
    pub ground: Ground,
    pattern: String,
    path: String,
    read_as: Syntax,
    started: Instant,
    deadline: Instant,
    is_halted: AtomicBool,
    pub searched: AtomicU64,
    pub binary: AtomicU64,
    progress: Mutex<Progress>,
    /// Rung when there may be work, or no more.
    work: Condvar,
    /// Rung when a reader may have what it waits for.
    news: Condvar,
}

#[derive(Debug)]
struct Progress {
    state: State,
    limited_by: Option<Bound>,
    order: Order<Arc<Directory>, Found>,
    found: Vec<Found>,
    found_bytes: usize,
    waiting: usize,
    waiting_bytes: usize,
    /// The fewest matches a reader waits for.
    wanted: usize,
    /// Hands that wait.
    idle: usize,
    errors: Vec<Unread>,
    error_count: u64,
    took: Option<Duration>,
}

/// What the client gave that a search only repeats.
#[derive(Debug)]
pub struct Label {
    pub id: String,
    pub pattern: String,
    pub path: String,
    pub read_as: Syntax,
}

impl Hunt {
    pub fn new(label: Label, ground: Ground, root: Directory, deadline: Duration) -> Hunt {
        let started = Instant::now();
        let entries = root.len();
        let progress = Progress {
            state: State::Running,
            limited_by: None,
            order: Order::new(Arc::new(root), entries),
            found: Vec::new(),
            found_bytes: 0,
            waiting: 0,
            waiting_bytes: 0,
            wanted: usize::MAX,
            idle: 0,
            errors: Vec::new(),
            error_count: 0,
            took: None,
        };
        let Label { id, pattern, path, read_as } = label;
        Hunt {
            id,
            ground,
            pattern,
            path,
            read_as,
            started,
            deadline: started + deadline,
            is_halted: AtomicBool::new(false),
            searched: AtomicU64::new(0),
            binary: AtomicU64::new(0),
            progress: Mutex::new(progress),
            work: Condvar::new(),
            news: Condvar::new(),
        }
    }

    /// Finishes a place and takes the next entry, waiting for one if need be; none when the search is over.
    pub fn next(&self, finished: Option<usize>) -> Option<Taken<Arc<Directory>>> {
        self.is_overdue();
        let mut progress = self.lock();
        if let (Some(place), State::Running) = (finished, progress.state) {
            progress.order.finish(place);
            self.release(&mut progress);
        }
        loop {
            if progress.state != State::Running {
                return None;
            }
            if (progress.may_run_ahead() || progress.order.next_is_first())
                && let Some(taken) = progress.order.take()
            {
                return Some(taken);
            }
            if progress.order.is_empty() {
                let ended = if progress.limited_by.is_some() { State::Limited } else { State::Done };
                self.end_locked(&mut progress, ended);
                return None;
            }
            progress = self.await_work(progress);
        }
    }

    /// Puts down a match. Whether the search wants more; a hand too far ahead waits here for its turn.
    pub fn found(&self, place: usize, found: Found) -> bool {
        let mut progress = self.lock();
        while progress.state == State::Running && !progress.may_run_ahead() && !progress.order.is_first(place) {
            progress = self.await_work(progress);
        }
        if progress.state != State::Running {
            return false;
        }
        progress.waiting += 1;
        progress.waiting_bytes += found.bytes();
        progress.order.add(place, found);
        if progress.order.is_first(place) {
            self.release(&mut progress);
        }
        progress.state == State::Running
    }

    /// Puts a directory's entries behind it.
    pub fn expand(&self, place: usize, directory: Directory) {
        let entries = directory.len();
        let mut progress = self.lock();
        if progress.state == State::Running {
            progress.order.expand(place, Arc::new(directory), entries);
            if progress.idle > 0 {
                self.work.notify_all();
            }
        }
    }

    /// Notes what could not be searched; `cut` when it is a bound of ours that kept the search from it.
    pub fn unread(&self, relative: &[u8], message: String, cut: Option<Bound>) {
        let mut progress = self.lock();
        progress.error_count += 1;
        progress.limited_by = progress.limited_by.or(cut);
        if progress.errors.len() < ERRORS {
            let path = self.ground.show(relative).text;
            progress.errors.push(Unread { path, message });
        }
    }

    /// Whether the hands should drop what they do. Looks at the clock.
    pub fn is_over(&self) -> bool {
        self.is_halted.load(Ordering::Relaxed) || self.is_overdue()
    }

    pub fn is_running(&self) -> bool {
        self.lock().state == State::Running
    }

    /// Ends the search unless it has ended. Whether it was running.
    pub fn end(&self, state: State, bound: Option<Bound>) -> bool {
        let mut progress = self.lock();
        let was_running = progress.state == State::Running;
        if was_running {
            progress.limited_by = bound.or(progress.limited_by);
            self.end_locked(&mut progress, state);
        }
        was_running
    }

    pub fn kept_bytes(&self) -> usize {
        self.lock().found_bytes
    }

    /// A page, as soon as it is full, the search is over, or the wait is.
    pub fn page(&self, offset: usize, limit: usize, wait: Duration) -> Page {
        let until = Instant::now() + wait;
        let wanted = offset.saturating_add(limit);
        let mut progress = self.lock();
        loop {
            let now = Instant::now();
            if now >= self.deadline && progress.state == State::Running {
                progress.limited_by = Some(Bound::Time);
                self.end_locked(&mut progress, State::Limited);
            }
            if progress.state != State::Running || progress.found.len() >= wanted || now >= until {
                return self.page_locked(&progress, offset, limit);
            }
            progress.wanted = progress.wanted.min(wanted);
            let patience = until.min(self.deadline) - now;
            let waited = self.news.wait_timeout(progress, patience);
            progress = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub fn summary(&self) -> Summary {
        let progress = self.lock();
        Summary {
            search_id: self.id.clone(),
            pattern: self.pattern.clone(),
            path: self.path.clone(),
            state: progress.state,
            total: progress.found.len(),
            searched_files: self.searched.load(Ordering::Relaxed),
            duration_ms: self.took(&progress),
        }
    }

    fn page_locked(&self, progress: &Progress, offset: usize, limit: usize) -> Page {
        let mut matches = Vec::new();
        let mut bytes = 0;
        for found in progress.found.iter().skip(offset).take(limit) {
            bytes += found.bytes();
            if bytes > PAGE_BYTES && !matches.is_empty() {
                break;
            }
            matches.push(found.show());
        }
        let total = progress.found.len();
        Page {
            search_id: self.id.clone(),
            state: progress.state,
            limited_by: progress.limited_by,
            read_as: self.read_as,
            offset,
            more: progress.state == State::Running || offset.saturating_add(matches.len()) < total,
            matches,
            total,
            total_exact: progress.state == State::Done,
            searched_files: self.searched.load(Ordering::Relaxed),
            skipped_binary: self.binary.load(Ordering::Relaxed),
            errors: progress.errors.clone(),
            error_count: progress.error_count,
            duration_ms: self.took(progress),
        }
    }

    fn took(&self, progress: &Progress) -> u64 {
        let took = progress.took.unwrap_or_else(|| self.started.elapsed());
        u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
    }

    /// Moves what nothing stands before any more to where readers see it, up to the bounds.
    fn release(&self, progress: &mut Progress) {
        let Progress { order, found, found_bytes, waiting, waiting_bytes, .. } = progress;
        let mut exceeded = None;
        order.release(|item| {
            let bytes = item.bytes();
            *waiting -= 1;
            *waiting_bytes -= bytes;
            if found.len() == KEPT {
                exceeded = exceeded.or(Some(Bound::Matches));
            } else if *found_bytes + bytes > KEPT_BYTES {
                exceeded = exceeded.or(Some(Bound::Bytes));
            }
            if exceeded.is_none() {
                *found_bytes += bytes;
                found.push(item);
            }
        });
        if exceeded.is_some() {
            progress.limited_by = exceeded;
            self.end_locked(progress, State::Limited);
        }
        if progress.found.len() >= progress.wanted {
            progress.wanted = usize::MAX;
            self.news.notify_all();
        }
        if progress.idle > 0 {
            self.work.notify_all();
        }
    }

    fn end_locked(&self, progress: &mut Progress, state: State) {
        progress.state = state;
        progress.took = Some(self.started.elapsed());
        progress.found.shrink_to_fit();
        progress.order = Order::default();
        self.is_halted.store(true, Ordering::Relaxed);
        self.news.notify_all();
        self.work.notify_all();
    }

    fn await_work<'a>(&'a self, mut progress: MutexGuard<'a, Progress>) -> MutexGuard<'a, Progress> {
        progress.idle += 1;
        let mut progress = self.work.wait(progress).unwrap_or_else(PoisonError::into_inner);
        progress.idle -= 1;
        progress
    }

    fn is_overdue(&self) -> bool {
        let overdue = Instant::now() >= self.deadline;
        if overdue {
            self.end(State::Limited, Some(Bound::Time));
        }
        overdue
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress {
    fn may_run_ahead(&self) -> bool {
        self.waiting < KEPT && self.waiting_bytes < KEPT_BYTES
    }
}
