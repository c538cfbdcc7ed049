//! What goes on until someone has seen enough: `logs` and `attach`.
//!
//! A process with pipes is followed byte by byte. One with a terminal is drawn: what is sent are the rows that changed,
//! made by our own emulator, at most thirty times a second. So nothing that an agent prints can talk to the operator's
//! terminal, a flood costs no more than a screen, and a view may be smaller than what it shows.

use super::Client;
use super::frame::{self, Kind, MAX_FRAME};
use super::message::{Answer, Attach, End, Logs, Opened, Stream};
use crate::broker::face::Face;
use crate::broker::managed::Managed;
use crate::broker::output::Page;
use crate::broker::request::Filter;
use crate::sys::terminal::Size;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

/// A pager that someone left open takes no more; after this it is let go.
const STALLED: Duration = Duration::from_secs(300);

/// Between two pictures.
const PICTURE_PAUSE: Duration = Duration::from_millis(33);

/// How much is read for the last lines of an output.
const TAIL_BYTES: usize = 8 << 20;

/// Who looks, and what they are to be told.
#[derive(Debug, Clone)]
struct View {
    size: Size,
    notice: Option<&'static str>,
}

pub(super) async fn logs(mut client: Client, managed: Arc<Managed>, asked: Logs) {
    if client.say(&Answer::Opened(Opened { terminal: managed.face.is_some() })).await.is_err() {
        return;
    }
    let filter = match asked.stream {
        Stream::All => Filter::All,
        Stream::Stdout => Filter::Stdout,
        Stream::Stderr => Filter::Stderr,
    };
    let pouring = async {
        let from = match asked.tail {
            Some(lines) => start_of_tail(&managed, lines, filter).await?,
            None => 0,
        };
        let pour = Pour { managed: &managed, filter, to: &mut client.to };
        if asked.follow { pour.until_end(from).await } else { pour.once(from).await }
    };
    tokio::select! {
        _ = pouring => {}
        () = hung_up(&mut client.from) => {}
    }
}

pub(super) async fn attach(mut client: Client, managed: Arc<Managed>, asked: Attach) {
    if client.say(&Answer::Opened(Opened { terminal: managed.face.is_some() })).await.is_err() {
        return;
    }
    let (tell, told) = watch::channel(View { size: asked.size, notice: None });
    if asked.write
        && let Some(face) = &managed.face
    {
        let _ = face.resize(&managed.output, asked.size).await;
    }
    let (mut from, to) = (client.from, &mut client.to);
    let showing = async {
        match &managed.face {
            Some(face) => draw(&managed, face, told, to).await,
            None => {
                let from = start_of_tail(&managed, u64::from(asked.size.rows), Filter::All).await?;
                Pour { managed: &managed, filter: Filter::All, to }.until_end(from).await
            }
        }
    };
    let hearing = async {
        match asked.write {
            true => obey(&managed, &mut from, &tell).await,
            false => look(&mut from, &tell).await,
        }
    };
    tokio::select! {
        _ = showing => {}
        _ = hearing => {}
    }
}

/// Returns when nobody listens any more.
async fn hung_up(from: &mut BufReader<OwnedReadHalf>) {
    let mut ignored = [0; 64];
    while from.read(&mut ignored).await.is_ok_and(|got| got > 0) {}
}

/// Reading may wait for a disk.
async fn aside<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(read).await.map_err(io::Error::other)
}

async fn start_of_tail(managed: &Managed, lines: u64, filter: Filter) -> io::Result<u64> {
    let output = Arc::clone(&managed.output);
    match usize::try_from(lines) {
        Ok(0) => Ok(output.totals().total_bytes),
        Ok(count) => aside(move || output.tail_lines(count, filter, TAIL_BYTES).start).await,
        Err(_) => Ok(0),
    }
}

/// Sends one frame; an error when nobody takes it.
async fn send(to: &mut OwnedWriteHalf, kind: Kind, bytes: &[u8]) -> io::Result<()> {
    timeout(STALLED, to.write_all(&frame::encode(kind, bytes))).await?
}

async fn send_end(to: &mut OwnedWriteHalf, managed: &Managed) -> io::Result<()> {
    send(to, Kind::End, &serde_json::to_vec(&End::of(managed.end().as_ref()))?).await
}

/// The bytes of a process on their way to a client.
struct Pour<'a> {
    managed: &'a Arc<Managed>,
    filter: Filter,
    to: &'a mut OwnedWriteHalf,
}

impl Pour<'_> {
    /// What is there now.
    async fn once(mut self, from: u64) -> io::Result<()> {
        let goal = self.managed.output.totals().total_bytes;
        self.catch_up(from, goal).await?;
        send_end(self.to, self.managed).await
    }

    async fn until_end(mut self, from: u64) -> io::Result<()> {
        let mut at = from;
        loop {
            // In this order: what ended has said everything.
            let has_ended = !self.managed.is_running();
            let totals = self.managed.output.totals();
            at = self.catch_up(at, totals.total_bytes).await?;
            if has_ended {
                return send_end(self.to, self.managed).await;
            }
            if totals.closed {
                self.managed.until_ended().await;
            } else {
                self.managed.output.changed(totals.total_bytes).await;
            }
        }
    }

    async fn catch_up(&mut self, mut at: u64, goal: u64) -> io::Result<u64> {
        while at < goal {
            let (output, filter) = (Arc::clone(&self.managed.output), self.filter);
            let Page { chunks, next, skipped } = aside(move || output.read(at, MAX_FRAME, filter)).await?;
            if skipped > 0 {
                send(self.to, Kind::Skipped, &skipped.to_le_bytes()).await?;
            }
            let bytes: Vec<u8> = chunks.into_iter().flat_map(|chunk| chunk.data).collect();
            if !bytes.is_empty() {
                send(self.to, Kind::Output, &bytes).await?;
            }
            // Nothing is left before the goal.
            at = if next > at { next } else { goal };
        }
        Ok(at)
    }
}

async fn draw(
    managed: &Managed,
    face: &Face,
    mut view: watch::Receiver<View>,
    to: &mut OwnedWriteHalf,
) -> io::Result<()> {
    let (mut before, mut noticed) = (None, None);
    loop {
        let drawn_at = Instant::now();
        let has_ended = !managed.is_running();
        let totals = managed.output.totals();
        let View { size, notice } = view.borrow_and_update().clone();
        let picture = face.picture(&managed.output, size).await;
        for piece in picture.changes(before.as_ref()).chunks(MAX_FRAME) {
            send(to, Kind::Output, piece).await?;
        }
        before = Some(picture);
        if let Some(notice) = notice.filter(|_| notice != noticed) {
            send(to, Kind::Notice, notice.as_bytes()).await?;
        }
        noticed = notice;
        if has_ended {
            return send_end(to, managed).await;
        }
        let more = async {
            match totals.closed {
                true => drop(managed.until_ended().await),
                false => managed.output.changed(totals.total_bytes).await,
            }
        };
        tokio::select! {
            () = more => {}
            _ = view.changed() => {}
        }
        sleep_until(drawn_at + PICTURE_PAUSE).await;
    }
}

/// Someone who only looks may change the size of the window they look through.
async fn look(from: &mut BufReader<OwnedReadHalf>, tell: &watch::Sender<View>) -> io::Result<()> {
    loop {
        if let (Kind::View, bytes) = frame::read(from).await? {
            see(tell, &bytes);
        }
    }
}

/// Keys go to the process, and its terminal takes the size of the window.
async fn obey(managed: &Managed, from: &mut BufReader<OwnedReadHalf>, tell: &watch::Sender<View>) -> io::Result<()> {
    loop {
        match frame::read(from).await? {
            (Kind::Input, bytes) => {
                let input = managed.input.lock().await;
                let written = input.write(&bytes, &managed.activity).await;
                if let Some(face) = &managed.face {
                    face.said(&bytes[..written.bytes]);
                }
                let notice = (!written.complete).then_some("the process does not take its input");
                tell.send_if_modified(|view| std::mem::replace(&mut view.notice, notice) != notice);
            }
            (Kind::View, bytes) => {
                let size = see(tell, &bytes);
                if let (Some(face), Some(size)) = (&managed.face, size) {
                    let _ = face.resize(&managed.output, size).await;
                }
            }
            _ => {}
        }
    }
}

fn see(tell: &watch::Sender<View>, bytes: &[u8]) -> Option<Size> {
    let &[r0, r1, c0, c1] = bytes else { return None };
    let size = Size { rows: u16::from_le_bytes([r0, r1]).max(1), cols: u16::from_le_bytes([c0, c1]).max(1) };
    tell.send_modify(|view| view.size = size);
    Some(size)
}
