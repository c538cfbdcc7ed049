//! Why a search was not made, with the codes that clients match on.

use nix::errno::Errno;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// The codes are a contract; they travel by these names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Code {
    InvalidArgument,
    NotFound,
    PathNotAllowed,
    LimitExceeded,
    SearchNotFound,
    IoError,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    pub code: Code,
    /// What was refused, by which rule, and what would be accepted.
    pub message: String,
    #[serde(default)]
    pub details: Map<String, Value>,
}

impl Failure {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Failure { code, message: message.into(), details: Map::new() }
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Failure::new(Code::InvalidArgument, message)
    }

    /// What the kernel said about the path a search was to begin at.
    pub fn opening(path: &str, errno: Errno) -> Self {
        let failure = match errno {
            Errno::ENOENT | Errno::ENOTDIR => Failure::new(Code::NotFound, format!("`{path}` does not exist")),
            Errno::EACCES | Errno::EPERM => {
                Failure::new(Code::PathNotAllowed, format!("`{path}` may not be read inside the cell"))
            }
            Errno::ENAMETOOLONG => Failure::invalid("`path` has a name longer than the file system takes (255 bytes)"),
            Errno::ELOOP => Failure::invalid(format!("`{path}` goes through too many symbolic links")),
            _ => Failure::new(Code::IoError, format!("`{path}` cannot be opened: {}", errno.desc())),
        };
        failure.with("errno", format!("{errno:?}"))
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.into(), value.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.code, self.message)
    }
}
