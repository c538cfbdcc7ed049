//! `[commands]`: the shell, and which programs may run.

use std::path::PathBuf;

use super::error::Error;
use super::layers::{Given, Layers, MAX_ENTRIES};
use super::places::{Places, lexical};
use super::written::Shell;
use super::{CommandRule, Commands, glob, words};

pub(super) fn commands(places: &Places<'_>, layers: &Layers) -> Result<Commands, Error> {
    let rules =
        |list: Vec<Given<'_, String>>| list.iter().map(|entry| rule(places, entry)).collect::<Result<Vec<_>, _>>();
    let shell = layers.pick(|file| &file.commands.shell);
    Ok(Commands {
        shell: match &shell.value {
            Shell::Program(program) if program.starts_with('/') => Some(PathBuf::from(program)),
            Shell::Program(program) => {
                return Err(shell
                    .error(format!("`{program}` is not an absolute path"))
                    .hint("write `/bin/bash`, or `false`"));
            }
            Shell::Off => None,
        },
        allowed: rules(layers.nearest(MAX_ENTRIES, |file| &file.commands.allowed)?)?,
        blocked: rules(layers.gathered(MAX_ENTRIES, |file| &file.commands.blocked)?)?,
    })
}

fn rule(places: &Places<'_>, given: &Given<'_, String>) -> Result<CommandRule, Error> {
    let words = words::split(&given.value).filter(|_| !given.value.contains(char::is_control));
    let mut words = words.ok_or_else(|| {
        given
            .error("a quote that is not closed, or a control character")
            .hint("quotes keep an argument with spaces together: `git 'log -p'`")
    })?;
    if words.is_empty() || words[0].is_empty() {
        return Err(given
            .error("names no program")
            .hint("write a name (`git`), a path, a pattern (`python3*`), or `*`"));
    }
    let arguments = words.split_off(1);
    let program = words.remove(0);
    if !program.contains('/') {
        return Ok(CommandRule { program, arguments });
    }
    let path = places.expand(&Given { value: program.clone(), origin: given.origin.clone() })?;
    let path = lexical(&path).display().to_string();
    // A `*` in a directory's own name would silently widen the rule.
    if glob::is_pattern(&path) && !glob::is_pattern(&program) {
        return Err(given
            .error(format!("`{path}` has a `*` or `?` in the name of a directory"))
            .hint("rename the directory"));
    }
    Ok(CommandRule { program: path, arguments })
}
