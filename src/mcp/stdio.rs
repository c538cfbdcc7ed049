//! The client's two descriptors, whatever they are, read and written without ever blocking the runtime.
//!
//! `O_NONBLOCK` belongs to an open file description that other processes may share, so it is never set on what was
//! inherited: pipes and terminals are opened anew through `/proc/self/fd`, sockets are asked with `MSG_DONTWAIT`, and
//! what can be neither is polled before each step. Files have no readiness and are read as they are.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv, send};
use std::fs::{File, OpenOptions};
use std::future::pending;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A pipe that polls as writable takes this much without blocking (pipe(7), `PIPE_BUF`).
const PIPE_STEP: usize = 4096;

#[derive(Debug)]
pub struct Input(Descriptor);

#[derive(Debug)]
pub struct Output(Descriptor);

#[derive(Debug)]
enum Descriptor {
    Watched(AsyncFd<File>, Way),
    /// No readiness to wait for: a file, `/dev/null`.
    Plain(File),
}

/// How a step is kept from blocking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    OwnDescription,
    Socket,
    Polled,
}

impl Input {
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        Descriptor::new(fd, OpenOptions::new().read(true), Interest::READABLE).map(Input)
    }

    /// Some bytes; zero when the client will send no more. Cancel-safe.
    pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let (file, way) = match &self.0 {
            Descriptor::Watched(file, way) => (file, *way),
            Descriptor::Plain(file) => return retry(|| (&mut &*file).read(buffer)),
        };
        loop {
            let mut ready = file.readable().await?;
            if let Ok(done) = ready.try_io(|file| retry(|| read_step(file.get_ref(), way, buffer))) {
                return done;
            }
        }
    }
}

impl Output {
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        Descriptor::new(fd, OpenOptions::new().write(true), Interest::WRITABLE | Interest::ERROR).map(Output)
    }

    pub async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        let (file, way) = match &self.0 {
            Descriptor::Watched(file, way) => (file, *way),
            Descriptor::Plain(file) => return (&mut &*file).write_all(bytes),
        };
        while !bytes.is_empty() {
            let mut ready = file.writable().await?;
            if let Ok(done) = ready.try_io(|file| retry(|| write_step(file.get_ref(), way, bytes))) {
                match done? {
                    0 => return Err(ErrorKind::WriteZero.into()),
                    count => bytes = &bytes[count..],
                }
            }
        }
        Ok(())
    }

    /// Waits until nobody can read any more. Only pipes tell; others are silent until the next write.
    pub async fn closed(&self) {
        if let Descriptor::Watched(file, _) = &self.0 {
            while let Ok(mut ready) = file.ready(Interest::ERROR).await {
                if ready.ready().is_error() {
                    return;
                }
                ready.clear_ready();
            }
        }
        pending().await
    }
}

impl Descriptor {
    fn new(fd: OwnedFd, access: &mut OpenOptions, interest: Interest) -> io::Result<Self> {
        let file = File::from(fd);
        let kind = file.metadata()?.file_type();
        let (file, way) = if kind.is_socket() {
            (file, Way::Socket)
        } else {
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            match access.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path) {
                Ok(own) if kind.is_fifo() || kind.is_char_device() => (own, Way::OwnDescription),
                // Opened anew, a file would be written from its start.
                _ => (file, Way::Polled),
            }
        };
        match AsyncFd::try_with_interest(file, interest) {
            Ok(watched) => Ok(Descriptor::Watched(watched, way)),
            Err(error) => {
                let (file, cause) = error.into_parts();
                match cause.raw_os_error() {
                    // epoll_ctl(2): the file does not support it.
                    Some(libc::EPERM) => Ok(Descriptor::Plain(file)),
                    _ => Err(cause),
                }
            }
        }
    }
}

fn read_step(file: &File, way: Way, buffer: &mut [u8]) -> io::Result<usize> {
    match way {
        Way::OwnDescription => (&mut &*file).read(buffer),
        Way::Socket => Ok(recv(file.as_raw_fd(), buffer, MsgFlags::MSG_DONTWAIT)?),
        Way::Polled => {
            expect_ready(file, PollFlags::POLLIN)?;
            (&mut &*file).read(buffer)
        }
    }
}

fn write_step(file: &File, way: Way, bytes: &[u8]) -> io::Result<usize> {
    match way {
        Way::OwnDescription => (&mut &*file).write(bytes),
        Way::Socket => Ok(send(file.as_raw_fd(), bytes, MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL)?),
        Way::Polled => {
            expect_ready(file, PollFlags::POLLOUT)?;
            (&mut &*file).write(&bytes[..bytes.len().min(PIPE_STEP)])
        }
    }
}

fn expect_ready(file: &File, wanted: PollFlags) -> io::Result<()> {
    let mut polled = [PollFd::new(file.as_fd(), wanted)];
    match poll(&mut polled, PollTimeout::ZERO)? {
        0 => Err(ErrorKind::WouldBlock.into()),
        _ => Ok(()),
    }
}

fn retry(mut step: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match step() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}
