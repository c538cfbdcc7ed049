//! Moves bytes between two sockets, both ways in one thread, until both are done, idle, or told to stop.
//!
//! Each way ends on its own: the end of one is passed on as a half-close, and the other goes on. It reads nothing it
//! cannot hold, so a slow reader slows its writer and nobody else.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Without a byte either way.
const IDLE_TIME: Duration = Duration::from_secs(300);

/// One read, one way. With the most connections there can be, 4 MiB.
const BUFFER: usize = 32 << 10;

/// One way of a connection.
#[derive(Debug)]
pub struct Flow<'a> {
    from: &'a TcpStream,
    to: &'a TcpStream,
    held: Vec<u8>,
    written: usize,
    /// How much may still be read; `None` for all there is.
    left: Option<u64>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Reading,
    /// Nothing more comes; what is held still has to go.
    Emptying,
    Done,
}

/// When an exchange is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    BothDone,
    /// The way down is done: one answer was asked for.
    Answered,
}

/// Why waiting ended without what was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interruption {
    Stop,
    Time,
}

impl<'a> Flow<'a> {
    /// Moves `first`, then what `from` says. Both sockets must be non-blocking.
    pub fn new(from: &'a TcpStream, to: &'a TcpStream, first: Vec<u8>) -> Self {
        Flow { from, to, held: first, written: 0, left: None, state: State::Reading }
    }

    /// Reads no more than this, and then leaves `to` open for its answer.
    pub fn at_most(mut self, bytes: u64) -> Self {
        self.left = Some(bytes);
        self
    }

    fn wanted(&self) -> Option<(BorrowedFd<'a>, PollFlags)> {
        match (self.state, self.written < self.held.len()) {
            (State::Done, _) => None,
            (_, true) => Some((self.to.as_fd(), PollFlags::POLLOUT)),
            (_, false) => Some((self.from.as_fd(), PollFlags::POLLIN)),
        }
    }

    /// As much as goes without waiting, but one read at most, so that the other way gets its turn.
    fn step(&mut self) {
        self.write();
        if self.state == State::Reading && self.held.is_empty() {
            self.read();
            self.write();
        }
        if self.state == State::Emptying && self.held.is_empty() {
            self.state = State::Done;
            if self.left.is_none() {
                let _ = self.to.shutdown(Shutdown::Write);
            }
        }
    }

    /// A broken way is a finished way: what comes the other way may be the reason.
    fn write(&mut self) {
        while self.written < self.held.len() {
            match self.to.write(&self.held[self.written..]) {
                Ok(put) if put > 0 => self.written += put,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => {
                    self.state = State::Done;
                    break;
                }
            }
        }
        self.held.clear();
        self.written = 0;
    }

    fn read(&mut self) {
        if self.left == Some(0) {
            self.state = State::Emptying;
            return;
        }
        let room = self.left.map_or(BUFFER, |left| usize::try_from(left).unwrap_or(BUFFER).min(BUFFER));
        self.held.resize(room, 0);
        let got = match self.from.read(&mut self.held) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                self.held.clear();
                return;
            }
            got => got.unwrap_or(0),
        };
        self.held.truncate(got);
        self.left = self.left.map(|left| left - got as u64);
        if got == 0 || self.left == Some(0) {
            self.state = State::Emptying;
        }
    }
}

/// Moves bytes until it is over. The sockets are the caller's to close.
pub fn run(mut up: Flow<'_>, mut down: Flow<'_>, until: Until, stop: BorrowedFd<'_>) {
    loop {
        up.step();
        down.step();
        match (up.state, down.state, until) {
            (State::Done, State::Done, _) | (_, State::Done, Until::Answered) => return,
            _ => {}
        }
        let wanted: Vec<_> = [up.wanted(), down.wanted()].into_iter().flatten().collect();
        if wait(stop, &wanted, Some(Instant::now() + IDLE_TIME)).is_err() {
            return;
        }
    }
}

/// Waits for one of the events, until a time, or until `stop` hangs up.
pub fn wait(
    stop: BorrowedFd<'_>,
    wanted: &[(BorrowedFd<'_>, PollFlags)],
    until: Option<Instant>,
) -> Result<(), Interruption> {
    let mut watched = vec![PollFd::new(stop, PollFlags::empty())];
    watched.extend(wanted.iter().map(|(socket, events)| PollFd::new(*socket, *events)));
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        // Rounded up, or the last fraction of a millisecond would be spent spinning.
        let timeout = left.map_or(PollTimeout::NONE, |left| {
            PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
        });
        match poll(&mut watched, timeout) {
            Err(Errno::EINTR) => {}
            Err(_) => return Err(Interruption::Stop),
            Ok(_) if watched[0].any().unwrap_or(true) => return Err(Interruption::Stop),
            Ok(0) => return Err(Interruption::Time),
            Ok(_) => return Ok(()),
        }
    }
}
