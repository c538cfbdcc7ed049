//! The client's two descriptors, whatever they are, read and written without ever blocking the runtime.
//!
//! `O_NONBLOCK` belongs to an open file description that other processes may share, so it is never set on what was
//! inherited: pipes and terminals are opened anew through `/proc/self/fd`, sockets are asked with `MSG_DONTWAIT`, and
//! what can be neither is polled before each step. Files have no readiness and are read as they are.

use crate::sys::reactor::watch_owned;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv, send};
use nix::unistd::{read, write};
use std::fs::{File, OpenOptions};
use std::future::pending;
use std::io::{self, ErrorKind};
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
    Watched(AsyncFd<OwnedFd>, Way),
    /// No readiness to wait for: a file, `/dev/null`.
    Plain(OwnedFd),
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
        let (fd, way) = match &self.0 {
            Descriptor::Watched(fd, way) => (fd, *way),
            Descriptor::Plain(fd) => return retry(|| Ok(read(fd, buffer)?)),
        };
        loop {
            let mut ready = fd.readable().await?;
            if let Ok(done) = ready.try_io(|fd| retry(|| read_step(fd.get_ref(), way, buffer))) {
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
        while !bytes.is_empty() {
            match self.write(bytes).await? {
                0 => return Err(ErrorKind::WriteZero.into()),
                count => bytes = &bytes[count..],
            }
        }
        Ok(())
    }

    async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let (fd, way) = match &self.0 {
            Descriptor::Watched(fd, way) => (fd, *way),
            Descriptor::Plain(fd) => return retry(|| Ok(write(fd, bytes)?)),
        };
        loop {
            let mut ready = fd.writable().await?;
            if let Ok(done) = ready.try_io(|fd| retry(|| write_step(fd.get_ref(), way, bytes))) {
                return done;
            }
        }
    }

    /// Waits until nobody can read any more. Only pipes tell; others are silent until the next write.
    pub async fn closed(&self) {
        if let Descriptor::Watched(fd, _) = &self.0 {
            while let Ok(mut ready) = fd.ready(Interest::ERROR).await {
                if ready.ready().is_error() {
                    return;
                }
                ready.clear_ready();
            }
        }
        pending::<()>().await;
    }
}

impl Descriptor {
    fn new(fd: OwnedFd, access: &mut OpenOptions, interest: Interest) -> io::Result<Self> {
        let file = File::from(fd);
        let kind = file.metadata()?.file_type();
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let (fd, way) = if kind.is_socket() {
            (OwnedFd::from(file), Way::Socket)
        } else if !kind.is_fifo() && !kind.is_char_device() {
            // Opened anew, a file would be read and written from its start.
            (file.into(), Way::Polled)
        } else {
            match access.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path) {
                Ok(own) => (own.into(), Way::OwnDescription),
                // Another user's, or nobody is left at its other end.
                Err(_) => (file.into(), Way::Polled),
            }
        };
        let spare = fd.try_clone()?;
        match watch_owned(fd, interest) {
            Ok(watched) => Ok(Descriptor::Watched(watched, way)),
            // epoll_ctl(2): the file does not support it.
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => Ok(Descriptor::Plain(spare)),
            Err(error) => Err(error),
        }
    }
}

fn read_step(fd: &OwnedFd, way: Way, buffer: &mut [u8]) -> io::Result<usize> {
    match way {
        Way::OwnDescription => Ok(read(fd, buffer)?),
        Way::Socket => Ok(recv(fd.as_raw_fd(), buffer, MsgFlags::MSG_DONTWAIT)?),
        Way::Polled => {
            expect_ready(fd, PollFlags::POLLIN)?;
            Ok(read(fd, buffer)?)
        }
    }
}

fn write_step(fd: &OwnedFd, way: Way, bytes: &[u8]) -> io::Result<usize> {
    match way {
        Way::OwnDescription => Ok(write(fd, bytes)?),
        Way::Socket => Ok(send(fd.as_raw_fd(), bytes, MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL)?),
        Way::Polled => {
            expect_ready(fd, PollFlags::POLLOUT)?;
            Ok(write(fd, &bytes[..bytes.len().min(PIPE_STEP)])?)
        }
    }
}

fn expect_ready(fd: &OwnedFd, wanted: PollFlags) -> io::Result<()> {
    let mut polled = [PollFd::new(fd.as_fd(), wanted)];
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

#[cfg(test)]
mod tests {
    use super::{Descriptor, Input, Interest, Output, Way, watch_owned};

    /// Blocking descriptors, as another user's pipe would leave us with.
    #[tokio::test]
    async fn a_pipe_that_cannot_be_opened_anew_does_not_block_the_runtime() {
        let (reader, writer) = nix::unistd::pipe().unwrap();
        let input = Input(Descriptor::Watched(watch_owned(reader, Interest::READABLE).unwrap(), Way::Polled));
        let writer = watch_owned(writer, Interest::WRITABLE | Interest::ERROR).unwrap();
        let output = Output(Descriptor::Watched(writer, Way::Polled));
        let sent: Vec<u8> = (0..300_000_u32).map(|number| number as u8).collect();
        let writing = async {
            output.write_all(&sent).await.unwrap();
            drop(output);
        };
        let reading = async {
            let mut received = Vec::new();
            let mut buffer = [0; 10_000];
            loop {
                match input.read(&mut buffer).await.unwrap() {
                    0 => return received,
                    count => received.extend_from_slice(&buffer[..count]),
                }
            }
        };
        let (received, ()) = tokio::join!(reading, writing);
        assert!(received == sent);
    }
}
