//! One process from its command to its end, driven from tokio: output pumped, deadlines kept, orders obeyed.
//!
//! Everything about a process happens in one task, so that whatever is asked of it at once is done one after the
//! other. Its end is told when everything it started is dead and all it wrote is stored.

use super::answer::{End, Reason, Stream};
use super::beginning::Beginning;
use super::cell::Ready;
use super::face::Face;
use super::fault::Trouble;
use super::output::{Output, Room};
use super::process::{Activity, Deadlines, Process};
use crate::sys::reactor::watch_borrowed;
use crate::sys::{Errno, descriptor};
use std::cell::RefCell;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{mpsc, watch};

/// One read. A pipe holds 64 KiB.
const CHUNK: usize = 64 << 10;

/// After so many reads others get their turn.
const TURN: usize = 8;

thread_local! {
    /// Every pump reads into it and empties it before the next does: processes that are quiet cost no buffer.
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; CHUNK]);
}

/// What others ask of a running process.
#[derive(Debug)]
pub enum Order {
    End { reason: Reason, signal: i32, grace: Duration },
    Kill(Reason),
}

/// A started process and what belongs to it.
#[derive(Debug)]
pub struct Started {
    pub ready: Arc<Ready>,
    /// Or the terminal.
    pub stdout: Arc<AsyncFd<OwnedFd>>,
    pub stderr: Option<Arc<AsyncFd<OwnedFd>>>,
    /// The ends of these pipes that the process writes to.
    pub _theirs: Vec<OwnedFd>,
    /// Where output is a terminal's.
    pub face: Option<Arc<Face>>,
    pub output: Arc<Output>,
    pub beginning: Arc<Beginning>,
    pub activity: Arc<Activity>,
    pub deadlines: Deadlines,
    pub orders: mpsc::UnboundedReceiver<Order>,
}

impl Started {
    /// Until everything is dead and all it wrote is stored.
    pub async fn until_dead(&mut self) -> Result<End, Trouble> {
        let (tell, dead) = watch::channel(false);
        let (exceed, mut exceeded) = mpsc::unbounded_channel();
        let pump = |stream, source| Pump {
            stream,
            source,
            face: self.face.clone(),
            output: Arc::clone(&self.output),
            beginning: Arc::clone(&self.beginning),
            activity: Arc::clone(&self.activity),
            dead: dead.clone(),
            exceed: exceed.clone(),
        };
        let stdout = pump(Stream::Stdout, Arc::clone(&self.stdout));
        let stderr = self.stderr.as_ref().map(|source| pump(Stream::Stderr, Arc::clone(source)));
        let watching = async {
            let process = Process::new(&self.ready, None, self.deadlines, &self.activity);
            let end = watch_over(process, &mut self.orders, &mut exceeded).await;
            let _ = tell.send(true);
            end
        };
        let also = async {
            if let Some(stderr) = stderr {
                stderr.until_dry().await;
            }
        };
        let (end, (), ()) = tokio::join!(watching, stdout.until_dry(), also);
        self.output.close();
        end
    }
}

/// Keeps deadlines and obeys orders until everything is dead.
async fn watch_over(
    mut process: Process<'_>,
    orders: &mut mpsc::UnboundedReceiver<Order>,
    exceeded: &mut mpsc::UnboundedReceiver<()>,
) -> Result<End, Trouble> {
    let pidfd =
        watch_borrowed(process.ready.pidfd.as_fd(), Interest::READABLE).map_err(|_| Trouble::lost("the process"))?;
    let leash =
        watch_borrowed(process.ready.leash.as_fd(), Interest::READABLE).map_err(|_| Trouble::lost("the process"))?;
    let mut leash_open = true;
    loop {
        tokio::select! {
            biased;
            Ok(mut heard) = leash.readable(), if leash_open => {
                leash_open = !heard.ready().is_read_closed();
                heard.clear_ready();
                if process.has_told_all() {
                    return process.conclude();
                }
            }
            _ = pidfd.readable() => return process.conclude(),
            Some(order) = orders.recv() => match order {
                Order::End { reason, signal, grace } => process.end(reason, signal, grace),
                Order::Kill(reason) => process.end_now(reason),
            },
            Some(()) = exceeded.recv() => process.end_now(Reason::OutputLimit),
            () = tokio::time::sleep(process.patience()) => {}
        }
        process.keep_deadlines();
    }
}

/// Moves one stream into the store.
struct Pump {
    stream: Stream,
    source: Arc<AsyncFd<OwnedFd>>,
    face: Option<Arc<Face>>,
    output: Arc<Output>,
    beginning: Arc<Beginning>,
    activity: Arc<Activity>,
    dead: watch::Receiver<bool>,
    exceed: mpsc::UnboundedSender<()>,
}

/// What one read gave.
enum Got {
    Bytes,
    /// Bytes, and in them something that a terminal answers.
    Question,
    Nothing,
    End,
}

impl Pump {
    /// Until the last writer is gone, or everything of this process is dead and the pipe empty: a process of the same
    /// cell may have been handed the other end.
    async fn until_dry(mut self) {
        let mut turns = 0;
        loop {
            let room = self.room().await;
            match self.read(room) {
                Got::End => return,
                Got::Bytes => {
                    turns += 1;
                    if turns % TURN == 0 {
                        tokio::task::yield_now().await;
                    }
                }
                Got::Question => {
                    if let Some(face) = &self.face {
                        face.reply(&self.output).await;
                    }
                }
                Got::Nothing if *self.dead.borrow() => return,
                Got::Nothing => tokio::select! {
                    _ = self.source.readable() => {}
                    _ = self.dead.wait_for(|dead| *dead) => {}
                },
            }
        }
    }

    /// How much may be read now. What the dead left in a pipe is read in any case: the store counts what it cannot keep.
    async fn room(&mut self) -> usize {
        loop {
            let room = self.output.room();
            if room > 0 {
                return room.min(CHUNK);
            }
            tokio::select! {
                () = self.output.has_room() => {}
                _ = self.dead.wait_for(|dead| *dead) => return CHUNK,
            }
        }
    }

    fn read(&self, room: usize) -> Got {
        BUFFER.with_borrow_mut(|buffer| {
            let mut read = |end: &OwnedFd| descriptor::read(end.as_raw_fd(), &mut buffer[..room]).map_err(Into::into);
            // What the dead left is there whether or not it was announced.
            let got = match *self.dead.borrow() {
                true => read(self.source.get_ref()),
                false => self.source.try_io(Interest::READABLE, read),
            };
            match got {
                Ok(0) => Got::End,
                Ok(got) => {
                    self.activity.touch();
                    self.beginning.feed(self.stream, &buffer[..got]);
                    if self.output.append(self.stream, &buffer[..got]) == Room::Exceeded {
                        let _ = self.exceed.send(());
                    }
                    let asks = self.face.as_ref().is_some_and(|face| face.heard(&buffer[..got]));
                    if asks { Got::Question } else { Got::Bytes }
                }
                Err(error) => match error.raw_os_error().map(Errno::from_raw) {
                    Some(Errno::EAGAIN | Errno::EINTR) | None => Got::Nothing,
                    // A terminal whose last user is gone answers EIO: that is its end of file.
                    Some(_) => Got::End,
                },
            }
        })
    }
}
