//! Which directories an agent gets, and which it can never get.
//!
//! A root is canonicalised here, once, and everything is checked on the canonical path: a link, `..`
//! or a doubled slash cannot dress up `/etc` as something else. Paths that are only
//! compared, never opened (`hidden`, promises), are expanded by [`Places::expand`] too.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::error::Error;
use super::glob;
use super::layers::{Given, Layers, Origin};
use super::{Access, Grant, Operator, Overrides, load};

/// Every root becomes mounts and Landlock rules in every process; this is more than anyone lists by hand.
const MAX_ROOTS: usize = 256;

/// Never read-write, nor anything below them: the system's own files, and the kernel's.
const SYSTEM: [&str; 16] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/var/run",
    "/var/lib/docker",
    "/var/lib/containerd",
    "/boot",
];
/// Below `SYSTEM`, and still where people keep their own source trees.
const SOURCES: [&str; 2] = ["/usr/src", "/usr/local/src"];
/// Never read-write themselves, because they hold more than one thing; directories in them may be.
const SHARED: [&str; 15] = [
    "/",
    "/home",
    "/root",
    "/tmp",
    "/var",
    "/var/tmp",
    "/var/lib",
    "/var/log",
    "/var/cache",
    "/var/spool",
    "/opt",
    "/srv",
    "/mnt",
    "/media",
    "/usr/src",
];
/// Not even read-only: sockets, devices and other processes are there.
const LIVE: [&str; 5] = ["/proc", "/sys", "/dev", "/run", "/var/run"];

/// What `{workspace}` and `~` stand for.
#[derive(Debug)]
pub(super) struct Places<'a> {
    pub operator: &'a Operator,
    pub workspace: &'a Path,
}

/// A root that was named: where it leads, and by which path it was named.
struct Root<'a> {
    grant: Grant,
    named: PathBuf,
    origin: Origin<'a>,
}

/// The directory `{workspace}` stands for; canonical.
pub(super) fn workspace(operator: &Operator, typed: Option<&Path>) -> Result<PathBuf, Error> {
    let refused = |message: &str| match typed {
        Some(path) => Origin::Flag(format!("--workspace {}", path.display())).error(message),
        None => Error::file(
            operator.cwd.display(),
            format!("the current directory cannot be the workspace: {message}"),
        ),
    };
    let hint = "name the directory of one project: `--workspace DIR`";
    let path = operator.cwd.join(typed.unwrap_or(Path::new(".")));
    let path = directory(&path).map_err(|(message, _)| refused(&message).hint(hint))?;
    match shared_by_all(operator, &path) {
        Some(reason) => Err(refused(&reason).hint(hint)),
        None => Ok(path),
    }
}

/// Every root of the policy and of the command line: sorted, each path once, the stricter access kept.
pub(super) fn grants(
    places: &Places<'_>,
    layers: &Layers,
    overrides: &Overrides,
) -> Result<Vec<Grant>, Error> {
    let files = load::files(layers);
    let mut roots: Vec<Root<'_>> = Vec::new();
    let read_write = layers.nearest(MAX_ROOTS, |file| &file.filesystem.allowed_roots)?;
    let read_only = layers.nearest(MAX_ROOTS, |file| &file.filesystem.read_only_roots)?;
    let written = read_write.into_iter().map(|root| (root, Access::ReadWrite));
    for (given, access) in written.chain(read_only.into_iter().map(|root| (root, Access::ReadOnly)))
    {
        roots.extend(written_root(places, given, access)?);
    }
    let read_write = overrides
        .rw
        .iter()
        .map(|path| ("--rw", path, Access::ReadWrite));
    for (flag, path, access) in read_write.chain(
        overrides
            .ro
            .iter()
            .map(|path| ("--ro", path, Access::ReadOnly)),
    ) {
        let given = Given::flag(
            flag,
            &path.display().to_string(),
            places.operator.cwd.join(path),
        );
        roots.push(root(given, access)?);
    }
    for root in &roots {
        let refused = match root.grant.access {
            Access::ReadWrite => refuse_read_write(places.operator, &files, &root.grant.path),
            Access::ReadOnly | Access::Hidden => {
                refuse_read_only(places.operator, &root.grant.path)
            }
        };
        if let Some((message, hint)) = refused {
            return Err(root
                .origin
                .error(format!("`{}` {message}", root.grant.path.display()))
                .hint(hint));
        }
    }
    refuse_planted_links(&roots)?;
    strictest(roots)
}

impl Places<'_> {
    /// `{workspace}/x`, `~/x` or `/x` as an absolute path, without touching the disk.
    pub fn expand(&self, given: &Given<'_, String>) -> Result<PathBuf, Error> {
        let text = given.value.as_str();
        if text.contains(char::is_control) {
            return Err(given
                .error("a path with a control character")
                .hint("remove it"));
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
        Err(given
            .error(format!("`{text}` is not an absolute path"))
            .hint(relative_hint(text)))
    }

    /// A value that begins with `~/` or `{workspace}`, with that replaced; any other as it is.
    pub fn fill(&self, value: &str) -> String {
        let home = self
            .operator
            .homes
            .first()
            .filter(|_| value.starts_with("~/"))
            .map(|home| (home.as_path(), &value[1..]));
        let workspace = value
            .strip_prefix("{workspace}")
            .map(|rest| (self.workspace, rest));
        home.or(workspace).map_or_else(
            || value.to_owned(),
            |(base, rest)| format!("{}{rest}", base.display()),
        )
    }
}

fn beneath<'t>(text: &'t str, start: &str) -> Option<&'t str> {
    let rest = text.strip_prefix(start)?;
    (rest.is_empty() || rest.starts_with('/')).then(|| rest.trim_start_matches('/'))
}

fn join(base: &Path, rest: &str) -> PathBuf {
    if rest.is_empty() {
        base.to_owned()
    } else {
        base.join(rest)
    }
}

fn relative_hint(text: &str) -> String {
    match text {
        _ if text.starts_with("$HOME") || text.starts_with("${HOME}") => {
            let rest = text
                .trim_start_matches("$HOME")
                .trim_start_matches("${HOME}");
            format!("variables are not replaced; write `~{rest}`")
        }
        _ if text.starts_with('$') => {
            "variables are not replaced; write the path itself, `~/…` or `{workspace}/…`".to_owned()
        }
        _ if text.starts_with('{') => "`{workspace}` is the only word in braces".to_owned(),
        _ if text.starts_with('~') => "only `~/…`, the operator's own home, is known".to_owned(),
        "" => "write an absolute path, `~/…` or `{workspace}`".to_owned(),
        _ => format!(
            "write `{{workspace}}/{}`, `~/…` or an absolute path",
            text.trim_start_matches("./")
        ),
    }
}

/// `None` for a root that ends in `?` and is not there.
fn written_root<'a>(
    places: &Places<'_>,
    given: Given<'a, String>,
    access: Access,
) -> Result<Option<Root<'a>>, Error> {
    let (text, optional) = match given.value.strip_suffix('?') {
        Some(text) => (text.to_owned(), true),
        None => (given.value.clone(), false),
    };
    let path = places.expand(&Given {
        value: text,
        origin: given.origin.clone(),
    })?;
    if optional
        && fs::symlink_metadata(&path)
            .is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    {
        return Ok(None);
    }
    root(
        Given {
            value: path,
            origin: given.origin,
        },
        access,
    )
    .map(Some)
}

fn root(given: Given<'_, PathBuf>, access: Access) -> Result<Root<'_>, Error> {
    let named = lexical(&given.value);
    match directory(&given.value) {
        Ok(path) => Ok(Root {
            grant: Grant { path, access },
            named,
            origin: given.origin,
        }),
        Err((message, hint)) => Err(given
            .error(format!("`{}`: {message}", given.value.display()))
            .hint(hint)),
    }
}

/// The canonical path of a directory that is there and can be listed.
fn directory(path: &Path) -> Result<PathBuf, (String, String)> {
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => ("no such directory".to_owned(), missing_hint(path)),
        std::io::ErrorKind::NotADirectory => not_a_directory(),
        _ => (
            format!("cannot be read: {error}"),
            "give a directory that you can read yourself".to_owned(),
        ),
    };
    let canonical = path.canonicalize().map_err(failed)?;
    if !canonical.is_dir() {
        return Err(not_a_directory());
    }
    fs::read_dir(&canonical).map_err(failed)?;
    let nameable = canonical
        .to_str()
        .is_some_and(|text| !text.contains(char::is_control));
    if !nameable {
        return Err((
            "its name is not plain UTF-8".to_owned(),
            "rename the directory: results and logs name paths as text".to_owned(),
        ));
    }
    Ok(canonical)
}

fn not_a_directory() -> (String, String) {
    (
        "is not a directory".to_owned(),
        "a root is a directory; name the one that holds the file".to_owned(),
    )
}

fn missing_hint(path: &Path) -> String {
    let text = path.to_string_lossy();
    if glob::is_pattern(&text) {
        return "patterns are not expanded in roots; name each directory".to_owned();
    }
    if text.contains('$') {
        return "variables are not replaced; write the path itself, `~/…` or `{workspace}/…`"
            .to_owned();
    }
    "create it, or end the path with `?` to skip it when it is missing".to_owned()
}

/// Why a directory is everyone's, and so no single agent's to write.
fn shared_by_all(operator: &Operator, path: &Path) -> Option<String> {
    let within = |list: &[&str]| list.iter().any(|entry| path.starts_with(entry));
    if SHARED.iter().any(|entry| path == Path::new(entry)) || (within(&SYSTEM) && !within(&SOURCES))
    {
        return Some("is a system directory".to_owned());
    }
    match operator.homes.iter().find(|home| home.starts_with(path)) {
        Some(home) if home == path => {
            Some("is your home directory, with your keys in it".to_owned())
        }
        Some(_) => Some("holds your home directory, with your keys in it".to_owned()),
        None => None,
    }
}

fn refuse_read_write(
    operator: &Operator,
    files: &[PathBuf],
    path: &Path,
) -> Option<(String, String)> {
    if let Some(reason) = shared_by_all(operator, path) {
        return Some((
            format!("{reason}, and cannot be read-write"),
            "grant one directory in it, or make it read-only".to_owned(),
        ));
    }
    if let Some(file) = files.iter().find(|file| file.starts_with(path)) {
        let message = format!(
            "holds this policy (`{}`), and the agent could rewrite it",
            file.display()
        );
        return Some((
            message,
            "keep the policy outside every read-write root".to_owned(),
        ));
    }
    if operator
        .program
        .as_ref()
        .is_some_and(|program| program.starts_with(path))
    {
        return Some((
            "holds the stockade program, and the agent could replace it".to_owned(),
            "install stockade elsewhere".to_owned(),
        ));
    }
    refuse_state(operator, path)
}

fn refuse_read_only(operator: &Operator, path: &Path) -> Option<(String, String)> {
    if path == Path::new("/") {
        return Some((
            "is the whole host".to_owned(),
            "name the directories the agent needs; `/usr` is there without asking".to_owned(),
        ));
    }
    if LIVE.iter().any(|entry| path.starts_with(entry)) {
        return Some((
            "holds the host's sockets, devices or processes".to_owned(),
            "the agent has its own `/proc` and `/dev`; leave it out".to_owned(),
        ));
    }
    refuse_state(operator, path)
}

fn refuse_state(operator: &Operator, path: &Path) -> Option<(String, String)> {
    let state = operator
        .states
        .iter()
        .find(|state| state.starts_with(path) || path.starts_with(state))?;
    let message = format!(
        "would show the agent stockade's own state (`{}`)",
        state.display()
    );
    Some((
        message,
        "grant directories beside it, not around it".to_owned(),
    ))
}

/// A root that is named by a path through a read-write root but leads out of it goes where an agent's
/// link points, not where the operator meant.
fn refuse_planted_links(roots: &[Root<'_>]) -> Result<(), Error> {
    let writable = || {
        roots
            .iter()
            .filter(|root| root.grant.access == Access::ReadWrite)
            .map(|root| &root.grant.path)
    };
    for root in roots {
        if let Some(outer) = writable()
            .find(|outer| root.named.starts_with(outer) && !root.grant.path.starts_with(outer))
        {
            let message = format!(
                "`{}` leads out of the read-write root `{}`, to `{}`",
                root.named.display(),
                outer.display(),
                root.grant.path.display()
            );
            return Err(root
                .origin
                .error(message)
                .hint("the agent can make such a link; name the directory by its own path"));
        }
    }
    Ok(())
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

fn strictest(mut roots: Vec<Root<'_>>) -> Result<Vec<Grant>, Error> {
    roots.sort_by(|a, b| (&a.grant.path, b.grant.access).cmp(&(&b.grant.path, a.grant.access)));
    let mut grants: Vec<Grant> = Vec::new();
    for root in roots {
        match grants.last() {
            Some(last) if last.path == root.grant.path => {
                if matches!(root.origin, Origin::Flag(_)) && last.access > root.grant.access {
                    return Err(root
                        .origin
                        .error("is read-only by another rule, and the stricter one wins")
                        .hint("leave out one of the two"));
                }
            }
            _ => grants.push(root.grant),
        }
    }
    Ok(grants)
}
