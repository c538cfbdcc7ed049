//! `stockade setup` from outside: what it prints is what a client reads, and what it writes loses nothing.

#[path = "../support/mod.rs"]
mod support;

mod claude;
mod print;
mod refuse;
mod write;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Outcome, Scratch, stockade};

/// A user with a home, a project, and no client installed.
#[derive(Debug)]
struct User {
    home: Scratch,
    project: Scratch,
    bin: Scratch,
}

/// Client, scope, its file below the home or the project, and where its servers are in it.
const FILES: &[(&str, &str, &str, &str)] = &[
    ("claude-code", "user", ".claude.json", "mcpServers"),
    ("claude-code", "project", ".mcp.json", "mcpServers"),
    ("claude-desktop", "user", ".config/Claude/claude_desktop_config.json", "mcpServers"),
    ("codex", "user", ".codex/config.toml", "mcp_servers"),
    ("codex", "project", ".codex/config.toml", "mcp_servers"),
    ("cursor", "user", ".cursor/mcp.json", "mcpServers"),
    ("cursor", "project", ".cursor/mcp.json", "mcpServers"),
    ("vscode", "user", ".config/Code/User/mcp.json", "servers"),
    ("vscode", "project", ".vscode/mcp.json", "servers"),
    ("gemini", "user", ".gemini/settings.json", "mcpServers"),
    ("gemini", "project", ".gemini/settings.json", "mcpServers"),
];

impl User {
    fn new() -> User {
        User { home: Scratch::new(), project: Scratch::new(), bin: Scratch::new() }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(stockade());
        command.arg("setup").args(words).current_dir(self.project.path());
        command.env("HOME", self.home.path()).env("PATH", self.bin.path());
        for name in ["XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"] {
            command.env_remove(name);
        }
        command
    }

    fn setup(&self, words: &[&str]) -> Outcome {
        Outcome::new(&self.command(words).output().expect("stockade"))
    }

    /// The file of a client, in the home or in the project.
    fn file(&self, scope: &str, name: &str) -> PathBuf {
        let above = if scope == "user" { &self.home } else { &self.project };
        above.path().join(name)
    }

    fn workspace(&self) -> String {
        self.project.path().display().to_string()
    }

    /// Puts a program on the `PATH`.
    fn install(&self, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.bin.file(name, script);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    }
}

/// The program as a client must name it.
fn program() -> String {
    stockade().canonicalize().expect("the program").display().to_string()
}

fn parse(path: &Path, text: &str) -> Value {
    if path.extension().is_some_and(|end| end == "toml") {
        toml::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
    } else {
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names in the directory of a file, sorted.
fn beside(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path.parent().expect("a directory")).expect("a directory");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
