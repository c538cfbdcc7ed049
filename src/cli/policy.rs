//! `stockade policy`: hold a file to its promises, show what is in force, start a new one.
//!
//! Nothing here runs a command; whether a promise holds is asked of a [`Judge`]. What a file
//! means is decided in [`crate::policy`].

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use clap::Subcommand;

use crate::policy::expect::Judge;
use crate::policy::{self, Claim, Operator, Overrides, Policy, shipped};

/// The file is well formed and keeps its promises.
pub const HELD: u8 = 0;
/// The file is at fault, or breaks a promise of its own.
pub const BROKEN: u8 = 1;

#[derive(Debug, Clone, Subcommand)]
pub enum PolicyCommand {
    /// Hold a policy to its own [[expect]]
    Check {
        /// A path, or the name of a shipped policy
        #[arg(value_name = "FILE|NAME")]
        policy: String,
        /// Try each promise inside a real cell
        #[arg(long)]
        live: bool,
        /// What `{workspace}` stands for [default: the current directory]
        #[arg(long, value_name = "DIR")]
        workspace: Option<PathBuf>,
    },
    /// Print the policy in force: parents folded in, paths replaced, defaults filled
    Show {
        /// A path, or the name of a shipped policy
        #[arg(value_name = "FILE|NAME", default_value = "default")]
        policy: String,
        /// What `{workspace}` stands for [default: the current directory]
        #[arg(long, value_name = "DIR")]
        workspace: Option<PathBuf>,
    },
    /// Print the JSON Schema of policy files
    Schema,
    /// Name the shipped policies
    List,
    /// Write a commented policy to start from; never overwrites
    Init {
        /// The shipped policy it extends
        #[arg(long, value_name = "NAME", default_value = "default")]
        from: String,
        /// Where to write it [default: ~/.config/stockade/agent.toml]
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
}

/// Who is asked whether a promise holds: the policy on paper, or a real cell.
#[expect(missing_debug_implementations, reason = "a judge may hold a cell, which has nothing to print")]
#[derive(Clone, Copy)]
pub struct Judges<'a> {
    pub paper: &'a dyn Judge,
    pub live: &'a dyn Judge,
}

/// Carries out one `stockade policy` command; the number is the exit code.
pub fn run(command: &PolicyCommand, judges: Judges<'_>, out: &mut impl Write, err: &mut impl Write) -> io::Result<u8> {
    match command {
        PolicyCommand::Check { policy, live, workspace } => {
            let judge = if *live { judges.live } else { judges.paper };
            check(policy, workspace.as_deref(), judge, out, err)
        }
        PolicyCommand::Show { policy, workspace } => show(policy, workspace.as_deref(), out, err),
        PolicyCommand::Schema => schema(out),
        PolicyCommand::List => list(out),
        PolicyCommand::Init { from, file } => init(from, file.as_deref(), out, err),
    }
}

fn check(
    selector: &str,
    workspace: Option<&Path>,
    judge: &dyn Judge,
    out: &mut impl Write,
    err: &mut impl Write,
) -> io::Result<u8> {
    let policy = match Policy::load(Some(selector), workspace, &Overrides::default()) {
        Ok(policy) => policy,
        Err(error) => return refuse(err, &error),
    };
    let (mut held, mut broken) = (0, 0);
    for expectation in &policy.expectations {
        for claim in &expectation.claims {
            match fault(&policy, claim, judge) {
                None => held += 1,
                Some(fault) => {
                    broken += 1;
                    writeln!(out, "broken: {fault}")?;
                    if !expectation.why.is_empty() {
                        writeln!(out, "   why: {}", expectation.why)?;
                    }
                }
            }
        }
    }
    if broken == 0 {
        writeln!(out, "`{}` is well formed and keeps its promises ({held})", policy.name)?;
        return Ok(HELD);
    }
    writeln!(out, "`{}` breaks {broken} of {} promises", policy.name, held + broken)?;
    Ok(BROKEN)
}

fn fault(policy: &Policy, claim: &Claim, judge: &dyn Judge) -> Option<String> {
    let Claim { verdict: promised, attempt } = claim;
    match judge.judge(policy, attempt) {
        Ok(found) if found == *promised => None,
        Ok(found) => Some(format!("`{attempt}` is {found}, promised {promised}")),
        Err(reason) => Some(format!("`{attempt}` cannot be judged: {reason}")),
    }
}

fn show(selector: &str, workspace: Option<&Path>, out: &mut impl Write, err: &mut impl Write) -> io::Result<u8> {
    match Policy::load(Some(selector), workspace, &Overrides::default()) {
        Ok(policy) => write!(out, "{}", policy.to_toml()).map(|()| HELD),
        Err(error) => refuse(err, &error),
    }
}

fn schema(out: &mut impl Write) -> io::Result<u8> {
    serde_json::to_writer_pretty(&mut *out, &policy::schema())?;
    writeln!(out)?;
    Ok(HELD)
}

fn list(out: &mut impl Write) -> io::Result<u8> {
    for name in shipped::names() {
        writeln!(out, "{name:<10} {}", shipped::summary(name).unwrap_or_default())?;
    }
    Ok(HELD)
}

const STARTER: &str = include_str!("starter.toml");

fn init(from: &str, file: Option<&Path>, out: &mut impl Write, err: &mut impl Write) -> io::Result<u8> {
    if shipped::text(from).is_none() {
        let names: Vec<&str> = shipped::names().collect();
        writeln!(
            err,
            "error: `--from {from}`: no shipped policy has this name\nhint: shipped are {}",
            names.join(", ")
        )?;
        return Ok(BROKEN);
    }
    let path = match file.map(Path::to_owned).or_else(usual_place) {
        Some(path) => path,
        None => {
            return refuse(err, &"this user has no home directory\nhint: name a file: `stockade policy init FILE`");
        }
    };
    if let Err(error) = write_new(&path, &STARTER.replace("@from@", from)) {
        let hint = match error.kind() {
            io::ErrorKind::AlreadyExists => "it is never overwritten; name another file, or edit this one",
            _ => "name a file in a directory that you can write",
        };
        return refuse(err, &format!("`{}`: {error}\nhint: {hint}", path.display()));
    }
    writeln!(out, "wrote {}", path.display())?;
    writeln!(out, "next: stockade policy check {} --workspace DIR", path.display())?;
    writeln!(out, "(keep the file outside the workspace: a policy the agent can rewrite is refused)")?;
    Ok(HELD)
}

fn usual_place() -> Option<PathBuf> {
    let home = Operator::current().ok()?.homes.into_iter().next()?;
    Some(home.join(".config/stockade/agent.toml"))
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

fn refuse(err: &mut impl Write, error: &dyn std::fmt::Display) -> io::Result<u8> {
    writeln!(err, "error: {error}")?;
    Ok(BROKEN)
}
