//! Pseudo-terminals: making one inside a cell, sizing it, and holding our own terminal in raw mode.

use super::{Result, check, descriptor};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Rows and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Size {
    pub rows: u16,
    pub cols: u16,
}

/// Opens a new pseudo-terminal from the devpts that `/dev/ptmx` belongs to: `(master, slave)`. Child-safe.
pub fn open_pair() -> Result<(OwnedFd, OwnedFd)> {
    let master = descriptor::open(c"/dev/ptmx", libc::O_RDWR | libc::O_NOCTTY)?;
    let unlock: libc::c_int = 0;
    // SAFETY: TIOCSPTLCK reads one int; TIOCGPTPEER takes flags and returns a descriptor nobody else owns.
    unsafe {
        let done = libc::ioctl(master.as_raw_fd(), libc::TIOCSPTLCK, std::ptr::from_ref(&unlock));
        check(libc::c_long::from(done))?;
        let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
        let slave = libc::ioctl(master.as_raw_fd(), libc::TIOCGPTPEER, flags);
        check(libc::c_long::from(slave))?;
        Ok((master, OwnedFd::from_raw_fd(slave)))
    }
}

/// Makes the terminal the controlling one of this session. Child-safe.
pub fn control(terminal: RawFd) -> Result<()> {
    // SAFETY: TIOCSCTTY takes an integer.
    check(libc::c_long::from(unsafe { libc::ioctl(terminal, libc::TIOCSCTTY, 0) })).map(drop)
}

/// Sets the window size; the kernel tells the foreground group with SIGWINCH. Child-safe.
pub fn resize(terminal: BorrowedFd<'_>, size: Size) -> Result<()> {
    let window = libc::winsize { ws_row: size.rows, ws_col: size.cols, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: TIOCSWINSZ reads one winsize.
    let done = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSWINSZ, std::ptr::from_ref(&window)) };
    check(libc::c_long::from(done)).map(drop)
}

/// The window size of a terminal.
pub fn size(terminal: BorrowedFd<'_>) -> Result<Size> {
    // SAFETY: TIOCGWINSZ writes one winsize.
    let window = unsafe {
        let mut window: libc::winsize = std::mem::zeroed();
        check(libc::c_long::from(libc::ioctl(terminal.as_raw_fd(), libc::TIOCGWINSZ, &mut window)))?;
        window
    };
    Ok(Size { rows: window.ws_row, cols: window.ws_col })
}
