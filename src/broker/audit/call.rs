//! One tool call, as the tool surface tells it and as it is written down.
//!
//! [`Call`] may hold secrets; [`Record`] is made by the redactor alone and holds none. Audit and telemetry take
//! records only.

use super::time;
use crate::broker::answer::{End, Reason};
use crate::broker::refused::Code;
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// What happened, filled in once the call is answered.
#[derive(Debug, Clone)]
pub struct Call {
    pub call_id: String,
    pub session: Option<String>,
    /// The operation's name, whichever surface it came through.
    pub tool: &'static str,
    pub subject: Subject,
    pub cwd: Option<String>,
    /// As the request gave it. Values are there for the redactor; only names are written.
    pub env: Vec<(String, String)>,
    pub decision: Decision,
    /// The walls that stood.
    pub enforcement: Arc<[&'static str]>,
    pub duration: Duration,
    pub proc_id: Option<String>,
    pub exit: Option<Exit>,
    /// Of the request.
    pub bytes_in: u64,
    /// Of the answer.
    pub bytes_out: u64,
    /// When it began.
    pub at: SystemTime,
}

impl Call {
    /// A call that named nothing and was allowed; the caller fills in what it knows.
    pub fn new(call_id: impl Into<String>, tool: &'static str) -> Self {
        Call {
            call_id: call_id.into(),
            session: None,
            tool,
            subject: Subject::Nothing,
            cwd: None,
            env: Vec::new(),
            decision: Decision::Allowed,
            enforcement: Arc::default(),
            duration: Duration::ZERO,
            proc_id: None,
            exit: None,
            bytes_in: 0,
            bytes_out: 0,
            at: SystemTime::now(),
        }
    }
}

/// What a call was about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    Argv(Vec<String>),
    /// For the policy's shell.
    Command(String),
    Paths(Vec<String>),
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Allowed,
    Refused(Code),
}

impl Decision {
    pub fn name(self) -> &'static str {
        match self {
            Decision::Allowed => "allowed",
            Decision::Refused(code) => code.name(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Exit {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    pub reason: Reason,
}

impl From<&End> for Exit {
    fn from(end: &End) -> Self {
        Exit { code: end.exit_code, signal: end.signal, reason: end.reason }
    }
}

/// A call without its secrets, cut to what a log may hold.
#[derive(Debug, Clone, Serialize)]
pub struct Record {
    pub(super) kind: &'static str,
    #[serde(serialize_with = "time::write")]
    pub time: SystemTime,
    pub call_id: String,
    pub agent: Arc<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    pub tool: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argv: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<String>>,
    /// Bytes of the words or paths that did not fit.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    pub decision: &'static str,
    pub enforcement: Arc<[&'static str]>,
    pub duration_us: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proc_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    pub bytes_in: u64,
    pub bytes_out: u64,
}

impl Record {
    /// Roughly what it takes in memory, for the bounds of queues.
    pub fn weight(&self) -> usize {
        let words = |list: &Option<Vec<String>>| list.iter().flatten().map(|word| word.len() + 24).sum::<usize>();
        let one = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let names: usize = self.env.iter().map(|name| name.len() + 24).sum();
        512 + words(&self.argv) + words(&self.paths) + one(&self.command) + one(&self.cwd) + names
    }

    /// The program's name without its directory, where one was started.
    pub fn program(&self) -> Option<&str> {
        let first = match (&self.argv, &self.command) {
            (Some(argv), _) => argv.first()?.as_str(),
            (None, Some(command)) => command.split_whitespace().find(|word| !word.contains('='))?,
            (None, None) => return None,
        };
        let name = first.trim_end_matches(['/', ';']).rsplit('/').next().filter(|name| !name.is_empty())?;
        Some(name.trim_matches(['\'', '"', '(']))
    }

    /// The words or paths on one line.
    pub fn summary(&self) -> String {
        let listed = self.argv.as_ref().or(self.paths.as_ref()).map(|words| words.join(" "));
        self.command.clone().or(listed).unwrap_or_default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
