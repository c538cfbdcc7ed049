//! What waits to be written to the client, within a budget of bytes.
//!
//! Nothing here blocks the sender of a reply. A client that does not read is not read either: the transport takes no
//! further line, and no further call begins, until [`Outbox::room`] returns.

use super::stdio::Output;
use std::io;
use tokio::sync::{mpsc, watch};

/// Enough for the replies of every call that may run at once, at the default size.
const BUDGET: usize = 8 << 20;

#[derive(Debug)]
pub struct Outbox {
    messages: mpsc::UnboundedSender<Vec<u8>>,
    queued: watch::Sender<usize>,
}

/// The other end, of which there is one.
#[derive(Debug)]
pub struct Queue(mpsc::UnboundedReceiver<Vec<u8>>);

impl Outbox {
    pub fn new() -> (Self, Queue) {
        let (messages, queue) = mpsc::unbounded_channel();
        (Outbox { messages, queued: watch::Sender::new(0) }, Queue(queue))
    }

    /// Queues one whole message, its newline included.
    pub fn push(&self, message: Vec<u8>) {
        self.queued.send_modify(|bytes| *bytes += message.len());
        // Nobody takes it: the client is gone, and with it everyone who waits for room.
        let _ = self.messages.send(message);
    }

    /// Queues what may be lost; it is when the client is slow.
    pub fn push_spare(&self, message: Vec<u8>) {
        if *self.queued.borrow() <= BUDGET / 2 {
            self.push(message);
        }
    }

    /// Waits until the queue is below its budget.
    pub async fn room(&self) {
        self.below(BUDGET).await;
    }

    /// Waits until everything was written.
    pub async fn written(&self) {
        self.below(0).await;
    }

    async fn below(&self, bound: usize) {
        if *self.queued.borrow() > bound {
            // The sender lives as long as `self`.
            let _ = self.queued.subscribe().wait_for(|bytes| *bytes <= bound).await;
        }
    }

    /// Writes all that is queued, for ever: it returns when the client cannot be written to.
    pub async fn deliver(&self, mut queue: Queue, output: &Output) -> io::Result<()> {
        loop {
            let message = tokio::select! {
                message = queue.0.recv() => message,
                () = output.closed() => return Err(io::ErrorKind::BrokenPipe.into()),
            };
            let Some(message) = message else { return Ok(()) };
            output.write_all(&message).await?;
            self.queued.send_modify(|bytes| *bytes -= message.len());
        }
    }
}
