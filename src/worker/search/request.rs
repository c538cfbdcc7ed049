//! What a client asks of a search, as it travels, and the bounds every number in it must keep.

use super::failure::Failure;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Matches on a page unless asked otherwise, and at most.
pub const PAGE: usize = 100;
pub const PAGE_MAX: usize = 1000;
/// Lines of context on each side of a match, at most.
pub const CONTEXT_MAX: usize = 10;
/// How long `start` waits for a full page unless asked otherwise, and the longest any call waits.
pub const WAIT: Duration = Duration::from_millis(200);
pub const WAIT_MAX: Duration = Duration::from_secs(10);
/// An id is a word of the broker's; the bound keeps a mistake small.
const ID_MAX: usize = 128;
/// Linux takes no longer path in one call.
const PATH_MAX: usize = 4096;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub search_id: String,
    /// Absolute; where a relative `path` begins, and the whole search without one. The worker knows it.
    #[serde(skip)]
    pub workspace: PathBuf,
    pub pattern: String,
    /// A directory or a single file. A symbolic link named here is followed; those met on the way are not. What is not
    /// UTF-8 travels as a `file://` URI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    #[serde(default)]
    pub kind: Kind,
    #[serde(default)]
    pub literal: bool,
    #[serde(default)]
    pub case: Case,
    /// As `rg --glob`, relative to `path`: `*.rs` takes in, `!target` leaves out, later ones win, and a
    /// file that is taken in by name is searched although hidden or ignored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub globs: Vec<String>,
    #[serde(default)]
    pub context: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    #[serde(default)]
    pub include_hidden: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Lines of files.
    #[default]
    Content,
    /// Paths of files, directories, links and the rest.
    Files,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Case {
    Sensitive,
    Insensitive,
    /// As `rg --smart-case`: insensitive as long as the pattern holds no upper-case letter.
    #[default]
    Smart,
}

impl Request {
    /// Everything that can be refused without looking at the disk or the pattern.
    pub fn check(&self) -> Result<(), Failure> {
        if self.search_id.is_empty() || self.search_id.len() > ID_MAX {
            return Err(Failure::invalid(format!("`search_id` must have 1 to {ID_MAX} bytes")));
        }
        if !self.workspace.is_absolute() {
            return Err(Failure::invalid("`workspace` must be an absolute path"));
        }
        if let Some(path) = &self.path {
            check_path(path)?;
        }
        if self.context > CONTEXT_MAX {
            let message = format!("`context` is {}; 0 to {CONTEXT_MAX} lines are possible", self.context);
            return Err(Failure::invalid(message));
        }
        check_limit(self.limit).map(drop)
    }

    /// The path to open.
    pub fn target(&self) -> PathBuf {
        match &self.path {
            Some(path) => self.workspace.join(path),
            None => self.workspace.clone(),
        }
    }

    /// What stands before every path found: nothing for the workspace itself, otherwise `path` as it was
    /// given, so that each path shown can be given back to another tool.
    pub fn shown_root(&self) -> PathBuf {
        match &self.path {
            // Rebuilding from components drops `./` and trailing slashes.
            Some(path) => path.components().filter(|part| part.as_os_str() != ".").collect(),
            None => PathBuf::new(),
        }
    }

    pub fn wait(&self) -> Duration {
        self.wait_ms.map_or(WAIT, Duration::from_millis).min(WAIT_MAX)
    }
}

pub fn check_limit(limit: Option<usize>) -> Result<usize, Failure> {
    match limit.unwrap_or(PAGE) {
        limit @ 1..=PAGE_MAX => Ok(limit),
        other => Err(Failure::invalid(format!("`limit` is {other}; 1 to {PAGE_MAX} matches fit a page"))),
    }
}

fn check_path(path: &Path) -> Result<(), Failure> {
    let bytes = path.as_os_str().as_encoded_bytes();
    if bytes.is_empty() {
        return Err(Failure::invalid("`path` is empty; leave it out to search the workspace"));
    }
    if bytes.contains(&0) {
        return Err(Failure::invalid("`path` holds a NUL byte, which no path can"));
    }
    if bytes.len() >= PATH_MAX {
        let message = format!("`path` has {} bytes; fewer than {PATH_MAX} are possible", bytes.len());
        return Err(Failure::invalid(message));
    }
    Ok(())
}
