//! The poll loop of a command-line run: one process, the launcher, and the caller's own signals.

use super::answer::{End, Reason};
use super::fault::Trouble;
use super::process::Process;
use crate::sys::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Between the signal of whoever waits and the kill.
const GRACE: Duration = Duration::from_secs(2);

/// What the caller's own events ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    Nothing,
    /// Pass the signal on, and kill after a grace time.
    End(i32),
    Kill,
}

impl Process<'_> {
    /// Waits until everything is dead. `events` is watched too, and `wish` asked whenever it is readable.
    pub fn wait(mut self, events: BorrowedFd<'_>, mut wish: impl FnMut() -> Wish) -> Result<End, Trouble> {
        loop {
            let timeout = PollTimeout::try_from(self.patience()).unwrap_or(PollTimeout::MAX);
            let mut watched = vec![
                PollFd::new(self.ready.pidfd.as_fd(), PollFlags::POLLIN),
                PollFd::new(
                    self.ready.leash.as_fd(),
                    if self.told.is_none() { PollFlags::POLLIN } else { PollFlags::empty() },
                ),
                PollFd::new(events, PollFlags::POLLIN),
            ];
            if self.door_open {
                watched.push(PollFd::new(self.ready.door.as_fd(), PollFlags::POLLIN));
            }
            let launcher_at = watched.len();
            watched.extend(self.launcher.map(|launcher| PollFd::new(launcher, PollFlags::POLLIN)));
            match poll(&mut watched, timeout) {
                Err(Errno::EINTR) => continue,
                done => done.map_err(|errno| Trouble { stage: None, errno, at: "poll".into() })?,
            };
            let stirred =
                |index: usize| watched.get(index).and_then(PollFd::revents).is_some_and(|events| !events.is_empty());
            let (dead, said, asked) = (stirred(0), stirred(1), stirred(2));
            let (door, launcher_dead) = (self.door_open && stirred(3), stirred(launcher_at));
            drop(watched);
            if door {
                self.hear_door();
            }
            if said && self.told.is_none() {
                self.hear_leash();
            }
            if dead {
                return self.conclude();
            }
            if launcher_dead {
                return Err(Trouble::lost("the launcher"));
            }
            if asked {
                match wish() {
                    Wish::Nothing => {}
                    Wish::End(signal) => self.end(Reason::Stopped, signal, GRACE),
                    Wish::Kill => self.end_now(Reason::Stopped),
                };
            }
            self.keep_deadlines();
        }
    }
}
