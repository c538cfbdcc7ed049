//! What a client is told: pages of matches, and one line per search for the list.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Page {
    pub search_id: String,
    pub state: State,
    /// Which bound ended the search; the state is `limited` then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<Bound>,
    /// How the pattern was understood.
    pub read_as: Syntax,
    /// The place of the first match of this page among all.
    pub offset: usize,
    /// In path order, which no later page changes.
    pub matches: Vec<Match>,
    /// Matches known; without `total_exact` there may be more.
    pub total: usize,
    pub total_exact: bool,
    /// Whether a page from `offset + matches.len()` holds anything, or may come to.
    pub more: bool,
    pub searched_files: u64,
    pub skipped_binary: u64,
    /// The first paths that could not be searched, and how many there were.
    pub errors: Vec<Unread>,
    pub error_count: u64,
    pub duration_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Running,
    Done,
    Stopped,
    /// Ended early by a bound; what was found stays.
    Limited,
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    Matches,
    Bytes,
    Time,
    /// Part of the tree was too deep or too wide; `errors` names it.
    Tree,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Syntax {
    Regex,
    Literal,
    Glob,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Match {
    Line(Line),
    Entry(Entry),
}

/// A line with at least one match.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    pub path: String,
    pub line: u64,
    /// The first match: its byte in the line, from 1, as `rg --column` counts.
    pub column: u64,
    /// All matches of the line where there are several, at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<u64>,
    /// Without the line's end; at most 500 characters around the first match.
    pub text: String,
    #[serde(default, skip_serializing_if = "is_false")]
    pub truncated: bool,
    /// The column where `text` begins, when that is not the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_column: Option<u64>,
    /// Bytes of `text` that are no UTF-8 are shown as U+FFFD.
    #[serde(default, skip_serializing_if = "is_false")]
    pub invalid_utf8: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
}

/// A path that matched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub path: String,
    #[serde(rename = "type")]
    pub kind: EntryKind,
    pub size: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    File,
    Directory,
    Symlink,
    /// A FIFO, socket or device: named, never opened.
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    pub path: String,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    pub search_id: String,
    pub pattern: String,
    pub path: String,
    pub state: State,
    pub total: usize,
    pub searched_files: u64,
    pub duration_ms: u64,
}

fn is_false(value: &bool) -> bool {
    !value
}
