//! What a client is told to start: this program, by absolute path, with a policy that is known to load.

use super::clients::{Client, Places, Scope, Start};
use crate::cli::say::Complaint;
use crate::policy::{Access, Overrides, Policy};
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A server as a client knows it.
#[derive(Debug)]
pub struct Entry {
    pub name: String,
    pub command: String,
    pub args: Vec<String>,
}

/// What was asked for, before it is made absolute.
#[derive(Debug, Clone, Copy)]
pub struct Wish<'a> {
    pub client: Client,
    pub scope: Scope,
    pub name: &'a str,
    pub policy: Option<&'a str>,
    pub workspace: Option<&'a Path>,
}

/// An entry whose policy loads.
#[derive(Debug)]
pub struct Checked {
    pub entry: Entry,
    /// The policy for the workspace of this entry; `None` when the workspace is known only to the client.
    policy: Option<Policy>,
}

impl Checked {
    /// Whether the agent could write this file from inside its cell.
    pub fn agent_writes(&self, file: &Path) -> bool {
        let Some(policy) = &self.policy else { return false };
        let around = policy.filesystem.grants.iter().filter(|grant| file.starts_with(&grant.path));
        around
            .max_by_key(|grant| grant.path.components().count())
            .is_some_and(|grant| grant.access == Access::ReadWrite)
    }
}

pub fn check(wish: Wish<'_>, places: &Places) -> Result<Checked, Complaint> {
    let facts = wish.client.facts();
    let workspace = wish.workspace.map(directory).transpose()?;
    if workspace.is_none() && facts.start == Start::Anywhere {
        return Err(Complaint::new(format!(
            "{} starts servers in no project\nhint: name the directory the agent works in: `--workspace DIR`",
            facts.title
        )));
    }
    let selector = wish.policy.map(absolute).transpose()?;
    let policy = load(selector.as_deref(), workspace.as_deref(), wish.scope, places)?;
    let mut words = vec![text(program()?)?];
    words.extend(["serve".to_owned()]);
    if let Some(selector) = selector {
        words.extend(["--policy".to_owned(), selector]);
    }
    if let Some(workspace) = workspace {
        words.extend(["--workspace".to_owned(), text(workspace)?]);
    }
    if let Some((word, start)) =
        facts.expands.and_then(|start| Some((words.iter().find(|w| w.contains(start))?, start)))
    {
        return Err(Complaint::new(format!(
            "`{word}` holds `{start}`, and {} would put a variable in its place\nhint: use a path without it",
            facts.title
        )));
    }
    if let (None, Start::Variable(variable)) = (wish.workspace, facts.start) {
        words.extend(["--workspace".to_owned(), variable.to_owned()]);
    }
    let command = words.remove(0);
    Ok(Checked { entry: Entry { name: wish.name.to_owned(), command, args: words }, policy })
}

/// The running program, and a word of warning when a build may replace or remove it.
fn program() -> Result<PathBuf, Complaint> {
    let path = std::env::current_exe().and_then(|path| path.canonicalize());
    let path = path.map_err(|error| {
        Complaint::new(format!("the path of this program: {error}\nhint: it was replaced while it ran; try again"))
    })?;
    // Cargo keeps its notes beside what it builds, whatever the target directory is called.
    let built = path.parent().is_some_and(|above| above.join(".fingerprint").is_dir());
    if built {
        eprintln!("warning: `{}` is a build, and goes with the next `cargo clean`", path.display());
        eprintln!("hint: `cargo install --path .`, then `stockade setup` once more");
    }
    Ok(path)
}

fn directory(path: &Path) -> Result<PathBuf, Complaint> {
    let at = |why: &dyn std::fmt::Display| Complaint::new(format!("`--workspace {}`: {why}", path.display()));
    let path = path.canonicalize().map_err(|error| at(&error))?;
    if path.is_dir() { Ok(path) } else { Err(at(&"not a directory")) }
}

/// A policy file by a path that holds anywhere; a name stays a name. A link is kept: it may be meant to move.
fn absolute(selector: &str) -> Result<String, Complaint> {
    if !selector.contains('/') && !selector.ends_with(".toml") {
        return Ok(selector.to_owned());
    }
    let path = std::path::absolute(selector)?;
    let at = |why: &dyn std::fmt::Display| Complaint::new(format!("`--policy {selector}`: {why}"));
    let (above, name) = path.parent().zip(path.file_name()).ok_or_else(|| at(&"not a file"))?;
    text(above.canonicalize().map_err(|error| at(&error))?.join(name))
}

fn text(path: PathBuf) -> Result<String, Complaint> {
    let shown = path.display().to_string();
    let text = path.into_os_string().into_string().ok().filter(|text| !text.contains(char::is_control));
    text.ok_or_else(|| {
        Complaint::new(format!(
            "`{shown}` cannot be written into a configuration\nhint: use a path of UTF-8 without control characters"
        ))
    })
}

/// Loads the policy as `serve` will. Where only the client knows the workspace, any that suits the policy will do: the
/// current directory, or an empty one (the current one may be the home directory, which no policy grants).
fn load(
    selector: Option<&str>,
    workspace: Option<&Path>,
    scope: Scope,
    places: &Places,
) -> Result<Option<Policy>, Complaint> {
    let load = |workspace: &Path| Policy::load(selector, Some(workspace), &Overrides::default());
    match (workspace, scope) {
        (Some(workspace), _) => Ok(Some(load(workspace)?)),
        (None, Scope::Project) => Ok(Some(load(&places.project)?)),
        (None, Scope::User) => {
            if load(&places.project).is_err() {
                let stand_in = StandIn::make()?;
                load(&stand_in.0)?;
            }
            Ok(None)
        }
    }
}

/// An empty directory that goes away again.
struct StandIn(PathBuf);

impl StandIn {
    fn make() -> Result<StandIn, Complaint> {
        let path = std::env::temp_dir().join(format!("stockade-setup-{}", std::process::id()));
        let made = fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| Complaint::new(format!("`{}`: {error}", path.display())))?;
        Ok(StandIn(path))
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        drop(fs::remove_dir(&self.0));
    }
}
