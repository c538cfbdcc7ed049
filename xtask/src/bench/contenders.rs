//! The contenders: ways to run `/bin/true` and know its exit status.
//!
//! The first one is what the others are compared with. A contender that does not work here says
//! so and is left out of the tables.

use super::measure::{Client, Contender};
use super::ours;
use crate::shell::{About, Result};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};

/// Everything that can run on this machine.
pub fn all(workspace: &Path) -> Vec<Contender> {
    let mut contenders = vec![plain(), bubblewrap(workspace)];
    match ours::contenders(workspace) {
        Ok(ours) => contenders.extend(ours),
        Err(reason) => println!("our launcher is left out: {reason}"),
    }
    if let Some(stockade) = std::env::var_os("STOCKADE_BIN") {
        if passes_status_on(&stockade) {
            let words = ["run", "--", "/bin/true"].map(OsString::from);
            contenders.push(program("stockade run", &stockade, words.to_vec()));
        } else {
            println!("stockade run is left out: it does not run commands here");
        }
    }
    contenders.retain(|contender| match contender.try_once() {
        Ok(()) => true,
        Err(reason) => {
            println!("{} is left out: {reason}", contender.name);
            false
        }
    });
    contenders
}

/// A program that did nothing would win every race.
fn passes_status_on(stockade: &OsStr) -> bool {
    let words = ["run", "--", "/bin/sh", "-c", "exit 42"];
    let status = Command::new(stockade).args(words).stdin(Stdio::null()).status();
    status.is_ok_and(|status| status.code() == Some(42))
}

/// The standard library's spawn, which is `posix_spawn` where nothing is asked that it cannot do.
pub fn plain() -> Contender {
    program("plain spawn", "/bin/true".as_ref(), Vec::new())
}

/// Bubblewrap with the walls it has in common with a cell; it has no Landlock, cgroups or filter of its own.
fn bubblewrap(workspace: &Path) -> Contender {
    let fixed = "--unshare-all --die-with-parent --new-session --cap-drop ALL \
                 --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/sbin /sbin \
                 --symlink usr/lib /lib --symlink usr/lib64 /lib64 --ro-bind /etc /etc \
                 --proc /proc --dev /dev --tmpfs /tmp";
    let mut words: Vec<OsString> = fixed.split_whitespace().map(OsString::from).collect();
    words.extend(["--bind".into(), workspace.into(), workspace.into()]);
    words.extend(["--chdir".into(), workspace.into(), "/bin/true".into()]);
    program("bubblewrap", "bwrap".as_ref(), words)
}

/// A contender that is one command line.
fn program(name: &'static str, program: &OsStr, words: Vec<OsString>) -> Contender {
    let program = program.to_owned();
    Contender::new(name, move || {
        let (program, words) = (program.clone(), words.clone());
        let client: Client = Box::new(move || start(&program, &words));
        Ok(client)
    })
}

fn start(program: &OsString, words: &[OsString]) -> Result {
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null());
    let status = command.status().about(program.display())?;
    if status.success() { Ok(()) } else { Err(format!("{} ended with {status}", program.display())) }
}
