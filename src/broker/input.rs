//! A process's input: a pipe, or the terminal that its output comes from too.
//!
//! Writes of different calls do not mix: each holds the input until it is done. A process that does not read holds up
//! its own writers only, and not for ever.

use super::process::Activity;
use crate::sys::descriptor;
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// How long a process may take to make room for more input.
const PATIENCE: Duration = Duration::from_secs(2);

/// The key that ends a terminal's input (termios(3), VEOF).
const END_KEY: u8 = 4;

#[derive(Debug)]
pub enum Input {
    Pipe(Arc<AsyncFd<OwnedFd>>),
    Terminal(Arc<AsyncFd<OwnedFd>>),
    Closed,
}

/// What was typed last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    Whole,
    Half,
}

/// How far a write got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    pub bytes: usize,
    pub complete: bool,
}

impl Input {
    pub fn is_closed(&self) -> bool {
        matches!(self, Input::Closed)
    }

    pub fn close(&mut self) {
        *self = Input::Closed;
    }

    /// Gives up when the process makes no room for a while.
    pub async fn write(&self, bytes: &[u8], activity: &Activity) -> Written {
        self.write_within(PATIENCE, bytes, activity).await
    }

    /// For as long as the process is there.
    pub async fn write_patiently(&self, bytes: &[u8], activity: &Activity) -> Written {
        self.write_within(Duration::MAX, bytes, activity).await
    }

    async fn write_within(&self, patience: Duration, bytes: &[u8], activity: &Activity) -> Written {
        let (Input::Pipe(to) | Input::Terminal(to)) = self else {
            return Written { bytes: 0, complete: bytes.is_empty() };
        };
        let mut written = 0;
        while written < bytes.len() {
            let write = |end: &OwnedFd| descriptor::write(end.as_raw_fd(), &bytes[written..]).map_err(Into::into);
            match tokio::time::timeout(patience, to.async_io(Interest::WRITABLE, write)).await {
                Ok(Ok(got)) => {
                    written += got;
                    activity.touch();
                }
                Ok(Err(error)) if error.kind() == ErrorKind::Interrupted => {}
                // The reader is gone, or does not read.
                Ok(Err(_)) | Err(_) => break,
            }
        }
        Written { bytes: written, complete: written == bytes.len() }
    }

    /// A pipe is closed; a terminal does not end with its writer, so it is sent the key that says so.
    ///
    /// After half a line the key only hands over what is there; a second one then ends it (termios(3)).
    pub async fn end(&mut self, line: Line, activity: &Activity) -> bool {
        match self {
            Input::Pipe(_) => {
                *self = Input::Closed;
                true
            }
            Input::Terminal(_) => {
                let keys: &[u8] = if line == Line::Half { &[END_KEY, END_KEY] } else { &[END_KEY] };
                self.write(keys, activity).await.complete
            }
            Input::Closed => false,
        }
    }
}
