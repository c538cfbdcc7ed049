//! The operator's way into a running broker: a Unix socket `control` in its state directory, for its owner and root alone.
//!
//! A client sends one line of JSON, a [`message::Request`], and gets one back, a [`message::Answer`]. After `logs` and
//! `attach` frames follow ([`frame`]): a byte for the kind, four for the length, then so many bytes. Every connection is
//! a task that holds nothing while it waits, so a client that does not read delays nobody; there are at most
//! [`MAX_CONNECTIONS`], of which [`MAX_STREAMS`] may stay, and whoever comes then waits in the kernel's queue.

mod answer;
pub mod client;
pub mod frame;
pub mod message;
mod metrics;
mod stream;

#[cfg(test)]
mod tests;

use super::Broker;
use super::output::folder::{Files, Folder};
use message::{Answer, Request};
use nix::sys::stat::{FchmodatFlags, Mode, fchmodat};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The socket's name in the directory of its broker.
pub const NAME: &str = "control";

/// Few people look at once, and every connection costs a task and a frame.
const MAX_CONNECTIONS: usize = 16;

/// So that there is always room for a short question.
const MAX_STREAMS: usize = 12;

/// From the connection to the end of the request, and for an answer to be taken.
const ASKING_TIME: Duration = Duration::from_secs(5);

/// A request names a process or two.
const MAX_REQUEST: u64 = 64 << 10;

/// After a failed accept(2), most likely for want of descriptors.
const BREATHER: Duration = Duration::from_millis(100);

/// The socket before anybody is attended to. It goes away with this.
#[derive(Debug)]
pub(super) struct Bound {
    listener: UnixListener,
    folder: Arc<Folder>,
}

impl Bound {
    /// Makes the socket. Its directory is entered by descriptor, so that no path is too long (unix(7): 108 bytes).
    pub(super) fn bind(folder: Arc<Folder>) -> io::Result<Bound> {
        let path = format!("/proc/self/fd/{}/{NAME}", folder.directory.as_raw_fd());
        let listener = std::os::unix::net::UnixListener::bind(path)?;
        // The directory is closed to others already; this says it once more.
        fchmodat(folder.directory.as_fd(), NAME, Mode::S_IRUSR | Mode::S_IWUSR, FchmodatFlags::FollowSymlink)?;
        listener.set_nonblocking(true)?;
        Ok(Bound { listener: UnixListener::from_std(listener)?, folder })
    }

    /// For as long as there is a broker.
    pub(super) async fn serve(self, broker: Weak<Broker>) {
        let seats = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let streams = Arc::new(Semaphore::new(MAX_STREAMS));
        while let Ok(seat) = Arc::clone(&seats).acquire_owned().await {
            let Ok((client, _)) = self.listener.accept().await else {
                tokio::time::sleep(BREATHER).await;
                continue;
            };
            if is_owner(&client) {
                let visit = Visit { broker: Weak::clone(&broker), streams: Arc::clone(&streams), _seat: seat };
                tokio::spawn(visit.attend(client));
            }
        }
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let _ = self.folder.remove(NAME);
    }
}

/// The kernel's word on who connected (unix(7), SO_PEERCRED): ourselves, or root.
fn is_owner(client: &UnixStream) -> bool {
    let own = nix::unistd::geteuid().as_raw();
    client.peer_cred().is_ok_and(|peer| peer.uid() == own || peer.uid() == 0)
}

/// One connection.
struct Visit {
    broker: Weak<Broker>,
    streams: Arc<Semaphore>,
    _seat: OwnedSemaphorePermit,
}

/// A client's two directions.
struct Client {
    from: BufReader<OwnedReadHalf>,
    to: OwnedWriteHalf,
}

impl Visit {
    async fn attend(self, client: UnixStream) {
        let (from, to) = client.into_split();
        let mut client = Client { from: BufReader::new(from), to };
        let Ok(asked) = timeout(ASKING_TIME, client.request()).await else { return };
        match asked {
            // Whoever says nothing gets no answer.
            Ok(None) => {}
            Ok(Some(request)) => self.answer(request, client).await,
            Err(why) => drop(client.say(&Answer::refused("INVALID_ARGUMENT", why)).await),
        }
    }

    async fn answer(self, request: Request, mut client: Client) {
        let Some(broker) = self.broker.upgrade() else { return };
        let answer = match request {
            Request::Status => Answer::Status(broker.status()),
            Request::Metrics => Answer::Metrics { text: metrics::render(&broker) },
            Request::Stop(stop) => broker.stop_for_operator(stop).await,
            Request::Logs(asked) => match self.opening(&broker, &asked.proc_id) {
                Ok((managed, _seat)) => {
                    drop(broker);
                    return stream::logs(client, managed, asked).await;
                }
                Err(refused) => refused,
            },
            Request::Attach(asked) => match self.opening(&broker, &asked.proc_id) {
                Ok((managed, _seat)) => {
                    drop(broker);
                    return stream::attach(client, managed, asked).await;
                }
                Err(refused) => refused,
            },
        };
        drop(client.say(&answer).await);
    }

    /// A process to follow, and a seat for one who stays.
    fn opening(
        &self,
        broker: &Broker,
        proc_id: &str,
    ) -> Result<(Arc<super::managed::Managed>, OwnedSemaphorePermit), Answer> {
        let managed = broker.registry.get(proc_id).map_err(|refused| Answer::from(&refused))?;
        let seat = Arc::clone(&self.streams).try_acquire_owned().map_err(|_| {
            let why = format!("{MAX_STREAMS} others follow this broker's processes already; end one of them first");
            Answer::refused("LIMIT_EXCEEDED", why)
        })?;
        Ok((managed, seat))
    }
}

impl Client {
    /// The one line that says what is wanted.
    async fn request(&mut self) -> Result<Option<Request>, String> {
        let mut line = Vec::new();
        let read = (&mut self.from).take(MAX_REQUEST).read_until(b'\n', &mut line).await;
        if read.is_err() || line.is_empty() {
            return Ok(None);
        }
        if !line.ends_with(b"\n") {
            return Err(format!("a request is one line of at most {MAX_REQUEST} bytes"));
        }
        serde_json::from_slice(&line).map(Some).map_err(|error| format!("this is no request: {error}"))
    }

    async fn say(&mut self, answer: &Answer) -> io::Result<()> {
        let mut line = serde_json::to_vec(answer)?;
        line.push(b'\n');
        timeout(ASKING_TIME, self.to.write_all(&line)).await?
    }
}
