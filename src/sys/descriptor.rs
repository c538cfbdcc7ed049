//! Descriptors: closing ranges, moving them to fixed numbers, raw reads and writes.

use super::{Errno, Result, check};
use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Closes every descriptor from `first` to `last`, both included. Child-safe.
pub fn close_range(first: u32, last: u32) -> Result<()> {
    // SAFETY: the caller is a child about to seal itself; nothing uses these numbers afterwards.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) }).map(drop)
}

/// Makes `to` the same open file as `from`. Child-safe.
pub fn duplicate_onto(from: RawFd, to: RawFd, flags: i32) -> Result<()> {
    // SAFETY: only integers are passed; `to` is a number this child reserved.
    check(unsafe { libc::syscall(libc::SYS_dup3, from, to, flags) }).map(drop)
}

/// A copy at the first free number at or above `floor`, closed on exec. Child-safe.
pub fn duplicate_above(from: RawFd, floor: RawFd) -> Result<RawFd> {
    // SAFETY: only integers are passed.
    let fd = unsafe { libc::fcntl(from, libc::F_DUPFD_CLOEXEC, floor) };
    check(libc::c_long::from(fd)).map(|fd| fd as RawFd)
}

/// write(2), once. Child-safe.
pub fn write(fd: RawFd, bytes: &[u8]) -> Result<usize> {
    // SAFETY: the slice's true length is passed.
    check(unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) } as libc::c_long).map(|n| n as usize)
}

/// read(2), once. Child-safe.
pub fn read(fd: RawFd, buffer: &mut [u8]) -> Result<usize> {
    // SAFETY: the slice's true length is passed.
    check(unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) } as libc::c_long).map(|n| n as usize)
}

/// Opens a path. Child-safe.
pub fn open(path: &CStr, flags: i32) -> Result<OwnedFd> {
    // SAFETY: `path` is NUL-terminated.
    let fd = check(libc::c_long::from(unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC, 0) }))?;
    // SAFETY: the kernel just returned this descriptor and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Waits until one of two descriptors is readable or hung up; says which. Child-safe.
pub fn wait_for_either(first: RawFd, second: RawFd) -> Result<(bool, bool)> {
    let watch = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut watched = [watch(first), watch(second)];
    loop {
        // SAFETY: the array's true length is passed.
        let done = unsafe { libc::poll(watched.as_mut_ptr(), watched.len() as libc::nfds_t, -1) };
        match check(libc::c_long::from(done)) {
            Err(Errno::EINTR) => {}
            other => return other.map(|_| (watched[0].revents != 0, watched[1].revents != 0)),
        }
    }
}

/// Takes over a raw descriptor that came from the kernel or from another process of ours.
pub fn adopt(fd: RawFd) -> OwnedFd {
    // SAFETY: callers pass numbers that they just received and that nothing else closes.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// A borrowed view of a number that stays open for as long as the caller says.
pub fn borrow<'a>(fd: RawFd) -> BorrowedFd<'a> {
    // SAFETY: used in children whose descriptor table is frozen, on numbers they keep until exec.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// Anonymous memory of the given size, zeroed, for as long as the process lives. Child-safe.
pub fn map_memory(bytes: usize) -> Result<&'static mut [u8]> {
    // SAFETY: a fresh private mapping aliases nothing and is never unmapped.
    unsafe {
        let at = libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        if at == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        Ok(std::slice::from_raw_parts_mut(at.cast(), bytes))
    }
}

/// How many bytes wait to be read.
pub fn unread(fd: BorrowedFd<'_>) -> usize {
    let mut count: libc::c_int = 0;
    // SAFETY: FIONREAD writes one int.
    let done = unsafe { libc::ioctl(fd.as_raw_fd(), libc::FIONREAD, &mut count) };
    if done < 0 { 0 } else { count as usize }
}
