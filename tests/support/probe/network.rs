//! Attempts on the network wall.

use super::kernel::{UNPREPARED, call, hex, number};
use super::{Attempt, errno, judge, told};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixDatagram, UnixStream};

pub fn attempt(words: &[&str]) -> Option<Attempt> {
    Some(match words {
        ["connect", address] => told(TcpStream::connect(*address)),
        ["bind", address] => told(TcpListener::bind(*address)),
        ["send-udp", address] => told(UdpSocket::bind("0.0.0.0:0").and_then(|socket| socket.send_to(b"x", *address))),
        ["connect-unix", path] => told(UnixStream::connect(path)),
        ["connect-abstract", name] => told(connect_abstract(name)),
        ["reconnect-pair", path] => told(UnixDatagram::pair().and_then(|(one, _)| one.connect(path))),
        ["fast-open", address] => fast_open(address),
        ["option", level, name, value] => option(level, name, value),
        ["loopback", address] => told(loopback(address)),
        ["serve"] => told(serve()),
        ["credentials", pid, uid, gid] => credentials(pid, uid, gid),
        _ => return None,
    })
}

fn connect_abstract(name: &str) -> std::io::Result<UnixStream> {
    UnixStream::connect_addr(&UnixAddr::from_abstract_name(name)?)
}

/// Connects and sends in one call, which no connect rule sees.
fn fast_open(address: &str) -> Attempt {
    let Ok(SocketAddr::V4(address)) = address.parse() else { return Err(UNPREPARED) };
    let socket = call(libc::SYS_socket, [libc::AF_INET as u64, libc::SOCK_STREAM as u64, 0, 0, 0, 0]);
    judge(socket).map_err(|_| UNPREPARED)?;
    let to = libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(*address.ip()).to_be() },
        sin_zero: [0; 8],
    };
    let flags = libc::MSG_FASTOPEN as u64;
    judge(call(libc::SYS_sendto, [socket as u64, c"x".as_ptr() as u64, 1, flags, &raw const to as u64, 16]))
}

/// Sets one option, given as hexadecimal bytes, on a TCP socket.
fn option(level: &str, name: &str, value: &str) -> Attempt {
    let socket = call(libc::SYS_socket, [libc::AF_INET as u64, libc::SOCK_STREAM as u64, 0, 0, 0, 0]);
    judge(socket).map_err(|_| UNPREPARED)?;
    let value = hex(value);
    let arguments = [socket as u64, number(level), number(name), value.as_ptr() as u64, value.len() as u64, 0];
    judge(call(libc::SYS_setsockopt, arguments))
}

/// A byte from one socket to another over the cell's own loopback.
fn loopback(address: &str) -> std::io::Result<()> {
    let listener = TcpListener::bind(address)?;
    TcpStream::connect(listener.local_addr()?)?.write_all(b"x")?;
    listener.accept()?.0.read_exact(&mut [0])
}

/// Prints its port, and answers one connection.
fn serve() -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?.port());
    listener.accept()?.0.write_all(b"x")
}

/// Sends credentials over a socket pair; `self` stands for the true ones.
fn credentials(pid: &str, uid: &str, gid: &str) -> Attempt {
    let given = |word: &str, own: u64| if word == "self" { own } else { number(word) };
    let (one, _other) = UnixDatagram::pair().map_err(|_| UNPREPARED)?;
    // SAFETY: everything that the message points to outlives the call; CMSG_* stay within the buffer.
    let sent = unsafe {
        let claim = libc::ucred {
            pid: given(pid, libc::getpid() as u64) as i32,
            uid: given(uid, libc::getuid().into()) as u32,
            gid: given(gid, libc::getgid().into()) as u32,
        };
        let mut data = *b"x";
        let mut part = libc::iovec { iov_base: data.as_mut_ptr().cast(), iov_len: 1 };
        let mut control = [0_u64; 8];
        let mut message: libc::msghdr = std::mem::zeroed();
        (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(size_of::<libc::ucred>() as u32) as usize;
        let head = libc::CMSG_FIRSTHDR(&raw const message);
        (*head).cmsg_level = libc::SOL_SOCKET;
        (*head).cmsg_type = libc::SCM_CREDENTIALS;
        (*head).cmsg_len = libc::CMSG_LEN(size_of::<libc::ucred>() as u32) as usize;
        libc::CMSG_DATA(head).cast::<libc::ucred>().write_unaligned(claim);
        libc::sendmsg(one.as_raw_fd(), &raw const message, 0)
    };
    if sent < 0 { Err(errno()) } else { Ok(()) }
}
