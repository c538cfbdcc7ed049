//! Unix sockets with descriptors in the message, without allocation.

use super::{Errno, Result, check};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// How many descriptors one message may carry: SCM_MAX_FD is 253, we never need that many at once.
pub const MAX_DESCRIPTORS: usize = 128;

/// A connected pair, closed on exec.
pub fn pair(kind: i32) -> Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: the array has room for the two descriptors, which nobody else owns.
    unsafe {
        let done = libc::socketpair(libc::AF_UNIX, kind | libc::SOCK_CLOEXEC, 0, ends.as_mut_ptr());
        check(libc::c_long::from(done))?;
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

/// Room for the control part of a message, aligned as `cmsghdr` wants it.
#[repr(C, align(8))]
struct Control([u8; 16 + MAX_DESCRIPTORS * 4 + 8]);

/// Sends bytes and descriptors in one message; returns how many bytes went. Child-safe.
pub fn send(socket: RawFd, bytes: &[u8], descriptors: &[RawFd]) -> Result<usize> {
    if descriptors.len() > MAX_DESCRIPTORS {
        return Err(Errno::E2BIG);
    }
    let mut control = Control([0; _]);
    let mut vector = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: every pointer in the header points to memory that outlives the call, with its true length; the
    // control buffer is large and aligned enough for one SCM_RIGHTS message of MAX_DESCRIPTORS.
    let sent = unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &mut vector;
        header.msg_iovlen = 1;
        if !descriptors.is_empty() {
            let size = size_of_val(descriptors);
            header.msg_control = control.0.as_mut_ptr().cast();
            header.msg_controllen = libc::CMSG_SPACE(size as u32) as usize;
            let message = libc::CMSG_FIRSTHDR(&header);
            (*message).cmsg_level = libc::SOL_SOCKET;
            (*message).cmsg_type = libc::SCM_RIGHTS;
            (*message).cmsg_len = libc::CMSG_LEN(size as u32) as usize;
            std::ptr::copy_nonoverlapping(descriptors.as_ptr().cast(), libc::CMSG_DATA(message), size);
        }
        loop {
            let sent = libc::sendmsg(socket, &header, libc::MSG_NOSIGNAL);
            if sent >= 0 || Errno::last() != Errno::EINTR {
                break sent;
            }
        }
    };
    check(sent as libc::c_long).map(|n| n as usize)
}

/// Receives bytes and up to `descriptors.len()` descriptors (closed on exec); returns both counts. Child-safe.
pub fn receive(socket: RawFd, bytes: &mut [u8], descriptors: &mut [RawFd]) -> Result<(usize, usize)> {
    let mut control = Control([0; _]);
    let mut vector = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: as in `send`; descriptors are copied out of the control message within its length.
    unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &mut vector;
        header.msg_iovlen = 1;
        if !descriptors.is_empty() {
            header.msg_control = control.0.as_mut_ptr().cast();
            header.msg_controllen = size_of::<Control>();
        }
        let got = loop {
            let got = libc::recvmsg(socket, &mut header, libc::MSG_CMSG_CLOEXEC);
            if got >= 0 || Errno::last() != Errno::EINTR {
                break got;
            }
        };
        let got = check(got as libc::c_long)? as usize;
        let mut count = 0;
        let mut message = libc::CMSG_FIRSTHDR(&header);
        while !message.is_null() {
            if (*message).cmsg_level == libc::SOL_SOCKET && (*message).cmsg_type == libc::SCM_RIGHTS {
                let size = (*message).cmsg_len - libc::CMSG_LEN(0) as usize;
                let data = libc::CMSG_DATA(message).cast::<RawFd>();
                for index in 0..size / size_of::<RawFd>() {
                    let fd = data.add(index).read_unaligned();
                    if count < descriptors.len() {
                        descriptors[count] = fd;
                        count += 1;
                    } else {
                        libc::close(fd);
                    }
                }
            }
            message = libc::CMSG_NXTHDR(&header, message);
        }
        Ok((got, count))
    }
}
