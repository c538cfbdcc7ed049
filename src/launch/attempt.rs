//! An attempt instead of a command: the sealed child tries one thing itself and says what the kernel answered.
//!
//! For `policy check --live`: under every wall, and without a program that the policy might not allow. Leaves
//! nothing behind. Child-safe.

use crate::sys::{Errno, descriptor, network};
use std::ffi::CStr;
use std::net::SocketAddr;

/// Tries `read PATH`, `write PATH` or `connect ADDRESS:PORT`.
pub fn attempt(kind: &CStr, what: &CStr) -> Result<(), Errno> {
    match kind.to_bytes() {
        b"read" => descriptor::open(what, libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY).map(drop),
        b"write" => write(what),
        b"connect" => {
            let text = what.to_str().map_err(|_| Errno::EINVAL)?;
            let address: SocketAddr = text.parse().map_err(|_| Errno::EINVAL)?;
            match network::connect(address) {
                // Someone answered, or is being asked: the wall let it through.
                Err(Errno::EINPROGRESS | Errno::ECONNREFUSED) => Ok(()),
                answer => answer,
            }
        }
        _ => Err(Errno::EINVAL),
    }
}

/// A file is opened for writing, a directory for a file without a name: neither changes anything.
fn write(path: &CStr) -> Result<(), Errno> {
    match descriptor::open(path, libc::O_WRONLY | libc::O_NONBLOCK | libc::O_NOCTTY) {
        Err(Errno::EISDIR) => match descriptor::open(path, libc::O_WRONLY | libc::O_TMPFILE) {
            // This filesystem has no such files; it was asked after the walls were.
            Err(Errno::EOPNOTSUPP) => Ok(()),
            answer => answer.map(drop),
        },
        answer => answer.map(drop),
    }
}
