//! A page of matches as a client sees it.

use crate::worker::search::{Bound, EntryKind, Match, Page, State, Syntax};
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Debug, Serialize, JsonSchema)]
pub struct PageAnswer {
    search_id: String,
    state: &'static str,
    /// Which bound ended a search whose state is `limited`.
    #[serde(skip_serializing_if = "Option::is_none")]
    limited_by: Option<&'static str>,
    read_as: &'static str,
    offset: usize,
    matches: Vec<Found>,
    total: usize,
    total_exact: bool,
    more: bool,
    searched_files: u64,
    skipped_binary: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Unread>,
    error_count: u64,
    duration_ms: u64,
}

/// A line, or with `kind` = `files` an entry.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(inline)]
struct Found {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    columns: Vec<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text_column: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    invalid_utf8: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    before: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    after: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct Unread {
    path: String,
    message: String,
}

impl PageAnswer {
    pub fn of(page: Page) -> Self {
        PageAnswer {
            search_id: page.search_id,
            state: state(page.state),
            limited_by: page.limited_by.map(|bound| match bound {
                Bound::Matches => "matches",
                Bound::Bytes => "bytes",
                Bound::Time => "time",
                Bound::Tree => "tree",
            }),
            read_as: match page.read_as {
                Syntax::Regex => "regex",
                Syntax::Literal => "literal",
                Syntax::Glob => "glob",
            },
            offset: page.offset,
            matches: page.matches.into_iter().map(Found::of).collect(),
            total: page.total,
            total_exact: page.total_exact,
            more: page.more,
            searched_files: page.searched_files,
            skipped_binary: page.skipped_binary,
            errors: page.errors.into_iter().map(|error| Unread { path: error.path, message: error.message }).collect(),
            error_count: page.error_count,
            duration_ms: page.duration_ms,
        }
    }

    pub fn summary(&self) -> String {
        let more = if self.more { ", more follows" } else { "" };
        format!("{} of {} matches, {}{more}", self.matches.len(), self.total, self.state)
    }
}

impl Found {
    fn of(found: Match) -> Self {
        match found {
            Match::Line(line) => Found {
                path: line.path,
                line: Some(line.line),
                column: Some(line.column),
                columns: line.columns,
                text: Some(line.text),
                truncated: line.truncated.then_some(true),
                text_column: line.text_column,
                invalid_utf8: line.invalid_utf8.then_some(true),
                before: line.before,
                after: line.after,
                ..Found::default()
            },
            Match::Entry(entry) => Found {
                path: entry.path,
                r#type: Some(match entry.kind {
                    EntryKind::File => "file",
                    EntryKind::Directory => "dir",
                    EntryKind::Symlink => "symlink",
                    EntryKind::Other => "other",
                }),
                size: Some(entry.size),
                ..Found::default()
            },
        }
    }
}

pub fn state(state: State) -> &'static str {
    match state {
        State::Running => "running",
        State::Done => "done",
        State::Stopped => "stopped",
        State::Limited => "limited",
        State::Failed => "failed",
    }
}
