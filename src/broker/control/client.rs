//! The other end of the control socket, for whoever may wait: connect, ask, read what comes.

use super::NAME;
use super::message::{Answer, Request};
use crate::broker::output::folder::Folder;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, setsockopt, socket, sockopt};
use nix::sys::time::{TimeVal, TimeValLike};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// For a broker to take a connection and to begin an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// All the processes that may be kept, with the longest commands.
const MAX_ANSWER: u64 = 64 << 20;

/// A conversation with a broker.
#[derive(Debug)]
pub struct Line {
    pub from: BufReader<UnixStream>,
    pub to: UnixStream,
}

impl Line {
    /// Connects to the broker whose directory this is. `NotFound` and `ConnectionRefused`: there is none any more.
    pub fn connect(directory: &Path) -> io::Result<Line> {
        let folder = Folder::open(directory)?;
        // By descriptor, as it was bound: no path is too long.
        let path = format!("/proc/self/fd/{}/{NAME}", folder.directory.as_raw_fd());
        let own = socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
        // A broker that is stopped takes no connections once its queue is full; this bounds connect(2) too.
        setsockopt(&own, sockopt::SendTimeout, &TimeVal::seconds(PATIENCE.as_secs() as i64))?;
        connect(own.as_raw_fd(), &UnixAddr::new(path.as_str())?)?;
        let to = UnixStream::from(own);
        to.set_read_timeout(Some(PATIENCE))?;
        Ok(Line { from: BufReader::new(to.try_clone()?), to })
    }

    /// Asks, and waits for the answer `longer` than usual.
    pub fn ask(&mut self, request: &Request, longer: Duration) -> io::Result<Answer> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        self.to.write_all(&line)?;
        self.to.set_read_timeout(Some(PATIENCE + longer))?;
        let mut line = Vec::new();
        (&mut self.from).take(MAX_ANSWER).read_until(b'\n', &mut line)?;
        if !line.ends_with(b"\n") {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the broker hung up without an answer"));
        }
        Ok(serde_json::from_slice(&line)?)
    }
}
