//! From files as written to the policy as meant: every default filled, every word checked.
//!
//! Numbers are in [`super::limits`], directories in [`super::roots`], promises in
//! [`super::promises`]. Nothing here decides about a request.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use super::error::{Error, visible};
use super::layers::{Given, Layers, MAX_ENTRIES, Origin};
use super::places::{Places, lexical};
use super::{
    Enforcement, Environment, Filesystem, Operator, Overrides, Policy, SyscallGroup, Tools, commands, glob, limits,
    network, promises, roots,
};

/// Every hidden path is a mount in every process.
const MAX_HIDDEN: usize = 256;
const MAX_VARIABLES: usize = 256;

pub(super) fn policy(
    operator: &Operator,
    layers: &Layers,
    workspace: Option<&Path>,
    overrides: &Overrides,
) -> Result<Policy, Error> {
    let workspace = roots::workspace(operator, workspace)?;
    let places = Places { operator, workspace: &workspace };
    Ok(Policy {
        name: layers.0[0].source.name.clone(),
        agent: agent(layers)?,
        filesystem: filesystem(&places, layers, overrides)?,
        commands: commands::commands(&places, layers)?,
        limits: limits::limits(layers, overrides)?,
        processes: limits::processes(layers)?,
        network: network::network(layers, overrides)?,
        environment: environment(&places, layers, overrides)?,
        identity: layers.pick(|file| &file.identity.host_user).value,
        syscalls: syscalls(layers)?,
        enforcement: enforcement(layers),
        tools: tools(layers),
        retention: limits::retention(layers)?,
        expectations: promises::expectations(&places, layers)?,
        workspace,
    })
}

/// Never inherited: two policies that share a parent must not share state and audit.
fn agent(layers: &Layers) -> Result<String, Error> {
    let chosen = &layers.0[0];
    let rule = "a name is 1 to 64 of a-z, 0-9, `_` and `-`, beginning with a letter or digit";
    if let Some(at) = &chosen.file.agent {
        let error =
            || chosen.source.error(&at.span, format!("`{}` is not an agent's name", visible(&at.value))).hint(rule);
        return is_agent(&at.value).then(|| at.value.clone()).ok_or_else(error);
    }
    let name = match &chosen.source.path {
        Some(path) => path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        None => chosen.source.name.clone(),
    };
    let error = || {
        Error::file(&chosen.source.name, "its file name is not an agent's name")
            .hint(format!("add `agent = \"…\"`; {rule}"))
    };
    is_agent(&name).then_some(name.clone()).ok_or_else(error)
}

fn is_agent(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=64).contains(&name.len()) && name.starts_with(plain) && name.chars().all(|c| plain(c) || c == '_' || c == '-')
}

fn filesystem(places: &Places<'_>, layers: &Layers, overrides: &Overrides) -> Result<Filesystem, Error> {
    let (tmp_size, tmp_inodes, max_file_bytes) = limits::private(layers)?;
    let hidden = layers.gathered(MAX_HIDDEN, |file| &file.filesystem.hidden)?;
    Ok(Filesystem {
        grants: roots::grants(places, layers, overrides)?,
        hidden: hidden.iter().map(|entry| hidden_path(places, entry)).collect::<Result<_, _>>()?,
        tmp_size,
        tmp_inodes,
        max_file_bytes,
    })
}

fn hidden_path(places: &Places<'_>, given: &Given<'_, String>) -> Result<String, Error> {
    let text = given.value.as_str();
    let path = Path::new(text.strip_prefix("**/").unwrap_or(text));
    if path.components().any(|component| component == Component::ParentDir) {
        return Err(given.error("a hidden path with `..`").hint("name it from the root downward, or absolutely"));
    }
    if path.components().all(|component| matches!(component, Component::CurDir | Component::RootDir))
        || text.contains(char::is_control)
    {
        return Err(given
            .error(format!("`{}` names nothing to hide", visible(text)))
            .hint("write a path inside the roots, such as `.env`"));
    }
    if let Some(name) = text.strip_prefix("**/") {
        let single = !name.trim_end_matches('/').contains('/') && !name.contains("**");
        return single.then(|| text.to_owned()).ok_or_else(|| {
            given.error("`**/` is followed by one name").hint("write `**/.env`, or the path from the root")
        });
    }
    if glob::is_pattern(text) {
        return Err(given
            .error("a pattern that does not begin with `**/`")
            .hint(format!("write `**/{}`", text.rsplit('/').next().unwrap_or(text))));
    }
    if text.starts_with(['/', '~', '{', '$']) {
        let expanded = lexical(&places.expand(given)?);
        return Ok(expanded.display().to_string());
    }
    Ok(text.to_owned())
}

fn environment(places: &Places<'_>, layers: &Layers, overrides: &Overrides) -> Result<Environment, Error> {
    let names = |list: Vec<Given<'_, String>>| {
        list.into_iter().map(|given| variable(&given.value, &given.origin)).collect::<Result<Vec<_>, _>>()
    };
    let mut set = BTreeMap::new();
    for layer in layers.0.iter().rev() {
        for (name, at) in &layer.file.environment.set {
            let origin = Origin::Written(&layer.source, at.span.clone());
            set.insert(variable(name, &origin)?, content(&places.fill(&at.value), &origin)?);
        }
    }
    for typed in &overrides.env {
        let origin = Origin::Flag(format!("--env {typed}"));
        let (name, value) =
            typed.split_once('=').ok_or_else(|| origin.error("has no `=`").hint("write `--env NAME=VALUE`"))?;
        set.insert(variable(name, &origin)?, content(value, &origin)?);
    }
    if set.len() > MAX_VARIABLES {
        return Err(Error::file(
            &layers.0[0].source.name,
            format!("sets {} variables, more than {MAX_VARIABLES}", set.len()),
        ));
    }
    Ok(Environment {
        pass: names(layers.nearest(MAX_VARIABLES, |file| &file.environment.pass)?)?,
        set: set.into_iter().collect(),
        redact: names(layers.gathered(MAX_VARIABLES, |file| &file.environment.redact)?)?,
    })
}

fn variable(name: &str, origin: &Origin<'_>) -> Result<String, Error> {
    let fits = !name.is_empty() && !name.contains(|c: char| c == '=' || c.is_control() || c.is_whitespace());
    fits.then(|| name.to_owned()).ok_or_else(|| {
        origin.error(format!("`{}` is not a variable's name", visible(name))).hint("write such as `LANG` or `LC_*`")
    })
}

fn content(value: &str, origin: &Origin<'_>) -> Result<String, Error> {
    (!value.contains('\0')).then(|| value.to_owned()).ok_or_else(|| origin.error("a value with a NUL byte"))
}

fn syscalls(layers: &Layers) -> Result<Vec<SyscallGroup>, Error> {
    let mut groups: Vec<_> =
        layers.nearest(MAX_ENTRIES, |file| &file.syscalls.allow)?.into_iter().map(|given| given.value).collect();
    groups.sort_unstable();
    groups.dedup();
    Ok(groups)
}

fn enforcement(layers: &Layers) -> Enforcement {
    Enforcement {
        namespaces: layers.pick(|file| &file.enforcement.namespaces).value,
        landlock: layers.pick(|file| &file.enforcement.landlock).value,
        seccomp: layers.pick(|file| &file.enforcement.seccomp).value,
        cgroups: layers.pick(|file| &file.enforcement.cgroups).value,
    }
}

fn tools(layers: &Layers) -> Tools {
    Tools {
        surface: layers.pick(|file| &file.tools.surface).value,
        files: layers.pick(|file| &file.tools.files).value,
        processes: layers.pick(|file| &file.tools.processes).value,
        repl: layers.pick(|file| &file.tools.repl).value,
        system: layers.pick(|file| &file.tools.system).value,
    }
}
