//! Our own terminal in raw mode, and always back again.

use crate::sys::terminal::{self, Size};
use nix::sys::signalfd::{SfdFlags, SigSet, SignalFd};
use nix::sys::termios::{LocalFlags, SetArg, SpecialCharacterIndices, Termios, cfmakeraw, tcgetattr, tcsetattr};
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

/// Which keys reach us, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// Each at once and unseen; what is printed still looks as it should.
    Unseen,
    /// By the line, as it is typed; this one ends a line too.
    Lines { end: u8 },
}

impl Raw {
    pub fn enter_with(keys: Keys) -> Self {
        let Ok(before) = tcgetattr(stdin()) else { return Raw(None) };
        let mut changed = before.clone();
        match keys {
            Keys::Unseen => changed.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ISIG),
            Keys::Lines { end } => changed.control_chars[SpecialCharacterIndices::VEOL2 as usize] = end,
        }
        let _ = tcsetattr(stdin(), SetArg::TCSANOW, &changed);
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
