//! Our own terminal in raw mode, and always back again.

use crate::sys::terminal::{self, Size};
use nix::sys::signalfd::{SfdFlags, SigSet, SignalFd};
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use std::io::{IsTerminal, stdin, stdout};
use std::os::fd::AsFd;

/// Holding this, our terminal passes every key on; dropping it gives the terminal back as it was.
#[derive(Debug)]
pub struct Raw(Option<Termios>);

impl Raw {
    pub fn enter() -> Self {
        let Ok(before) = tcgetattr(stdin()) else { return Raw(None) };
        let mut raw = before.clone();
        cfmakeraw(&mut raw);
        let _ = tcsetattr(stdin(), SetArg::TCSANOW, &raw);
        Raw(Some(before))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = tcsetattr(stdin(), SetArg::TCSANOW, before);
        }
    }
}

/// Whether a person sits at all three standard streams.
pub fn is_interactive() -> bool {
    stdin().is_terminal() && stdout().is_terminal() && std::io::stderr().is_terminal()
}

/// The size of our terminal, or what a program without one expects.
pub fn size() -> Size {
    let size = terminal::size(stdin().as_fd()).or_else(|_| terminal::size(stdout().as_fd()));
    size.ok().filter(|size| size.rows > 0 && size.cols > 0).unwrap_or(Size { rows: 24, cols: 80 })
}

/// Signals to us, as a descriptor. Must be made before any thread.
pub fn signals() -> nix::Result<SignalFd> {
    use nix::sys::signal::Signal;
    let mut set = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGWINCH] {
        set.add(signal);
    }
    set.thread_block()?;
    SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
}
