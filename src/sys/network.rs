//! What a fresh network namespace needs, its loopback up; and one attempt to leave it.

use super::{Result, check};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;

/// Brings `lo` up in this network namespace (netdevice(7)).
pub fn raise_loopback() -> Result<()> {
    let socket = super::descriptor::adopt(socket(libc::AF_INET, libc::SOCK_DGRAM)?);
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

/// Begins a TCP connection and does not wait for it. Child-safe.
pub fn connect(address: SocketAddr) -> Result<()> {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let socket = super::descriptor::adopt(socket(family, libc::SOCK_STREAM | libc::SOCK_NONBLOCK)?);
    // SAFETY: each address is passed with its own size and outlives the call; zeroed is valid for both.
    let done = unsafe {
        match address {
            SocketAddr::V4(v4) => {
                let mut raw: libc::sockaddr_in = std::mem::zeroed();
                raw.sin_family = libc::AF_INET as libc::sa_family_t;
                raw.sin_port = v4.port().to_be();
                raw.sin_addr.s_addr = u32::from_ne_bytes(v4.ip().octets());
                let size = size_of::<libc::sockaddr_in>() as libc::socklen_t;
                libc::connect(socket.as_raw_fd(), std::ptr::from_ref(&raw).cast(), size)
            }
            SocketAddr::V6(v6) => {
                let mut raw: libc::sockaddr_in6 = std::mem::zeroed();
                raw.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                raw.sin6_port = v6.port().to_be();
                raw.sin6_addr.s6_addr = v6.ip().octets();
                let size = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
                libc::connect(socket.as_raw_fd(), std::ptr::from_ref(&raw).cast(), size)
            }
        }
    };
    check(libc::c_long::from(done)).map(drop)
}

fn socket(family: i32, kind: i32) -> Result<i32> {
    // SAFETY: only integers are passed.
    let fd = unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, 0) };
    check(libc::c_long::from(fd)).map(|fd| fd as i32)
}
