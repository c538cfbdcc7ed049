//! Why a cell's groups could not be made: for the operator, who can act on it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::host::{Controller, cgroup::list};

#[derive(Debug)]
pub enum GroupError {
    /// No mounted hierarchy carries it.
    Missing {
        controller: Controller,
    },
    /// There is no place where we may make groups.
    Closed {
        controllers: Vec<Controller>,
        why: String,
    },
    /// The group was made, but a limit could not be set.
    Limit {
        controller: Controller,
        path: PathBuf,
        source: io::Error,
    },
    Path {
        path: PathBuf,
        source: io::Error,
    },
    /// The user's service manager did not give us a scope.
    Scope {
        why: String,
    },
}

impl GroupError {
    pub(super) fn at(path: &Path, source: io::Error) -> GroupError {
        GroupError::Path { path: path.to_owned(), source }
    }
}

impl fmt::Display for GroupError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GroupError::Missing { controller } => {
                write!(out, "cgroup controller `{controller}` is in no mounted hierarchy")
            }
            GroupError::Closed { controllers, why } => {
                write!(out, "no group for cgroup controllers {}: {why}", list(controllers))
            }
            GroupError::Limit { controller, path, source } => {
                write!(out, "cgroup controller `{controller}` took no limit in `{}`: {source}", path.display())
            }
            GroupError::Path { path, source } => write!(out, "cgroup `{}`: {source}", path.display()),
            GroupError::Scope { why } => write!(out, "no scope from the user's systemd: {why}"),
        }
    }
}

impl std::error::Error for GroupError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            GroupError::Limit { source, .. } | GroupError::Path { source, .. } => Some(source),
            GroupError::Missing { .. } | GroupError::Closed { .. } | GroupError::Scope { .. } => None,
        }
    }
}
