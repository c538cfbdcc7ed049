//! Which directories an agent gets, and which it can never get.
//!
//! A root is canonicalised here, once, and everything is checked on the canonical path: a link, `..`
//! or a doubled slash cannot dress up `/etc` as something else. What may not be granted at all is in
//! [`super::forbidden`].

use std::fs;
use std::path::{Path, PathBuf};

use super::error::Error;
use super::glob;
use super::layers::{Given, Layers, Origin};
use super::places::{Places, lexical};
use super::{Access, Grant, Operator, Overrides, forbidden, load};

/// Every root becomes mounts and Landlock rules in every process; this is more than anyone lists by hand.
const MAX_ROOTS: usize = 256;

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
        None => {
            Error::file(operator.cwd.display(), format!("the current directory cannot be the workspace: {message}"))
        }
    };
    let hint = "name the directory of one project: `--workspace DIR`";
    let path = operator.cwd.join(typed.unwrap_or(Path::new(".")));
    let path = directory(&path).map_err(|(message, _)| refused(&message).hint(hint))?;
    match forbidden::shared_by_all(operator, &path) {
        Some(reason) => Err(refused(&reason).hint(hint)),
        None => Ok(path),
    }
}

/// Every root of the policy and of the command line: sorted, each path once, the stricter access kept.
pub(super) fn grants(places: &Places<'_>, layers: &Layers, overrides: &Overrides) -> Result<Vec<Grant>, Error> {
    let roots = named_roots(places, layers, overrides)?;
    let files = load::files(layers);
    for root in &roots {
        let path = &root.grant.path;
        let refused = match root.grant.access {
            Access::ReadWrite => forbidden::read_write(places.operator, &files, path),
            Access::ReadOnly | Access::Hidden => forbidden::read_only(places.operator, path),
        };
        if let Some((message, hint)) = refused {
            let message = format!("`{}` {message}", path.display());
            return Err(root.origin.error(message).hint(hint));
        }
    }
    refuse_planted_links(&roots)?;
    strictest(roots)
}

fn named_roots<'a>(places: &Places<'_>, layers: &'a Layers, overrides: &Overrides) -> Result<Vec<Root<'a>>, Error> {
    let mut roots = Vec::new();
    for given in layers.nearest(MAX_ROOTS, |file| &file.filesystem.allowed_roots)? {
        roots.extend(written_root(places, given, Access::ReadWrite)?);
    }
    for given in layers.nearest(MAX_ROOTS, |file| &file.filesystem.read_only_roots)? {
        roots.extend(written_root(places, given, Access::ReadOnly)?);
    }
    let typed = |flag, path: &PathBuf| {
        let shown = path.display().to_string();
        Given::flag(flag, &shown, places.operator.cwd.join(path))
    };
    for path in &overrides.rw {
        roots.push(root(typed("--rw", path), Access::ReadWrite)?);
    }
    for path in &overrides.ro {
        roots.push(root(typed("--ro", path), Access::ReadOnly)?);
    }
    Ok(roots)
}

/// `None` for a root that ends in `?` and is not there.
fn written_root<'a>(places: &Places<'_>, given: Given<'a, String>, access: Access) -> Result<Option<Root<'a>>, Error> {
    let (text, optional) = match given.value.strip_suffix('?') {
        Some(text) => (text.to_owned(), true),
        None => (given.value.clone(), false),
    };
    let path = places.expand(&Given { value: text, origin: given.origin.clone() })?;
    if optional && fs::symlink_metadata(&path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        return Ok(None);
    }
    root(Given { value: path, origin: given.origin }, access).map(Some)
}

fn root(given: Given<'_, PathBuf>, access: Access) -> Result<Root<'_>, Error> {
    let named = lexical(&given.value);
    match directory(&given.value) {
        Ok(path) => Ok(Root { grant: Grant { path, access }, named, origin: given.origin }),
        Err((message, hint)) => Err(given.error(format!("`{}`: {message}", given.value.display())).hint(hint)),
    }
}

/// The canonical path of a directory that is there and can be listed.
fn directory(path: &Path) -> Result<PathBuf, (String, String)> {
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => ("no such directory".to_owned(), missing_hint(path)),
        std::io::ErrorKind::NotADirectory => not_a_directory(),
        _ => (format!("cannot be read: {error}"), "give a directory that you can read yourself".to_owned()),
    };
    let canonical = path.canonicalize().map_err(failed)?;
    if !canonical.is_dir() {
        return Err(not_a_directory());
    }
    fs::read_dir(&canonical).map_err(failed)?;
    let nameable = canonical.to_str().is_some_and(|text| !text.contains(char::is_control));
    if !nameable {
        return Err((
            "its name is not plain UTF-8".to_owned(),
            "rename the directory: results and logs name paths as text".to_owned(),
        ));
    }
    Ok(canonical)
}

fn not_a_directory() -> (String, String) {
    ("is not a directory".to_owned(), "a root is a directory; name the one that holds the file".to_owned())
}

fn missing_hint(path: &Path) -> String {
    let text = path.to_string_lossy();
    if glob::is_pattern(&text) {
        return "patterns are not expanded in roots; name each directory".to_owned();
    }
    if text.contains('$') {
        return "variables are not replaced; write the path itself, `~/…` or `{workspace}/…`".to_owned();
    }
    "create it, or end the path with `?` to skip it when it is missing".to_owned()
}

/// A root that is named by a path through a read-write root but leads out of it goes where an agent's
/// link points, not where the operator meant.
fn refuse_planted_links(roots: &[Root<'_>]) -> Result<(), Error> {
    let writable = || roots.iter().filter(|root| root.grant.access == Access::ReadWrite).map(|root| &root.grant.path);
    for root in roots {
        if let Some(outer) =
            writable().find(|outer| root.named.starts_with(outer) && !root.grant.path.starts_with(outer))
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
