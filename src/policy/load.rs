//! From a name or a path to a [`Policy`]: find it, then follow `extends` to its end.
//!
//! How a file is read is in [`super::read`]; what the text means is decided in [`super::resolve`].

use std::path::{Path, PathBuf};

use super::error::{Error, nearest, one_of};
use super::layers::{Given, Layer, Layers, Origin};
use super::read::read;
use super::source::Source;
use super::{Operator, Overrides, Policy, resolve, shipped};

/// A chain nobody can follow by eye protects nobody.
const MAX_CHAIN: usize = 8;

impl Policy {
    /// The policy `selector` names: a path when it has a `/` or ends in `.toml`, otherwise a shipped
    /// name; `default` without one. `workspace` is the current directory unless given.
    pub fn load(selector: Option<&str>, workspace: Option<&Path>, overrides: &Overrides) -> Result<Policy, Error> {
        Policy::load_as(&Operator::current()?, selector, workspace, overrides)
    }

    /// As [`Policy::load`], for an operator who need not be the caller.
    pub fn load_as(
        operator: &Operator,
        selector: Option<&str>,
        workspace: Option<&Path>,
        overrides: &Overrides,
    ) -> Result<Policy, Error> {
        let layers = chain(operator, selector.unwrap_or("default"))?;
        resolve::policy(operator, &layers, workspace, overrides)
    }
}

fn chain(operator: &Operator, selector: &str) -> Result<Layers, Error> {
    let mut layers: Vec<Layer> = Vec::new();
    let mut source = if is_path(selector) {
        read(operator, Path::new(selector))?
    } else {
        named(selector).map_err(|hint| Error::file(selector, "no shipped policy has this name").hint(hint))?
    };
    loop {
        let file = source.parse()?;
        let extends = file.extends.clone();
        layers.push(Layer { source, file });
        let Some(extends) = extends else { break };
        let child = &layers[layers.len() - 1].source;
        let extends = Given { value: extends.value, origin: Origin::Written(child, extends.span) };
        source = parent(operator, child, &extends)?;
        if layers.iter().any(|layer| same(&layer.source, &source)) {
            return Err(extends
                .error(format!("`{}` extends itself through this line", source.name))
                .hint("break the circle: one of these files must not have `extends`"));
        }
        if layers.len() == MAX_CHAIN {
            return Err(extends
                .error(format!("more than {MAX_CHAIN} policies extend one another"))
                .hint("fold some of them together"));
        }
    }
    let base = Source { name: "base".to_owned(), path: None, text: shipped::BASE.to_owned() };
    let file = base.parse()?;
    layers.push(Layer { source: base, file });
    Ok(Layers(layers))
}

fn is_path(selector: &str) -> bool {
    selector.contains('/') || selector.ends_with(".toml")
}

fn same(a: &Source, b: &Source) -> bool {
    a.path == b.path && (a.path.is_some() || a.name == b.name)
}

/// A shipped policy, or a hint about what there is.
fn named(name: &str) -> Result<Source, String> {
    if let Some(text) = shipped::text(name) {
        return Ok(Source { name: name.to_owned(), path: None, text: text.to_owned() });
    }
    let shipped = one_of(shipped::names());
    Err(match nearest(name, shipped::names()) {
        Some(near) => format!(
            "did you mean `{near}`? shipped are {shipped}; a file is named by its path, such as `./{name}.toml`"
        ),
        None => {
            format!("shipped are {shipped}; a file is named by its path, such as `./{name}.toml`")
        }
    })
}

fn parent(operator: &Operator, child: &Source, extends: &Given<'_, String>) -> Result<Source, Error> {
    let selector = extends.value.as_str();
    if !is_path(selector) {
        return named(selector)
            .map_err(|hint| extends.error(format!("no shipped policy is named `{selector}`")).hint(hint));
    }
    let home = selector.strip_prefix("~/").zip(operator.homes.first()).map(|(rest, home)| home.join(rest));
    let beside = child.path.as_deref().and_then(Path::parent).unwrap_or(Path::new("/"));
    let path = home.unwrap_or_else(|| beside.join(selector.trim_start_matches("./")));
    // A fault of the parent is shown where the operator can mend it: at the line that names it.
    read(operator, &path).map_err(|error| {
        let at = extends.error(format!("`{selector}`: {}", error.message));
        match error.hint {
            Some(hint) => at.hint(hint),
            None => at,
        }
    })
}

/// The canonical paths of the files a policy was read from.
pub(super) fn files(layers: &Layers) -> Vec<PathBuf> {
    layers.0.iter().filter_map(|layer| layer.source.path.clone()).collect()
}
