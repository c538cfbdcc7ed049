//! The command that `run` and `proc_start` share: exactly one of a shell string and a list of words.

use super::words::without_nul;
use crate::broker::refused::Refused;
use crate::broker::request::Command;
use crate::plan::command::Words;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// The parameters as written.
#[derive(Debug, Default)]
pub struct Written {
    pub command: Option<String>,
    pub argv: Option<Vec<String>>,
    pub cwd: Option<String>,
    pub env: BTreeMap<String, String>,
    pub session: Option<String>,
    pub description: Option<String>,
    pub timeout: Option<Duration>,
}

impl Written {
    pub fn read(self) -> Result<Command, Refused> {
        Ok(Command {
            words: words(self.command, self.argv)?,
            cwd: directory(self.cwd)?,
            env: environment(self.env)?,
            session: self.session,
            description: self.description,
            timeout: self.timeout,
        })
    }
}

fn words(command: Option<String>, argv: Option<Vec<String>>) -> Result<Words, Refused> {
    match (command, argv) {
        (Some(command), None) => {
            without_nul("command", &command)?;
            Ok(Words::Shell(command))
        }
        (None, Some(argv)) => {
            if argv.first().is_none_or(String::is_empty) {
                return Err(
                    Refused::invalid("`argv` is empty; its first word must be a program").with("parameter", "argv")
                );
            }
            argv.iter().try_for_each(|word| without_nul("argv", word))?;
            Ok(Words::Argv(argv))
        }
        (given, _) => {
            let count = if given.is_some() { "both of them are" } else { "neither is" };
            Err(Refused::invalid(format!("exactly one of `command` and `argv` must be given; {count}")))
        }
    }
}

pub fn directory(cwd: Option<String>) -> Result<Option<PathBuf>, Refused> {
    if let Some(cwd) = &cwd {
        without_nul("cwd", cwd)?;
    }
    Ok(cwd.map(PathBuf::from))
}

pub fn environment(env: BTreeMap<String, String>) -> Result<Vec<(String, String)>, Refused> {
    for (name, value) in &env {
        if name.is_empty() || name.contains(['=', '\0']) {
            let shown = name.escape_debug().take(64).collect::<String>();
            let message = format!("`env` has the name `{shown}`; a name is not empty and has neither `=` nor NUL");
            return Err(Refused::invalid(message).with("parameter", "env"));
        }
        without_nul(&format!("env.{name}"), value)?;
    }
    Ok(env.into_iter().collect())
}
