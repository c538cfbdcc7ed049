//! The worker as a process: takes requests from the broker's socket, works on several at once, answers each when done.
//!
//! Each hand takes a request off the socket itself, so none is passed between threads; when the last idle hand takes
//! one, another is hired. It ends with the broker: end of file on the socket is its end. A request that panics is
//! answered and the rest go on; one that comes while something hidden lies bare is not begun.

use super::ask::{Answer, Order, Reply, Terms, Work};
use super::failure::{Code, Failure};
use super::search::Searches;
use crate::path::CellPath;
use crate::sys::mount;
use crate::wire::Channel;
use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Requests that are worked on at once: as many as the tool surface admits. A slow one holds up nobody.
const HANDS: usize = 64;

/// Searching has its own threads; a hand only reads and writes files.
const STACK: usize = 512 << 10;

/// Serves until the broker hangs up. Whoever is at work on a file then is killed with the process, between old and new.
pub fn serve(socket: OwnedFd) {
    let channel = Channel::new(socket);
    let Ok(Some((terms, _))) = channel.receive::<Terms>() else { return };
    let (tell, over) = mpsc::channel();
    let desk = Arc::new(Desk {
        covers: Covers::of(&terms),
        terms,
        searches: Searches::default(),
        crew: Mutex::default(),
        turn: Mutex::default(),
        answers: Mutex::default(),
        channel,
    });
    if hire(&desk, &tell) {
        // A hand that finds the broker gone says so; while one is left, it does not.
        drop(tell);
        let _ = over.recv();
    }
}

#[derive(Debug, Default)]
struct Crew {
    hands: usize,
    idle: usize,
}

struct Desk {
    terms: Terms,
    covers: Covers,
    searches: Searches,
    crew: Mutex<Crew>,
    /// Held while a request is taken off the socket.
    turn: Mutex<()>,
    /// Held while an answer is written: they do not mix.
    answers: Mutex<()>,
    channel: Channel,
}

impl Desk {
    /// The next request; `None` when the broker is gone.
    fn next(&self) -> Option<Order> {
        let _turn = lock(&self.turn);
        Some(self.channel.receive::<Order>().ok()??.0)
    }

    fn answer(&self, order: &Order) {
        let work = AssertUnwindSafe(|| match &order.work {
            _ if !self.covers.hold() => Answer::Bare,
            Work::Files(ask) => super::perform(&self.terms, ask).map_or_else(Answer::Failed, Answer::Told),
            Work::Search(ask) => {
                super::seek(&self.terms, &self.searches, ask).map_or_else(Answer::Failed, Answer::Told)
            }
        });
        let answer = catch_unwind(work).unwrap_or_else(|_| {
            let message = "the worker stumbled over this; a file that was being changed is old or new, never half";
            Answer::Failed(Failure::new(Code::IoError, message))
        });
        let _one = lock(&self.answers);
        let _ = self.channel.send(&Reply { id: order.id, answer }, &[]);
    }
}

/// One more hand, if one can be had.
fn hire(desk: &Arc<Desk>, over: &Sender<()>) -> bool {
    let (mine, tell) = (Arc::clone(desk), over.clone());
    {
        let mut crew = lock(&desk.crew);
        crew.hands += 1;
        crew.idle += 1;
    }
    let work = move || {
        while let Some(order) = mine.next() {
            let is_last = {
                let mut crew = lock(&mine.crew);
                crew.idle -= 1;
                crew.idle == 0 && crew.hands < HANDS
            };
            if is_last {
                hire(&mine, &tell);
            }
            mine.answer(&order);
            lock(&mine.crew).idle += 1;
        }
        let _ = tell.send(());
    };
    let hired = std::thread::Builder::new().stack_size(STACK).spawn(work).is_ok();
    if !hired {
        // The limit on processes counts threads too: those that are there go on.
        let mut crew = lock(&desk.crew);
        crew.hands -= 1;
        crew.idle -= 1;
    }
    hired
}

/// The hidden paths, and the device of what covers them.
struct Covers {
    paths: Vec<CString>,
    device: u64,
}

impl Covers {
    fn of(terms: &Terms) -> Self {
        let device = nix::sys::stat::stat("/").map_or(0, |root| root.st_dev);
        Covers { paths: terms.hidden.iter().map(CellPath::to_c).collect(), device }
    }

    /// Whether everything is still covered; what cannot be told is not.
    fn hold(&self) -> bool {
        self.paths.iter().all(|path| matches!(mount::bare(path, self.device), Ok(None)))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
