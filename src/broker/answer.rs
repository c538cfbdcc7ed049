//! What the broker answers: bytes and facts. How they look in JSON is the tool surface's business.

use super::capture::Highlight;
use std::time::{Duration, SystemTime};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Running,
    Exited,
    /// Of reads and lists by id only.
    NoSuchProcess,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            State::Running => "running",
            State::Exited => "exited",
            State::NoSuchProcess => "no_such_process",
        }
    }
}

/// How a process came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    Exit,
    Signal,
    Timeout,
    IdleTimeout,
    Memory,
    OutputLimit,
    /// Someone outside asked for it.
    Stopped,
    SessionClosed,
    Canceled,
    BrokerRestart,
    SpawnFailed,
}

impl Reason {
    pub fn name(self) -> &'static str {
        match self {
            Reason::Exit => "exit",
            Reason::Signal => "signal",
            Reason::Timeout => "timeout",
            Reason::IdleTimeout => "idle_timeout",
            Reason::Memory => "memory",
            Reason::OutputLimit => "output_limit",
            Reason::Stopped => "stopped",
            Reason::SessionClosed => "session_closed",
            Reason::Canceled => "canceled",
            Reason::BrokerRestart => "broker_restart",
            Reason::SpawnFailed => "spawn_failed",
        }
    }
}

/// The end of a process, with everything it started dead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    pub reason: Reason,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub usage: Usage,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub cpu: Duration,
    pub max_rss_kib: u64,
}

#[derive(Debug, Clone)]
pub struct Ran {
    pub proc_id: String,
    /// `None`: it goes on as a managed process.
    pub end: Option<End>,
    pub stdout: Excerpt,
    pub stderr: Excerpt,
    pub highlights: Vec<Highlight>,
    pub duration: Duration,
    pub cwd: String,
    pub usage: Usage,
    /// Bytes that no read will find any more.
    pub dropped_bytes: u64,
}

/// What a reply shows of one stream: all of it, or its head and its tail.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Excerpt {
    pub head: Vec<u8>,
    /// Empty when nothing lies between.
    pub tail: Vec<u8>,
    /// Bytes between head and tail.
    pub omitted: u64,
    /// Of the whole stream.
    pub total: u64,
}

#[derive(Debug, Clone)]
pub struct Started {
    pub proc_id: String,
    /// As the host counts.
    pub pid: i32,
    pub first_output: Vec<u8>,
    pub next_cursor: u64,
    pub matched: Option<String>,
    pub end: Option<End>,
}

#[derive(Debug, Clone)]
pub struct Sent {
    pub bytes_written: usize,
    /// Everything was written (and stdin closed, if asked).
    pub acknowledged: bool,
    /// When it was asked to wait.
    pub heard: Option<Heard>,
}

/// Output that was waited for.
#[derive(Debug, Clone)]
pub struct Heard {
    pub content: Content,
    pub end: Option<End>,
    pub next_cursor: u64,
    /// More is there already.
    pub more: bool,
    pub total_bytes: u64,
    pub total_lines: u64,
    pub dropped_bytes: u64,
    /// It wrote all that may be kept, and waits until its output is removed.
    pub paused: bool,
    pub matched: Option<String>,
}

#[derive(Debug, Clone)]
pub enum Content {
    Text(Vec<u8>),
    Lines(Vec<Line>),
    Chunks(Vec<Chunk>),
    Screen(Screen),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    pub fn name(self) -> &'static str {
        match self {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        }
    }
}

/// A line of the output as a whole; a line ends with a newline or where the other stream cuts in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The first is 1.
    pub number: u64,
    pub stream: Stream,
    pub at: SystemTime,
    /// Without its newline.
    pub text: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The offset of its first byte in the output as a whole: numbers rise, and none is used twice.
    pub seq: u64,
    pub stream: Stream,
    pub at: SystemTime,
    pub data: Vec<u8>,
}

/// What a person would see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Screen {
    pub rows: u16,
    pub cols: u16,
    /// One text per row, without trailing blanks.
    pub lines: Vec<String>,
    /// From 0.
    pub cursor: (u16, u16),
    pub title: String,
}

/// One entry of a list.
#[derive(Debug, Clone)]
pub struct Listed {
    pub proc_id: String,
    pub pid: i32,
    pub session: String,
    pub command: String,
    pub description: Option<String>,
    pub end: Option<End>,
    pub started_at: SystemTime,
    pub last_activity: SystemTime,
    pub runtime: Duration,
    pub total_bytes: u64,
    pub total_lines: u64,
    pub usage: Usage,
    pub recent_output: Option<Vec<Line>>,
}

#[derive(Debug, Clone)]
pub struct Stopped {
    pub success: bool,
    pub message: String,
    pub state: State,
    pub end: Option<End>,
}

#[derive(Debug, Clone)]
pub struct SessionListed {
    pub session: String,
    pub cwd: String,
    pub running: usize,
    pub finished: usize,
    pub usage: Usage,
}
