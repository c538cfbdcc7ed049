//! What the broker asks of the worker and what it is told: serde types that travel as JSON over a socket pair.
//!
//! Bytes travel as base64, times as milliseconds since 1970, paths as text in the spelling of `names`.

use super::search;
use crate::path::CellPath;
use serde::{Deserialize, Serialize};

pub use super::failure::{Code, Failure};

/// The terms every request of a cell is carried out under.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// Relative paths start here.
    pub workspace: CellPath,
    /// What the policy opened, for words only: the kernel decides. Empty: nothing is called outside.
    #[serde(default)]
    pub roots: Vec<CellPath>,
    /// Of one file that is written, edited or hashed.
    pub max_file_bytes: u64,
    /// Of the content in one reply, as JSON text.
    pub reply_bytes: u64,
    /// Of replaced content that a reply brings back; what is larger is not backed up.
    pub backup_bytes: u64,
    /// What the policy hides: no request is begun while one of these lies bare.
    #[serde(default)]
    pub hidden: Vec<CellPath>,
}

/// One request, with a number that its answer bears.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    pub id: u64,
    pub work: Work,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    Files(Ask),
    Search(SearchAsk),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Reply {
    pub id: u64,
    pub answer: Answer,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Told(Told),
    Failed(Failure),
    /// Nothing was done: something hidden was replaced on the host and lies bare. A new process covers it again.
    Bare,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    Read(Read),
    List(List),
    Stat(Stat),
    Write(Write),
    Edit(Edit),
    Move(Move),
    MakeDir(MakeDir),
    Restore(Restore),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchAsk {
    Start(search::Request),
    More(SearchMore),
    Stop(String),
    List,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    Read(Vec<ReadFile>),
    List(Listing),
    Stat(Facts),
    Write(Written),
    Edit(Edited),
    Move(Moved),
    MakeDir(MadeDir),
    Restore(Written),
    SearchPage(search::Page),
    SearchStopped(bool),
    SearchList(Vec<search::Summary>),
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Read {
    /// Exactly one of `path` and `paths`.
    pub path: Option<String>,
    pub paths: Option<Vec<String>>,
    /// The first line, from 1.
    pub offset: Option<u64>,
    /// Lines.
    pub limit: Option<u64>,
    /// The first byte, from 0; not together with lines.
    pub byte_offset: Option<u64>,
    /// Bytes of the file, of each file.
    pub max_bytes: Option<u64>,
    pub encoding: Encoding,
    /// Of the content of all files, as JSON text; absent: as much as the terms allow.
    pub reply_bytes: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    #[default]
    Utf8,
    Base64,
}

/// One file of a read: content, or why there is none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReadFile {
    pub path: String,
    pub content: String,
    pub encoding: Found,
    /// Bytes of the file as a whole.
    pub size: u64,
    pub mtime_ms: i64,
    /// More of the file follows what is here.
    pub truncated: bool,
    /// The line that follows, when the content ends with a whole line.
    pub next_offset: Option<u64>,
    pub next_byte_offset: Option<u64>,
    /// Of the whole file; absent past `max_file_bytes`, and where the reply was full before its turn.
    pub sha256: Option<String>,
    /// Bytes shown as U+FFFD.
    pub invalid_utf8: u64,
    pub error: Option<Failure>,
}

/// How the bytes of a file became `content`. A byte order mark is not part of the text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    #[default]
    Utf8,
    Utf8Bom,
    Utf16le,
    Utf16be,
    /// As they are, in base64.
    Base64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    pub path: String,
    /// Levels below `path`; absent: 1.
    pub depth: Option<u32>,
    /// Absent: 1000.
    pub limit: Option<u32>,
    pub cursor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Listing {
    pub entries: Vec<Entry>,
    pub truncated: bool,
    pub next_cursor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Below the path that was asked for, and usable again. A name that is not UTF-8: a `file://` URI.
    pub path: String,
    /// The last name's bytes in base64, when they are not UTF-8.
    pub name_bytes: Option<String>,
    #[serde(rename = "type")]
    pub kind: Kind,
    /// Octal, four digits. Absent like size and time when the entry may be named but not looked at.
    pub mode: Option<String>,
    pub size: Option<u64>,
    pub mtime_ms: Option<i64>,
    /// Why a directory's own entries are not here.
    pub error: Option<Failure>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    File,
    Dir,
    Symlink,
    Fifo,
    Socket,
    Block,
    Char,
    Unknown,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stat {
    pub path: String,
}

/// About the path itself: a symlink is not followed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    pub path: String,
    #[serde(rename = "type")]
    pub kind: Kind,
    pub mode: String,
    pub size: u64,
    pub mtime_ms: i64,
    pub atime_ms: i64,
    pub uid: u32,
    pub gid: u32,
    pub nlink: u64,
    /// Of a symlink: its text, and what it leads to (absent: nothing that can be seen).
    pub target: Option<String>,
    pub target_type: Option<Kind>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Write {
    pub path: String,
    #[serde(with = "super::bytes")]
    pub content: Vec<u8>,
    /// Permission bits, at most 0o777. Absent: what the file has, or the usual for a new one.
    #[serde(default)]
    pub mode: Option<u32>,
    #[serde(default)]
    pub append: bool,
    #[serde(default)]
    pub create_parents: bool,
    /// Write only if the file's content has this hash.
    #[serde(default)]
    pub if_sha256: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Written {
    /// Of the file as it is now.
    pub bytes: u64,
    /// Absent past `max_file_bytes` (an append to a large file).
    pub sha256: Option<String>,
    pub created: bool,
    /// False: the file was written in place, because a new one could not have kept its hard links or its owner.
    pub atomic: bool,
    pub previous: Option<Previous>,
}

/// What was replaced, for the backup.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Previous {
    pub size: u64,
    pub mode: u32,
    /// Absent when larger than `max_file_bytes` or `backup_bytes`, or not readable: there is nothing to restore from.
    #[serde(with = "super::bytes::optional", default)]
    pub content: Option<Vec<u8>>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    pub path: String,
    pub edits: Vec<Change>,
    #[serde(default)]
    pub dry_run: bool,
    #[serde(default)]
    pub if_sha256: Option<String>,
}

/// One edit as written: the fields of exactly one kind. `edit` says what each kind does.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Change {
    pub old_text: Option<String>,
    /// How often `old_text` must occur; 0: any number but none. Absent: 1.
    pub count: Option<u64>,
    pub start_line: Option<u64>,
    pub end_line: Option<u64>,
    pub anchor: Option<String>,
    /// Absent: 1.
    pub offset: Option<i64>,
    pub new_text: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Edited {
    /// Unified; the last line says so when it was cut.
    pub diff: String,
    pub diff_truncated: bool,
    /// Places that were changed.
    pub replacements: u64,
    /// Of the file with the edits in it, also for a dry run.
    pub sha256: String,
    /// False: a dry run, or edits that change nothing.
    pub written: bool,
    pub atomic: bool,
    pub previous: Option<Previous>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Move {
    pub from: String,
    pub to: String,
    #[serde(default)]
    pub overwrite: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Moved {
    pub moved: bool,
    /// Across mounts: copied, then removed.
    pub copied: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MakeDir {
    pub path: String,
    /// Absent: true.
    pub parents: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MadeDir {
    /// False: it was there.
    pub created: bool,
}

/// Puts a backup back.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restore {
    pub path: String,
    #[serde(with = "super::bytes")]
    pub content: Vec<u8>,
    pub mode: u32,
}

/// The next page of a search.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchMore {
    pub search_id: String,
    pub offset: u64,
    pub limit: Option<u64>,
    pub wait_ms: u64,
}
