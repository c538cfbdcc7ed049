//! A server as a process with pipes: bytes in, lines of JSON out, signals, its end.
//!
//! There is no thread here. Bytes move only while a test waits for something, so a client that stops reading is one
//! that is not asked.

use crate::ends::wait_for;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Longer than any answer takes, even on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct Server {
    child: Child,
    input: Option<ChildStdin>,
    output: Option<ChildStdout>,
    /// Bytes of a line that has not ended.
    partial: Vec<u8>,
    /// Messages that nobody has asked for yet.
    heard: VecDeque<Value>,
    log: PathBuf,
}

impl Server {
    /// Starts the server and says nothing.
    pub fn start(mut command: Command, log: PathBuf) -> Self {
        let errors = File::create(&log).expect("a log");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors);
        Self::of(command.spawn().expect("stockade starts"), log)
    }

    /// One that was started by hand, with its stdin and stdout piped.
    pub fn of(mut child: Child, log: PathBuf) -> Self {
        let (input, output) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        for end in [input.as_fd(), output.as_fd()] {
            fcntl(end, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).expect("a pipe");
        }
        Server { child, input: Some(input), output: Some(output), partial: Vec::new(), heard: VecDeque::new(), log }
    }

    /// Sends bytes as they are, and takes in whatever comes meanwhile.
    pub fn raw(&mut self, mut bytes: &[u8]) {
        let deadline = Instant::now() + PATIENCE;
        while !bytes.is_empty() {
            assert!(Instant::now() < deadline, "the server stopped reading: {}", self.log());
            let sent = self.exchange(bytes, Take::All, deadline).expect("the server reads");
            bytes = &bytes[sent..];
        }
    }

    /// Sends bytes without taking anything in; gives back how many went before the server stopped reading for so long.
    pub fn raw_deaf(&mut self, bytes: &[u8], silence: Duration) -> usize {
        let mut sent = 0;
        while sent < bytes.len() {
            match self.exchange(&bytes[sent..], Take::Nothing, Instant::now() + silence) {
                Ok(0) | Err(_) => break,
                Ok(count) => sent += count,
            }
        }
        sent
    }

    /// Waits for the first message that fits; the others are kept for later.
    pub fn wait_for_message(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let found = self.message_within(PATIENCE, fits);
        found.unwrap_or_else(|| panic!("{what} never came; heard: {:?}\n{}", self.heard, self.log()))
    }

    /// The same, and `None` when the time is over or the server has hung up.
    pub fn message_within(&mut self, within: Duration, fits: impl Fn(&Value) -> bool) -> Option<Value> {
        let deadline = Instant::now() + within;
        let mut looked_at = 0;
        loop {
            if let Some(at) = self.heard.iter().skip(looked_at).position(&fits) {
                return self.heard.remove(looked_at + at);
            }
            looked_at = self.heard.len();
            if Instant::now() >= deadline || self.output.is_none() {
                return None;
            }
            self.exchange(&[], Take::All, deadline).ok();
        }
    }

    /// What has been heard and not asked for, in order.
    pub fn take_heard(&mut self) -> Vec<Value> {
        self.heard.drain(..).collect()
    }

    /// Waits for one of the two directions, once; how many bytes went out.
    fn exchange(&mut self, bytes: &[u8], take: Take, deadline: Instant) -> Result<usize, ErrorKind> {
        let mut waits = Vec::new();
        if let (Some(output), Take::All) = (&self.output, take) {
            waits.push(PollFd::new(output.as_fd(), PollFlags::POLLIN));
        }
        if let (Some(input), false) = (&self.input, bytes.is_empty()) {
            waits.push(PollFd::new(input.as_fd(), PollFlags::POLLOUT));
        }
        let left = deadline.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
        match poll(&mut waits, PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => panic!("poll: {error}"),
        }
        if take == Take::All {
            self.listen();
        }
        let Some(input) = &mut self.input else { return Err(ErrorKind::BrokenPipe) };
        match input.write(bytes) {
            Ok(sent) => Ok(sent),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(0),
            Err(error) => Err(error.kind()),
        }
    }

    /// Takes in what is there.
    fn listen(&mut self) {
        let mut buffer = [0; 64 << 10];
        let Some(output) = &mut self.output else { return };
        match output.read(&mut buffer) {
            Ok(0) => self.output = None,
            Ok(count) => {
                self.partial.extend_from_slice(&buffer[..count]);
                // Only what is new can hold the end of a line.
                let new = self.partial.len() - count;
                if let Some(end) = self.partial[new..].iter().rposition(|byte| *byte == b'\n') {
                    let rest = self.partial.split_off(new + end + 1);
                    let lines = std::mem::replace(&mut self.partial, rest);
                    self.heard.extend(lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(parse));
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => panic!("reading the server: {error}"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Take {
    All,
    Nothing,
}

impl Server {
    /// The broker's PID.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends the server's input.
    pub fn hang_up(&mut self) {
        self.input = None;
    }

    /// Closes our end of the server's output: its next write fails.
    pub fn stop_listening(&mut self) {
        self.output = None;
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).expect("the server is there");
    }

    /// SIGKILL, and waits until it is dead.
    pub fn kill(&mut self) {
        self.child.kill().expect("the server is there");
        self.child.wait().expect("the server is dead");
    }

    /// Waits for the server's end.
    pub fn wait(&mut self, within: Duration) -> ExitStatus {
        wait_for(&mut self.child, within)
    }

    /// A figure of `/proc/PID/status` in kB: `VmRSS`, `VmHWM`.
    pub fn memory_kb(&self, figure: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("the server is there");
        let line = status.lines().find_map(|line| line.strip_prefix(figure)?.strip_prefix(':')).expect("a figure");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }

    /// What the server said on stderr.
    pub fn log(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        format!("stderr: {}", String::from_utf8_lossy(&text))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn parse(line: &[u8]) -> Value {
    serde_json::from_slice(line).unwrap_or_else(|error| {
        let shown = String::from_utf8_lossy(&line[..line.len().min(400)]).into_owned();
        panic!("a line on stdout that is no JSON ({error}): {shown:?}")
    })
}
