//! Descriptors that tokio watches.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Watches a descriptor that is ours. Called inside the runtime.
pub fn watch_owned(descriptor: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    watch(descriptor, interest)
}

/// Watches a descriptor for as long as it is borrowed. Called inside the runtime.
pub fn watch_borrowed(descriptor: BorrowedFd<'_>, interest: Interest) -> io::Result<AsyncFd<BorrowedFd<'_>>> {
    watch(descriptor, interest)
}

fn watch<T: AsFd + AsRawFd>(descriptor: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    // SAFETY: both types above stay open and keep their number for as long as they live (`std::os::fd`, I/O safety).
    unsafe { AsyncFd::register_with_interest(descriptor, interest) }.map_err(|error| error.into_parts().1)
}
