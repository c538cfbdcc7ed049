//! `cargo xtask test`: everything the tests need, then all of them as root and as an ordinary user.
//!
//! Builds once, stages the result where any user can read it, and runs it twice. What could not
//! run is said, and in CI that is a failure. Afterwards nothing may be left, neither by the
//! tests nor by this file.

use crate::clients;
use crate::identity::{Identity, Who};
use crate::packages;
use crate::round::Round;
use crate::shell::{About, Result, in_ci, is_root, repo, run_quietly};
use crate::stage::{self, Built, Stage};
use crate::suite::{BINARY_LIMIT_SECONDS, Tally};
use crate::turn;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

pub const USAGE: &str = "test [--as root|user|both] [FILTER…]   all tests, as root and as an ordinary user";

/// Neither `/tmp` nor `/var/tmp`: a cell has its own, and roots below them would not meet both file walls.
fn stages() -> PathBuf {
    if is_root() { "/var/cache".into() } else { repo().join("target") }
}

const STAGE_PREFIX: &str = "stockade-test-";

/// The test binary that only `cargo xtask stress` runs.
pub const STRESS: &str = "stress";

/// Which tests to run, and how.
pub struct Plan {
    pub usage: &'static str,
    /// Whether a test binary of this name is one of them.
    pub chooses: fn(&str) -> bool,
    /// How long one binary may take.
    pub limit_seconds: u32,
    /// More variables for the tests.
    pub env: Vec<(String, OsString)>,
}

pub fn run(words: &[String]) -> Result {
    let chooses = |name: &str| name != STRESS;
    carry_out(words, &Plan { usage: USAGE, chooses, limit_seconds: BINARY_LIMIT_SECONDS, env: Vec::new() })
}

/// Builds, stages, and runs the plan's tests as each identity that was asked for.
pub fn carry_out(words: &[String], plan: &Plan) -> Result {
    let (wanted, filters) = parse(words, plan.usage)?;
    packages::ensure()?;
    let (built, clients) = thread::scope(|scope| {
        let fetched = scope.spawn(clients::ensure);
        (stage::build(), fetched.join())
    });
    let (built, clients) = (built?, clients.map_err(|_| "fetching the clients panicked")??);
    let _turn = turn::take()?;
    clear_stale()?;
    let place = Place::make(&built, plan, clients.as_deref())?;
    let mut total = Tally::default();
    let mut lines = Vec::new();
    for who in wanted {
        let tally = match identify(who) {
            Ok(identity) => place.round(&identity, plan, &filters)?,
            Err(reason) => {
                lines.push(format!("{who}: not run: {reason}"));
                total.failed += u32::from(in_ci());
                continue;
            }
        };
        lines.push(format!("{who}: {tally}"));
        total += tally;
    }
    if let Err(reason) = place.remove() {
        lines.push(reason);
        total.failed += 1;
    }
    println!("\n{}\n{total}", lines.join("\n"));
    match total {
        Tally { failed: 1.., .. } => Err("some tests failed".into()),
        Tally { passed: 0, .. } => Err("no test ran".into()),
        _ => Ok(()),
    }
}

fn parse(words: &[String], usage: &str) -> Result<(Vec<Who>, Vec<String>)> {
    let mut wanted = vec![Who::Root, Who::User];
    let mut filters = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--as" => {
                wanted = match words.next().map(String::as_str) {
                    Some("root") => vec![Who::Root],
                    Some("user") => vec![Who::User],
                    Some("both") => vec![Who::Root, Who::User],
                    _ => return Err(format!("`--as` wants root, user or both\nusage: {usage}")),
                }
            }
            flag if flag.starts_with('-') => {
                return Err(format!("unknown flag `{flag}`\nusage: {usage}"));
            }
            filter => filters.push(filter.to_owned()),
        }
    }
    Ok((wanted, filters))
}

fn identify(who: Who) -> Result<Identity> {
    match who {
        Who::User => Identity::user(),
        Who::Root if is_root() || packages::can_sudo() => Ok(Identity::root()),
        Who::Root => Err("this is not root, and `sudo -n` does not give it".into()),
    }
}

/// Removes the stage of a run that was killed; the lock says that none is alive.
fn clear_stale() -> Result {
    for entry in fs::read_dir(stages()).about("stages")?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(STAGE_PREFIX) {
            let stage = Stage { dir: entry.path() };
            Place { stage, toolchain: None, clients: None }.clear();
        }
    }
    Ok(())
}

/// Directories of the machine that are shown in a stage by mounting them there.
const MOUNTED: [&str; 2] = ["toolchain", "clients"];

/// The stage on disk, and where what is mounted in it can be found.
struct Place {
    stage: Stage,
    toolchain: Option<PathBuf>,
    clients: Option<PathBuf>,
}

impl Place {
    fn make(built: &Built, plan: &Plan, clients: Option<&Path>) -> Result<Place> {
        let dir = stages().join(format!("{STAGE_PREFIX}{}", std::process::id()));
        let stage = Stage::fill(&dir, built, |binary| (plan.chooses)(&binary.name))?;
        let toolchain = stage::toolchain().and_then(|source| show(&source, &dir.join(MOUNTED[0])));
        let clients = clients.and_then(|source| show(source, &dir.join(MOUNTED[1])));
        Ok(Place { stage, toolchain, clients })
    }

    fn round(&self, identity: &Identity, plan: &Plan, filters: &[String]) -> Result<Tally> {
        let toolchain = self.toolchain.as_deref();
        let mut env = plan.env.clone();
        env.extend(self.clients.iter().map(|path| (clients::VARIABLE.to_owned(), path.into())));
        let round = Round { stage: &self.stage, filters, limit_seconds: plan.limit_seconds, toolchain, env };
        let mut tally = round.run(identity)?;
        let left = identity.remove_delegation();
        if !left.is_empty() {
            println!("\nleft behind, as {}: busy cgroups: {left:?}", identity.who);
            tally.failed += 1;
        }
        Ok(tally)
    }

    fn remove(self) -> Result {
        self.clear();
        if self.stage.dir.exists() {
            return Err(format!("left behind: {}", self.stage.dir.display()));
        }
        Ok(())
    }

    fn clear(&self) {
        let dir = self.stage.dir.clone();
        for mounted in MOUNTED.map(|name| dir.join(name)).iter().filter(|path| is_mount(path)) {
            let _ = run_quietly(Command::new("umount").arg(mounted));
            if is_mount(mounted) {
                // Removing now would go through the mount.
                return;
            }
        }
        if fs::remove_dir_all(&dir).is_err() && !is_root() {
            // The root half ran through sudo and left directories that only root can remove.
            let _ = run_quietly(Command::new("sudo").args(["-n", "rm", "-rf"]).arg(&dir));
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.clear();
    }
}

/// What may lie where an ordinary user cannot look is mounted into the stage; where it can then be found.
fn show(source: &Path, target: &Path) -> Option<PathBuf> {
    if !is_root() {
        return Some(source.to_path_buf());
    }
    fs::create_dir(target).ok()?;
    let bind = ["--bind", "-o", "ro"];
    run_quietly(Command::new("mount").args(bind).args([source, target])).ok()?;
    Some(target.to_path_buf())
}

fn is_mount(path: &Path) -> bool {
    run_quietly(Command::new("mountpoint").arg("-q").arg(path)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::parse;
    use crate::identity::Who;

    #[test]
    fn identities_and_filters_are_told_apart() {
        let words = ["--as", "user", "network", "files"].map(str::to_owned);
        let (wanted, filters) = parse(&words, "").expect("a good command line");
        assert_eq!(wanted, [Who::User]);
        assert_eq!(filters, ["network", "files"]);
        assert!(parse(&["--as".to_owned()], "").is_err());
        assert!(parse(&["--all".to_owned()], "").is_err());
    }
}
