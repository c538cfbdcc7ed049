//! A terminal's outer end, and what a person would see there. Drawn only when someone looks, or a program asks.

use super::answer::Screen;
use super::output::Output;
use super::request::Filter;
use super::screen::{FEED_PIECE, Picture, QueryWatch, Terminal};
use super::transcript::Transcript;
use crate::sys::descriptor;
use crate::sys::terminal::{self, Size};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::unix::AsyncFd;

/// Nobody saw more than this scroll by; programs that draw on the whole screen do so again and again.
const REMEMBERED: u64 = 64 << 10;

#[derive(Debug)]
pub struct Face {
    pub master: Arc<AsyncFd<OwnedFd>>,
    seen: Mutex<Seen>,
    queries: Mutex<QueryWatch>,
    /// What is recorded, when that was asked for.
    transcript: Option<Mutex<Transcript>>,
}

#[derive(Debug)]
struct Seen {
    terminal: Terminal,
    /// How far it is drawn.
    upto: u64,
}

impl Face {
    pub fn new(master: Arc<AsyncFd<OwnedFd>>, size: Size, transcript: Option<Transcript>) -> Self {
        Face {
            master,
            seen: Mutex::new(Seen { terminal: Terminal::new(size), upto: 0 }),
            queries: Mutex::default(),
            transcript: transcript.map(Mutex::new),
        }
    }

    /// Takes note of output; true when a program asks the terminal something in it.
    pub fn heard(&self, bytes: &[u8]) -> bool {
        if let Some(transcript) = &self.transcript {
            lock(transcript).output(bytes);
        }
        lock(&self.queries).sees(bytes)
    }

    pub fn said(&self, bytes: &[u8]) {
        if let Some(transcript) = &self.transcript {
            lock(transcript).input(bytes);
        }
    }

    pub async fn resize(&self, output: &Output, size: Size) -> crate::sys::Result<()> {
        // What came before was meant for the old size.
        self.catch_up(output).await;
        terminal::resize(self.master.get_ref().as_fd(), size)?;
        lock(&self.seen).terminal.resize(size);
        if let Some(transcript) = &self.transcript {
            lock(transcript).resize(size);
        }
        Ok(())
    }

    /// Answers what a program asked, as a real terminal would.
    pub async fn reply(&self, output: &Output) {
        self.catch_up(output).await;
        let answers = lock(&self.seen).terminal.answers();
        if !answers.is_empty() {
            let _ = descriptor::write(self.master.get_ref().as_raw_fd(), &answers);
        }
    }

    pub async fn show(&self, output: &Output) -> Screen {
        self.catch_up(output).await;
        lock(&self.seen).terminal.show()
    }

    /// What a window of this size shows of it.
    pub async fn picture(&self, output: &Output, window: Size) -> Picture {
        self.catch_up(output).await;
        lock(&self.seen).terminal.picture(window)
    }

    /// Draws what was written since someone last looked, a piece at a time with others served in between.
    async fn catch_up(&self, output: &Output) {
        let goal = output.totals().total_bytes;
        loop {
            {
                let mut seen = lock(&self.seen);
                let from = seen.upto.max(goal.saturating_sub(REMEMBERED));
                if from >= goal {
                    return;
                }
                let (bytes, next) = output.bytes(from, FEED_PIECE, Filter::All);
                seen.terminal.feed(&bytes);
                seen.upto = next.max(from + 1);
            }
            tokio::task::yield_now().await;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
