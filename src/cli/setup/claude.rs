//! Claude Code has a command of its own for this, which knows where its files are.

use super::clients::Scope;
use super::entry::Entry;
use crate::cli::say::Complaint;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// `claude mcp add …`, without `claude`.
fn add_words(entry: &Entry, scope: Scope) -> Vec<&str> {
    let mut words = vec!["mcp", "add", "--scope", scope.word(), &entry.name, "--", &entry.command];
    words.extend(entry.args.iter().map(String::as_str));
    words
}

/// The command for a shell.
pub fn line(entry: &Entry, scope: Scope) -> String {
    let words = add_words(entry, scope).into_iter().map(quoted);
    std::iter::once("claude".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// `claude`, when it is on the `PATH`.
pub fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let runnable =
        |file: &PathBuf| file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
    std::env::split_paths(&path).filter(|above| above.is_absolute()).map(|above| above.join("claude")).find(runnable)
}

/// Whether Claude Code already knows a server of this name; it adds no second one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    Nothing,
    Another,
}

pub fn add(claude: &Path, entry: &Entry, scope: Scope, before: Before, project: &Path) -> Result<(), Complaint> {
    if before == Before::Another {
        call(claude, &["mcp", "remove", "--scope", scope.word(), &entry.name], project)?;
    }
    call(claude, &add_words(entry, scope), project)
}

fn call(claude: &Path, words: &[&str], project: &Path) -> Result<(), Complaint> {
    let shown = format!("claude {}", words.join(" "));
    let command =
        Command::new(claude).args(words.iter().map(OsStr::new)).current_dir(project).stdin(Stdio::null()).output();
    let output = command.map_err(|error| Complaint::new(format!("`{}`: {error}", claude.display())))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stderr, output.stdout].map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned());
    let said = said.iter().find(|said| !said.is_empty()).map_or("it says nothing", String::as_str);
    Err(Complaint::new(format!("`{shown}` ended with {}: {said}", output.status)))
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:=+@%,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
