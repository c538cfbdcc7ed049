//! The worker as a process: takes requests from the broker's socket, works on several at once, answers each when done.
//!
//! It ends with the broker: end of file on the socket is its end. A request that panics is answered and the rest go on.

use super::ask::{Ask, Order, Reply, Terms};
use super::failure::{Code, Failure};
use super::search::Searches;
use crate::wire::Channel;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Requests that are worked on at once; a slow one holds up nobody until so many are slow.
const HANDS: usize = 8;

/// Searching has its own threads; a hand only reads and writes files.
const STACK: usize = 512 << 10;

/// Serves until the broker hangs up.
pub fn serve(socket: OwnedFd) {
    let channel = Arc::new(Channel::new(socket));
    let Ok(Some((terms, _))) = channel.receive::<Terms>() else { return };
    let desk = Arc::new(Desk { terms, searches: Searches::new(), answers: Mutex::new(()), channel });
    let (give, take) = self::channel();
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
