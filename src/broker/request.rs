//! What the tool surface asks of the broker, as meant: units are types, patterns compiled, bounds checked.

use crate::plan::command::Words;
use crate::sys::terminal::Size;
use regex::bytes::Regex;
use std::path::PathBuf;
use std::time::Duration;

/// A command to start, whoever asks for it.
#[derive(Debug, Clone)]
pub struct Command {
    pub words: Words,
    pub cwd: Option<PathBuf>,
    pub env: Vec<(String, String)>,
    /// `None`: the session `default`.
    pub session: Option<String>,
    pub description: Option<String>,
    /// `None`: the policy's. Never past `max_wall_time`.
    pub timeout: Option<Duration>,
}

#[derive(Debug, Clone)]
pub struct Run {
    pub command: Command,
    /// Written to the command's stdin, which then ends.
    pub stdin: Vec<u8>,
    /// After this it goes on as a managed process; zero: at once.
    pub yield_after: Duration,
    /// Of both streams together; `None`: `inline_bytes`.
    pub max_output: Option<usize>,
}

#[derive(Debug, Clone)]
pub struct Start {
    pub command: Command,
    /// A terminal of this size instead of pipes.
    pub terminal: Option<Size>,
    pub initial_read: Duration,
    pub until: Option<Regex>,
    pub idle_timeout: Option<Duration>,
    pub buffer_lines: Option<u64>,
    /// Keep a transcript that `asciinema play` can show.
    pub record: bool,
}

#[derive(Debug, Clone)]
pub struct Send {
    pub proc_id: String,
    /// Exact bytes, the newline included.
    pub input: Vec<u8>,
    pub eof: bool,
    /// Then wait for output this long.
    pub wait: Duration,
    pub until: Option<Regex>,
    pub strip_ansi: bool,
}

#[derive(Debug, Clone)]
pub struct Read {
    pub proc_id: String,
    pub timeout: Duration,
    /// `None`: where the last read ended.
    pub cursor: Option<u64>,
    pub max_bytes: Option<usize>,
    pub until: Option<Regex>,
    pub quiet: Option<Duration>,
    pub stream: Filter,
    pub span: Span,
    pub form: Form,
    /// Whether `until` looks at the text without terminal codes.
    pub strip_ansi: bool,
}

/// Which part of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// From the cursor on.
    Next,
    TailLines(u64),
    /// From this line (the first is 1), at most so many.
    Lines {
        from: u64,
        count: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Text,
    Lines,
    Chunks,
    Screen,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    All,
    Stdout,
    Stderr,
}

/// What to end: one process or all of a session.
#[derive(Debug, Clone)]
pub enum Target {
    Process(String),
    Session(String),
}

#[derive(Debug, Clone)]
pub struct Stop {
    pub target: Target,
    pub signal: i32,
    pub grace: Duration,
}

#[derive(Debug, Clone, Default)]
pub struct List {
    pub session: Option<String>,
    pub state: Option<super::answer::State>,
    pub include_output: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnClose {
    Stop,
    /// They move to the session `default`.
    Keep,
}
