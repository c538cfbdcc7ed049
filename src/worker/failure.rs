//! Why an operation was not carried out: a stable code, a sentence, details. Kernel errors become words here.

use super::names::Named;
use crate::sys::Errno;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// The codes of file operations; their names are a contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Code {
    InvalidArgument,
    PathNotAllowed,
    LimitExceeded,
    NotFound,
    AlreadyExists,
    NotAFile,
    TooLarge,
    Conflict,
    EditNoMatch,
    SearchNotFound,
    IoError,
}

impl Code {
    pub fn name(self) -> &'static str {
        match self {
            Code::InvalidArgument => "INVALID_ARGUMENT",
            Code::PathNotAllowed => "PATH_NOT_ALLOWED",
            Code::LimitExceeded => "LIMIT_EXCEEDED",
            Code::NotFound => "NOT_FOUND",
            Code::AlreadyExists => "ALREADY_EXISTS",
            Code::NotAFile => "NOT_A_FILE",
            Code::TooLarge => "TOO_LARGE",
            Code::Conflict => "CONFLICT",
            Code::EditNoMatch => "EDIT_NO_MATCH",
            Code::SearchNotFound => "SEARCH_NOT_FOUND",
            Code::IoError => "IO_ERROR",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    pub code: Code,
    /// What was refused, by which rule, and what would be accepted.
    pub message: String,
    #[serde(default)]
    pub details: Map<String, Value>,
}

pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Failure { code, message: message.into(), details: Map::new() }
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Failure::new(Code::InvalidArgument, message)
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.into(), value.into());
        self
    }

    /// The kernel's answer about a path, in words.
    pub fn errno(errno: Errno, path: &Named) -> Self {
        let (code, words) = match errno {
            Errno::ENOENT => return path.absent(),
            Errno::EACCES | Errno::EPERM => (Code::PathNotAllowed, "the cell's permissions do not allow it"),
            Errno::EROFS => {
                (Code::PathNotAllowed, "it is read-only in this cell; only the policy's `allowed_roots` are writable")
            }
            Errno::EBUSY => {
                (Code::PathNotAllowed, "it is a mount point of the cell or in use; what lies inside it can be changed")
            }
            Errno::ENOTDIR => (Code::NotFound, "a part of the path before a `/` is not a directory"),
            Errno::ELOOP => (Code::NotFound, "its symbolic links lead in a circle, or are more than 40"),
            Errno::ENAMETOOLONG => (Code::InvalidArgument, "the path is too long: 4095 bytes, and 255 for each name"),
            Errno::EEXIST | Errno::ENOTEMPTY => (Code::AlreadyExists, "something stands there already"),
            Errno::EISDIR => (Code::NotAFile, "it is a directory"),
            Errno::ENXIO | Errno::ENODEV => (Code::NotAFile, "it is a pipe, a socket or a device"),
            Errno::EAGAIN => (Code::Conflict, "another process holds a lease on it; try again"),
            Errno::ENOSPC => (Code::IoError, "no space is left on its filesystem; nothing was changed"),
            Errno::EDQUOT => (Code::IoError, "the disk quota is used up; nothing was changed"),
            Errno::EFBIG => (Code::TooLarge, "it would pass the cell's limit on the size of a file"),
            Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM => (Code::LimitExceeded, errno.desc()),
            other => (Code::IoError, other.desc()),
        };
        Failure::new(code, format!("`{path}`: {words}")).with("errno", format!("{errno:?}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.name(), self.message)
    }
}
