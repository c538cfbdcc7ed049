//! What `{workspace}` and `~` stand for, and paths that are compared but never opened.

use std::path::{Component, Path, PathBuf};

use super::Operator;
use super::error::Error;
use super::layers::Given;

/// What `{workspace}` and `~` stand for.
#[derive(Debug)]
pub(super) struct Places<'a> {
    pub operator: &'a Operator,
    pub workspace: &'a Path,
}

impl Places<'_> {
    /// `{workspace}/x`, `~/x` or `/x` as an absolute path, without touching the disk.
    pub fn expand(&self, given: &Given<'_, String>) -> Result<PathBuf, Error> {
        let text = given.value.as_str();
        if text.contains(char::is_control) {
            return Err(given.error("a path with a control character").hint("remove it"));
        }
        if let Some(rest) = beneath(text, "{workspace}") {
            return Ok(join(self.workspace, rest));
        }
        if let Some(rest) = beneath(text, "~") {
            let home = self.operator.homes.first();
            return home
                .map(|home| join(home, rest))
                .ok_or_else(|| given.error("`~` has no meaning: this user has no home directory"));
        }
        if text.starts_with('/') {
            return Ok(PathBuf::from(text));
        }
        Err(given.error(format!("`{text}` is not an absolute path")).hint(relative_hint(text)))
    }

    /// A value that begins with `~/` or `{workspace}`, with that replaced; any other as it is.
    pub fn fill(&self, value: &str) -> String {
        let home =
            self.operator.homes.first().filter(|_| value.starts_with("~/")).map(|home| (home.as_path(), &value[1..]));
        let workspace = value.strip_prefix("{workspace}").map(|rest| (self.workspace, rest));
        home.or(workspace).map_or_else(|| value.to_owned(), |(base, rest)| format!("{}{rest}", base.display()))
    }
}

/// Without `.`, `..` and doubled slashes, and without looking at the disk.
pub(super) fn lexical(path: &Path) -> PathBuf {
    let mut clean = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::ParentDir => drop(clean.pop()),
            Component::Normal(name) => clean.push(name),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    clean
}

fn beneath<'t>(text: &'t str, start: &str) -> Option<&'t str> {
    let rest = text.strip_prefix(start)?;
    (rest.is_empty() || rest.starts_with('/')).then(|| rest.trim_start_matches('/'))
}

fn join(base: &Path, rest: &str) -> PathBuf {
    if rest.is_empty() { base.to_owned() } else { base.join(rest) }
}

fn relative_hint(text: &str) -> String {
    match text {
        _ if text.starts_with("$HOME") || text.starts_with("${HOME}") => {
            let rest = text.trim_start_matches("$HOME").trim_start_matches("${HOME}");
            format!("variables are not replaced; write `~{rest}`")
        }
        _ if text.starts_with('$') => {
            "variables are not replaced; write the path itself, `~/…` or `{workspace}/…`".to_owned()
        }
        _ if text.starts_with('{') => "`{workspace}` is the only word in braces".to_owned(),
        _ if text.starts_with('~') => "only `~/…`, the operator's own home, is known".to_owned(),
        _ if text.is_empty() || text.starts_with("..") => "write an absolute path, `~/…` or `{workspace}/…`".to_owned(),
        _ => format!("write `{{workspace}}/{}`, `~/…` or an absolute path", text.trim_start_matches("./")),
    }
}
