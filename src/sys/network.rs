//! The one thing a fresh network namespace needs: its loopback up.

use super::{Result, check};
use std::os::fd::AsRawFd;

/// Brings `lo` up in this network namespace (netdevice(7)).
pub fn raise_loopback() -> Result<()> {
    let socket = super::descriptor::adopt(inet_socket()?);
    // SAFETY: a zeroed ifreq with a short NUL-terminated name is valid; the ioctl reads its flags.
    let done = unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &request)
    };
    check(libc::c_long::from(done)).map(drop)
}

fn inet_socket() -> Result<i32> {
    // SAFETY: only integers are passed.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    check(libc::c_long::from(fd)).map(|fd| fd as i32)
}
