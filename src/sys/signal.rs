//! Signal masks and dispositions.

use super::{Result, check};
use std::os::fd::{FromRawFd, OwnedFd};

/// Puts every signal back to its default: an ignored SIGPIPE would be inherited through exec. Child-safe.
pub fn reset_dispositions() {
    for signal in 1..=64 {
        // SAFETY: the default disposition has no handler; numbers that cannot be set are answered with an error.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Blocks every signal that can be blocked. Child-safe.
pub fn block_all() -> Result<()> {
    change_mask(libc::SIG_BLOCK)
}

/// Unblocks every signal. Child-safe.
pub fn unblock_all() -> Result<()> {
    change_mask(libc::SIG_UNBLOCK)
}

fn change_mask(how: i32) -> Result<()> {
    // SAFETY: the set is initialised by sigfillset before it is read.
    let done = unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigprocmask(how, &all, std::ptr::null_mut())
    };
    check(libc::c_long::from(done)).map(drop)
}

/// A descriptor that becomes readable when a child has died. SIGCHLD must be blocked. Child-safe.
pub fn child_events() -> Result<OwnedFd> {
    // SAFETY: the set is initialised before it is read; the new descriptor is owned by nobody else.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGCHLD);
        let fd = libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        check(libc::c_long::from(fd))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}
