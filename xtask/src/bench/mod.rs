//! `cargo xtask bench launch`: what a start costs, against a plain spawn and against bubblewrap. `bench mcp`: what the
//! server costs, `bench files`: its files and searches; see there.
//!
//! Contenders are measured in turn inside one run, because machines drift: only ratios from the
//! same minutes mean anything. Measured as root and as an ordinary user, in release builds, from a
//! staged copy; `bench-here` is the part that runs there.

mod contenders;
mod files;
mod mcp;
mod measure;
mod ours;
mod stats;

use crate::identity::{Identity, Who};
use crate::packages;
use crate::shell::{About, Result, SYSTEM_PATH, cargo, find_program, is_root, repo, run as run_command};
use crate::turn;
use measure::{Pace, latency, throughput};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub const USAGE: &str =
    "bench launch|mcp|files [--rounds N]   starts of /bin/true, or what `stockade serve` does, beside others";

/// Starts of each contender in the tight loop; after idle a tenth of it.
const ROUNDS: usize = 1000;

/// Long enough for the kernel to have let go of what a tight loop keeps warm (RCU, caches).
const IDLE: Duration = Duration::from_millis(60);

/// Clients at once, and for how long.
const CLIENTS: usize = 8;
const BURST: Duration = Duration::from_secs(3);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Launch,
    Mcp,
    Files,
}

impl Subject {
    fn named(word: &str) -> Result<Subject> {
        match word {
            "launch" => Ok(Subject::Launch),
            "mcp" => Ok(Subject::Mcp),
            "files" => Ok(Subject::Files),
            _ => Err(format!("usage: {USAGE}")),
        }
    }
}

/// Builds, stages, and measures as each identity we can be.
pub fn run(words: &[String]) -> Result {
    let (what, rounds) = match words {
        [what] => (what, ROUNDS),
        [what, flag, number] if flag == "--rounds" => (what, number.parse().about("`--rounds` wants a number")?),
        _ => return Err(format!("usage: {USAGE}")),
    };
    let subject = Subject::named(what)?;
    packages::ensure()?;
    if subject == Subject::Files && find_program("rg").is_none() {
        // Nothing else needs it, so it is not among the packages of the tests.
        packages::install(&["ripgrep"]).unwrap_or_else(|reason| println!("ripgrep is not installed: {reason}"));
    }
    let build = ["build", "--release", "--workspace", "--bins"];
    run_command(cargo().args(build))?;
    let commander = match subject {
        Subject::Launch | Subject::Files => None,
        Subject::Mcp => mcp::commander::fetch().map_err(|reason| println!("no Desktop Commander: {reason}")).ok(),
    };
    let _turn = turn::take()?;
    let stage = Stage::make(commander)?;
    files::write_policies(&stage.dir)?;
    let mut identities = Vec::new();
    if is_root() {
        identities.push(Identity::root());
    } else {
        println!("not measured as root: this is not root");
    }
    identities.push(Identity::user()?);
    for identity in &identities {
        println!("\n## as {}", identity.who);
        let mut command = identity.command(&stage.environment(identity)?, &stage.dir.join("xtask"));
        command.args(["bench-here", what, &rounds.to_string()]);
        run_command(command.current_dir(stage.workspace(identity.who)))?;
    }
    files::forget_state();
    Ok(())
}

/// The measuring itself, as whoever we are now, in a directory that may be written.
pub fn run_here(words: &[String]) -> Result {
    let [what, rounds] = words else {
        return Err("bench-here is not for people".into());
    };
    let rounds: usize = rounds.parse().about("rounds")?;
    match Subject::named(what)? {
        Subject::Launch => launch_here(rounds),
        Subject::Mcp => mcp::run_here(rounds),
        Subject::Files => files::run_here(),
    }
}

fn launch_here(rounds: usize) -> Result {
    let workspace = std::env::current_dir().about("the workspace")?;
    let contenders = contenders::all(&workspace);
    println!("\nlatency, {rounds} starts each, one after the other");
    latency(&contenders, rounds, Pace::Tight)?.print();
    let slow = (rounds / 10).max(10);
    println!("\nlatency after {} ms of idle, {slow} starts each", IDLE.as_millis());
    latency(&contenders, slow, Pace::After(IDLE))?.print();
    println!("\n{CLIENTS} clients at once, starts per second");
    throughput(&contenders, CLIENTS, BURST)?.print();
    Ok(())
}

/// The release programs and a workspace for each identity, removed when dropped.
struct Stage {
    dir: PathBuf,
    commander: Option<PathBuf>,
}

impl Stage {
    fn make(commander: Option<PathBuf>) -> Result<Stage> {
        // A policy below a directory that anybody may write is not trusted, so not in `/var/tmp`.
        let stages = if is_root() { PathBuf::from("/var/cache") } else { repo().join("target") };
        let dir = stages.join(format!("stockade-bench-{}", std::process::id()));
        fs::create_dir_all(&dir).about(dir.display())?;
        let stage = Stage { dir, commander };
        mcp::write_policies(&stage.dir)?;
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or(repo().join("target"), Into::into);
        for program in ["xtask", "stockade"] {
            let from = target.join("release").join(program);
            fs::copy(&from, stage.dir.join(program)).about(from.display())?;
        }
        Ok(stage)
    }

    fn workspace(&self, who: Who) -> PathBuf {
        self.dir.join(format!("workspace-{who}"))
    }

    fn environment(&self, identity: &Identity) -> Result<Vec<(String, OsString)>> {
        let workspace = self.workspace(identity.who);
        identity.make_directory(&workspace)?;
        // Not the workspace: stockade refuses a home directory as one.
        let home = self.dir.join(format!("home-{}", identity.who));
        identity.make_directory(&home)?;
        let mut environment = vec![
            ("PATH".into(), SYSTEM_PATH.into()),
            ("HOME".into(), home.into()),
            ("STOCKADE_BIN".into(), self.dir.join("stockade").into()),
        ];
        let commander = self.commander.as_ref().map(|program| (mcp::COMMANDER.into(), program.into()));
        environment.extend(commander);
        environment.extend(files::tree().map(|tree| (files::TREE.to_owned(), tree.into())));
        Ok(environment)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
        // Root's brokers keep their state in one place; everyone else's is in their home.
        if is_root() {
            let _ = fs::remove_dir_all(Path::new("/var/lib/stockade").join(mcp::AGENT));
        }
    }
}
