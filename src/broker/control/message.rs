//! What is asked of a broker by its operator, and answered: the lines of JSON on the control socket.

use crate::broker::refused::Refused;
use crate::sys::terminal::Size;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Request {
    Status,
    Metrics,
    Logs(Logs),
    Attach(Attach),
    Stop(Stop),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Logs {
    pub proc_id: String,
    pub stream: Stream,
    /// The last lines only.
    pub tail: Option<u64>,
    /// Until the process ends.
    pub follow: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attach {
    pub proc_id: String,
    /// Keys are passed on, and the process's terminal takes this size.
    pub write: bool,
    /// Of the terminal that shows it.
    pub size: Size,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// None: everything that runs.
    pub proc_id: Option<String>,
    pub signal: i32,
    pub grace_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    All,
    Stdout,
    Stderr,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    Status(Status),
    Metrics {
        text: String,
    },
    Stopped {
        stopped: Vec<String>,
    },
    /// Frames follow.
    Opened(Opened),
    Refused {
        code: String,
        message: String,
    },
}

impl Answer {
    pub fn refused(code: &str, message: impl Into<String>) -> Answer {
        Answer::Refused { code: code.to_owned(), message: message.into() }
    }
}

impl From<&Refused> for Answer {
    fn from(refused: &Refused) -> Answer {
        Answer::refused(refused.code.name(), &*refused.message)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    pub agent: String,
    pub policy: String,
    pub pid: u32,
    pub uptime_ms: u64,
    pub processes: Vec<Process>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Process {
    pub proc_id: String,
    pub pid: i32,
    pub session: String,
    pub command: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `running`, `exited`, or of a broker that does not answer `unknown`.
    pub state: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    pub runtime_ms: u64,
    pub cpu_ms: u64,
    /// The most it had at once.
    pub max_rss_kb: u64,
    pub output_bytes: u64,
    pub dropped_bytes: u64,
    pub terminal: bool,
}

impl Process {
    pub fn is_running(&self) -> bool {
        self.state == "running"
    }
}

/// Of a process that is followed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    pub terminal: bool,
}

/// The last frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// `running`: no more was asked for.
    pub state: String,
    pub reason: Option<String>,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
}
