//! What each client wants: which file, which shape, and where it starts a server.
//!
//! Facts only; nothing is read or written here. A new client is one row in [`Client::facts`] and one path in
//! [`Client::file`].

use super::entry::Entry;
use crate::cli::say::Complaint;
use clap::ValueEnum;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// How long a client shall wait for an answer, in seconds. A `run` answers within 45 s unless asked otherwise; Codex
/// gives up at 60 s, and an agent that asks for longer would lose the answer.
const PATIENCE: u64 = 600;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Client {
    /// Claude Code
    #[value(alias = "claude")]
    ClaudeCode,
    /// Claude Desktop
    ClaudeDesktop,
    /// Codex
    Codex,
    /// Cursor
    Cursor,
    /// Visual Studio Code
    #[value(name = "vscode", alias = "code")]
    VsCode,
    /// Gemini CLI
    Gemini,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scope {
    /// Every project of this user
    User,
    /// One project, in a file of the project
    Project,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Json,
    Toml,
}

/// How a server learns which directory is the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// It is started there.
    InProject,
    /// The client replaces this word in the arguments.
    Variable(&'static str),
    /// Not at all.
    Anywhere,
}

#[derive(Debug, Clone, Copy)]
pub struct Facts {
    pub title: &'static str,
    pub format: Format,
    /// The key that holds all servers.
    pub servers: &'static str,
    pub start: Start,
    /// What begins a variable that the client replaces in a command or an argument.
    pub expands: Option<&'static str>,
}

/// The directories that decide where configuration lies.
#[derive(Debug)]
pub struct Places {
    pub home: PathBuf,
    /// `$XDG_CONFIG_HOME`, or `~/.config`.
    pub config: PathBuf,
    /// `$CLAUDE_CONFIG_DIR`, or the home directory.
    pub claude: PathBuf,
    /// `$CODEX_HOME`, or `~/.codex`.
    pub codex: PathBuf,
    /// The current directory, canonical.
    pub project: PathBuf,
}

impl Places {
    pub fn find() -> Result<Places, Complaint> {
        let named = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = named("HOME").ok_or_else(|| {
            Complaint::new("`HOME` is not an absolute path\nhint: set it to the home of the user who runs the client")
        })?;
        let project = std::env::current_dir().and_then(|directory| directory.canonicalize());
        let project = project.map_err(|error| Complaint::new(format!("the current directory: {error}")))?;
        Ok(Places {
            config: named("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")),
            claude: named("CLAUDE_CONFIG_DIR").unwrap_or_else(|| home.clone()),
            codex: named("CODEX_HOME").unwrap_or_else(|| home.join(".codex")),
            home,
            project,
        })
    }
}

impl Client {
    pub fn facts(self) -> Facts {
        let json = |title, start, expands| Facts { title, format: Format::Json, servers: "mcpServers", start, expands };
        let folder = Start::Variable("${workspaceFolder}");
        match self {
            Client::ClaudeCode => json("Claude Code", Start::InProject, Some("${")),
            Client::ClaudeDesktop => json("Claude Desktop", Start::Anywhere, None),
            Client::Codex => {
                let (format, start) = (Format::Toml, Start::InProject);
                Facts { title: "Codex", format, servers: "mcp_servers", start, expands: None }
            }
            Client::Cursor => json("Cursor", folder, Some("${")),
            Client::VsCode => Facts { servers: "servers", ..json("VS Code", folder, Some("${")) },
            Client::Gemini => json("Gemini CLI", Start::InProject, Some("$")),
        }
    }

    /// The file that holds the servers; `None` where the client has no such scope.
    pub fn file(self, scope: Scope, places: &Places) -> Option<PathBuf> {
        let (above, name): (&Path, &str) = match (self, scope) {
            (Client::ClaudeCode, Scope::User) => (&places.claude, ".claude.json"),
            (Client::ClaudeCode, Scope::Project) => (&places.project, ".mcp.json"),
            (Client::ClaudeDesktop, Scope::User) => (&places.config, "Claude/claude_desktop_config.json"),
            (Client::ClaudeDesktop, Scope::Project) => return None,
            (Client::Codex, Scope::User) => (&places.codex, "config.toml"),
            (Client::Codex, Scope::Project) => (&places.project, ".codex/config.toml"),
            (Client::Cursor, Scope::User) => (&places.home, ".cursor/mcp.json"),
            (Client::Cursor, Scope::Project) => (&places.project, ".cursor/mcp.json"),
            (Client::VsCode, Scope::User) => (&places.config, "Code/User/mcp.json"),
            (Client::VsCode, Scope::Project) => (&places.project, ".vscode/mcp.json"),
            (Client::Gemini, Scope::User) => (&places.home, ".gemini/settings.json"),
            (Client::Gemini, Scope::Project) => (&places.project, ".gemini/settings.json"),
        };
        Some(above.join(name))
    }

    /// The keys of our entry, in the order people write them.
    pub fn fields(self, entry: &Entry) -> Vec<(&'static str, Value)> {
        let mut fields = vec![("command", json!(entry.command)), ("args", json!(entry.args))];
        match self {
            Client::ClaudeCode | Client::VsCode => fields.insert(0, ("type", json!("stdio"))),
            Client::Codex => fields.push(("tool_timeout_sec", json!(PATIENCE))),
            Client::Gemini => fields.push(("timeout", json!(PATIENCE * 1000))),
            Client::ClaudeDesktop | Client::Cursor => {}
        }
        fields
    }
}

impl Scope {
    pub fn word(self) -> &'static str {
        match self {
            Scope::User => "user",
            Scope::Project => "project",
        }
    }
}
