//! Other programs, run and waited for, with an error that names the command line.
//!
//! Nothing here knows what the programs are for. A failure is one line of text, because whoever
//! runs `cargo xtask` can only read it and act.

use std::ffi::OsStr;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub type Result<T = ()> = std::result::Result<T, String>;

/// Names the thing an error is about: `read("x").about("x")`.
pub trait About<T> {
    fn about(self, what: impl Display) -> Result<T>;
}

impl<T, E: Display> About<T> for std::result::Result<T, E> {
    fn about(self, what: impl Display) -> Result<T> {
        self.map_err(|error| format!("{what}: {error}"))
    }
}

/// Runs a command with its output passed through.
pub fn run(command: &mut Command) -> Result {
    let status = command.status().about(describe(command))?;
    if status.success() { Ok(()) } else { Err(format!("`{}` ended with {status}", describe(command))) }
}

/// Runs a command in silence; what it printed is part of the error.
pub fn run_quietly(command: &mut Command) -> Result {
    output(command).map(|_| ())
}

/// Runs a command and gives back its standard output.
pub fn output(command: &mut Command) -> Result<String> {
    let done = command.stdin(Stdio::null()).output().about(describe(command))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    Err(format!("`{}` ended with {}\n{}", describe(command), done.status, said.trim_end()))
}

/// Where a program is, looked for in the directories every user has.
///
/// A program that only the caller's `PATH` reaches, in a home say, is no use to a test user.
pub fn find_program(name: &str) -> Option<PathBuf> {
    SYSTEM_PATH.split(':').map(|dir| Path::new(dir).join(name)).find(|path| path.is_file())
}

pub const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The root of the checkout.
pub fn repo() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    manifest.and_then(|dir| dir.parent().map(Path::to_path_buf)).unwrap_or_else(|| PathBuf::from("."))
}

/// `cargo`, the one that runs us, in the root of the checkout.
pub fn cargo() -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(repo());
    command
}

pub fn is_root() -> bool {
    output(Command::new("id").arg("-u")).is_ok_and(|uid| uid.trim() == "0")
}

/// In CI a thing that could not be done is a failure, not a remark.
pub fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}

fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
    words.join(" ")
}
