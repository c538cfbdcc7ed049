//! Why a call was not carried out, as an agent is told: a stable code, a sentence, details.

use super::fault::Trouble;
use crate::plan::refusal::Refusal;
use crate::sys::Errno;
use crate::wire::Stage;
use crate::worker::failure::{self as worker, Failure};
use serde_json::{Map, Value};
use std::fmt;

/// The codes are a contract: clients match on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Code {
    InvalidArgument,
    FeatureDisabled,
    CommandNotAllowed,
    PathNotAllowed,
    ProcLimitExceeded,
    LimitExceeded,
    ProcessNotFound,
    ProcessNotRunning,
    SessionNotFound,
    NotFound,
    AlreadyExists,
    NotAFile,
    TooLarge,
    Conflict,
    EditNoMatch,
    SearchNotFound,
    Timeout,
    Canceled,
    StopFailed,
    SpawnFailed,
    SandboxUnavailable,
    IoError,
    Internal,
}

impl Code {
    pub fn name(self) -> &'static str {
        match self {
            Code::InvalidArgument => "INVALID_ARGUMENT",
            Code::FeatureDisabled => "FEATURE_DISABLED",
            Code::CommandNotAllowed => "COMMAND_NOT_ALLOWED",
            Code::PathNotAllowed => "PATH_NOT_ALLOWED",
            Code::ProcLimitExceeded => "PROC_LIMIT_EXCEEDED",
            Code::LimitExceeded => "LIMIT_EXCEEDED",
            Code::ProcessNotFound => "PROCESS_NOT_FOUND",
            Code::ProcessNotRunning => "PROCESS_NOT_RUNNING",
            Code::SessionNotFound => "SESSION_NOT_FOUND",
            Code::NotFound => "NOT_FOUND",
            Code::AlreadyExists => "ALREADY_EXISTS",
            Code::NotAFile => "NOT_A_FILE",
            Code::TooLarge => "TOO_LARGE",
            Code::Conflict => "CONFLICT",
            Code::EditNoMatch => "EDIT_NO_MATCH",
            Code::SearchNotFound => "SEARCH_NOT_FOUND",
            Code::Timeout => "TIMEOUT",
            Code::Canceled => "CANCELED",
            Code::StopFailed => "STOP_FAILED",
            Code::SpawnFailed => "SPAWN_FAILED",
            Code::SandboxUnavailable => "SANDBOX_UNAVAILABLE",
            Code::IoError => "IO_ERROR",
            Code::Internal => "INTERNAL",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    pub code: Code,
    /// What was refused, by which rule, and what would be accepted.
    pub message: String,
    pub details: Map<String, Value>,
}

impl Refused {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Refused { code, message: message.into(), details: Map::new() }
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Refused::new(Code::InvalidArgument, message)
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.into(), value.into());
        self
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.name(), self.message)
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        let code = match refusal {
            Refusal::Command { .. } | Refusal::NoShell => Code::CommandNotAllowed,
            Refusal::Directory { .. } => Code::PathNotAllowed,
            Refusal::Argument { .. } => Code::InvalidArgument,
            Refusal::Unavailable { .. }
            | Refusal::Contradiction { .. }
            | Refusal::Stranded { .. }
            | Refusal::OwnedByRoot
            | Refusal::ManyOwners
            | Refusal::Unsearchable { .. } => Code::SandboxUnavailable,
        };
        Refused::new(code, format!("{refusal}; {}", refusal.hint()))
    }
}

/// Walls that could not be made are the operator's business; a program that could not be executed is the agent's.
impl From<Trouble> for Refused {
    fn from(trouble: Trouble) -> Self {
        match trouble.stage {
            Some(Stage::Exec | Stage::Receive | Stage::Stdio | Stage::Terminal) => {
                Refused::new(Code::SpawnFailed, trouble.to_string()).with("errno", errno_name(trouble.errno))
            }
            Some(Stage::Clone | Stage::Fork) if trouble.errno == Errno::EAGAIN => Refused::new(
                Code::LimitExceeded,
                "the cell has as many processes and threads as `limits.processes` allows; stop some first",
            ),
            Some(Stage::WorkingDirectory) => Refused::new(
                Code::PathNotAllowed,
                format!("the working directory cannot be entered: {}", trouble.errno.desc()),
            ),
            _ => {
                let hint = trouble.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
                Refused::new(Code::SandboxUnavailable, format!("{trouble}{hint}"))
            }
        }
    }
}

/// The worker's codes are a part of ours.
impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        let code = match failure.code {
            worker::Code::InvalidArgument => Code::InvalidArgument,
            worker::Code::PathNotAllowed => Code::PathNotAllowed,
            worker::Code::LimitExceeded => Code::LimitExceeded,
            worker::Code::NotFound => Code::NotFound,
            worker::Code::AlreadyExists => Code::AlreadyExists,
            worker::Code::NotAFile => Code::NotAFile,
            worker::Code::TooLarge => Code::TooLarge,
            worker::Code::Conflict => Code::Conflict,
            worker::Code::EditNoMatch => Code::EditNoMatch,
            worker::Code::SearchNotFound => Code::SearchNotFound,
            worker::Code::IoError => Code::IoError,
        };
        Refused { code, message: failure.message, details: failure.details }
    }
}

fn errno_name(errno: Errno) -> String {
    format!("{errno:?}")
}
