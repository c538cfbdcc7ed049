//! The worker as a process: takes requests from the broker's socket, works on several at once, answers each when done.
//!
//! It ends with the broker: end of file on the socket is its end. A request that panics is answered and the rest go on.

use super::ask::{Order, Reply, Terms, Work};
use super::failure::{Code, Failure};
use super::search::Searches;
use crate::wire::Channel;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};

/// Requests that are worked on at once; a slow one holds up nobody until so many are slow.
const HANDS: usize = 8;

/// Searching has its own threads; a hand only reads and writes files.
const STACK: usize = 512 << 10;

/// Serves until the broker hangs up.
pub fn serve(socket: OwnedFd) {
    let channel = Arc::new(Channel::new(socket));
    let Ok(Some((terms, _))) = channel.receive::<Terms>() else { return };
    let desk = Arc::new(Desk { terms, searches: Searches::default(), answers: Mutex::new(()), channel });
    let (give, take) = mpsc::channel();
    let take = Arc::new(Mutex::new(take));
    let mut hands = 0;
    while let Ok(Some((order, _))) = desk.channel.receive::<Order>() {
        if hands < HANDS && hire(&desk, &take) {
            hands += 1;
        }
        if hands == 0 || give.send(order).is_err() {
            return;
        }
    }
    // The searches end with the process; whoever is at work on a file finishes it, or is killed between old and new.
}

struct Desk {
    terms: Terms,
    searches: Searches,
    /// Held while an answer is written: they do not mix.
    answers: Mutex<()>,
    channel: Arc<Channel>,
}

impl Desk {
    fn answer(&self, order: Order) {
        let work = AssertUnwindSafe(|| match &order.work {
            Work::Files(ask) => super::perform(&self.terms, ask),
            Work::Search(ask) => super::seek(&self.searches, ask),
        });
        let told = catch_unwind(work)
            .unwrap_or_else(|_| Err(Failure::new(Code::IoError, "the worker stumbled over this; nothing was changed")));
        let _one = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = self.channel.send(&Reply { id: order.id, told }, &[]);
    }
}

fn hire(desk: &Arc<Desk>, orders: &Arc<Mutex<Receiver<Order>>>) -> bool {
    let (desk, orders) = (Arc::clone(desk), Arc::clone(orders));
    let work = move || {
        loop {
            let next = orders.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(order) = next else { return };
            desk.answer(order);
        }
    };
    std::thread::Builder::new().stack_size(STACK).spawn(work).is_ok()
}
