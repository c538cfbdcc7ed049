//! Words in, exit codes out; clap lives here.
//!
//! Arguments as written are these types; what they mean is a [`Policy`] and a request. Exit codes: the command's
//! own, 128+n for a signal, 124 for a time-out, 126 not executable, 127 not found, 125 when stockade itself refuses
//! or fails, 2 for words it does not know.

mod audit;
pub mod doctor;
mod explain;
mod operator;
pub mod policy;
mod run;
mod say;
mod setup;
mod streams;
mod terminal;
mod trial;

use crate::launch::Launcher;
use crate::policy::{Overrides, Policy};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// stockade itself refused or failed.
pub const REFUSED: u8 = 125;

#[derive(Debug, Parser)]
#[command(
    name = "stockade",
    version,
    about = "A real Linux terminal for an untrusted agent, inside walls the kernel keeps"
)]
#[command(max_term_width = 100, subcommand_required = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run one command inside a cell; its exit code is ours
    Run(RunArgs),
    /// The MCP server on standard input and output
    Serve(ServeArgs),
    /// An interactive shell inside a cell
    Shell(CellArgs),
    /// What this host can enforce, and how to mend what it cannot
    Doctor {
        /// Machine-readable
        #[arg(long)]
        json: bool,
    },
    /// Say in words what running a command would do; nothing is done
    Explain(ExplainArgs),
    /// Check, show, list and start policy files
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// Read an agent's audit log, and check that nobody changed it
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// What runs in this user's brokers
    Ps(operator::PsArgs),
    /// What a process wrote, running or ended
    Logs(operator::LogsArgs),
    /// Watch a process live, or type into it
    Attach(operator::AttachArgs),
    /// End processes
    Stop(operator::StopArgs),
    /// Counters of running brokers, as Prometheus reads them
    Metrics(operator::MetricsArgs),
    /// Give `stockade serve` to an agent's client: print the configuration, or write it
    Setup(setup::SetupArgs),
}

/// What shapes a cell.
#[derive(Debug, Clone, Args)]
struct CellArgs {
    /// A policy file, or the name of a shipped policy [default: default]
    #[arg(long, value_name = "FILE|NAME")]
    policy: Option<String>,
    /// What `{workspace}` stands for [default: the current directory]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// One more read-write root
    #[arg(long, value_name = "DIR")]
    rw: Vec<PathBuf>,
    /// One more read-only root
    #[arg(long, value_name = "DIR")]
    ro: Vec<PathBuf>,
    /// Memory for the whole cell, e.g. 512M
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// CPUs for the whole cell, e.g. 1.5
    #[arg(long, value_name = "N")]
    cpus: Option<String>,
    /// How many processes and threads
    #[arg(long, value_name = "N")]
    processes: Option<String>,
    /// Wall time, e.g. 10s
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
    /// none, host or proxy
    #[arg(long, value_name = "MODE")]
    network: Option<String>,
    /// A variable for the command
    #[arg(long, value_name = "K=V")]
    env: Vec<String>,
    /// Where the command starts [default: the workspace]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct RunArgs {
    #[command(flatten)]
    cell: CellArgs,
    /// Give the command a terminal [default: when stdin, stdout and stderr are one]
    #[arg(long)]
    tty: bool,
    /// Pipes even at a terminal
    #[arg(long, conflicts_with = "tty")]
    no_tty: bool,
    /// Print the result as JSON instead of passing output through
    #[arg(long, conflicts_with = "tty")]
    json: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
}

#[derive(Debug, Args)]
struct ServeArgs {
    /// A policy file, or the name of a shipped policy [default: default]
    #[arg(long, value_name = "FILE|NAME")]
    policy: Option<String>,
    /// What `{workspace}` stands for [default: the current directory]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// How the log on stderr looks; what is in it is set by `STOCKADE_LOG` (error, warn, info, debug)
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Args)]
struct ExplainArgs {
    #[command(flatten)]
    cell: CellArgs,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
}

impl CellArgs {
    fn load(&self) -> Result<Policy, crate::policy::Error> {
        let overrides = Overrides {
            rw: self.rw.clone(),
            ro: self.ro.clone(),
            memory: self.memory.clone(),
            cpus: self.cpus.clone(),
            processes: self.processes.clone(),
            timeout: self.timeout.clone(),
            network: self.network.clone(),
            env: self.env.clone(),
        };
        Policy::load(self.policy.as_deref(), self.workspace.as_deref(), &overrides)
    }
}

fn serve(args: &ServeArgs, launcher: Launcher) -> Result<u8, say::Complaint> {
    let policy = Policy::load(args.policy.as_deref(), args.workspace.as_deref(), &Overrides::default())?;
    crate::serve::log::start(match args.log_format {
        LogFormat::Text => crate::serve::log::Format::Text,
        LogFormat::Json => crate::serve::log::Format::Json,
    });
    crate::serve::serve(policy, launcher)?;
    Ok(0)
}

/// Whether this command line will make a cell. Asked before anything else is read, see `launch::start`.
pub fn needs_launcher(first: &[u8], rest: impl Iterator<Item = &'static [u8]>) -> bool {
    match first {
        b"run" | b"serve" | b"shell" | b"doctor" => true,
        b"policy" => rest.into_iter().any(|word| word == b"--live"),
        _ => false,
    }
}

/// Carries out the command line.
pub fn main(launcher: Option<Launcher>) -> u8 {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            drop(error.print());
            return if error.use_stderr() { 2 } else { 0 };
        }
    };
    let done = match (cli.command, launcher) {
        (Command::Run(args), Some(launcher)) => run::run(&args, launcher),
        (Command::Serve(args), Some(launcher)) => serve(&args, launcher),
        (Command::Shell(args), Some(launcher)) => run::shell(&args, launcher),
        (Command::Doctor { json }, Some(launcher)) => trial::doctor(json, launcher),
        (Command::Policy(command), launcher) => trial::policy(&command, launcher),
        (Command::Explain(args), _) => explain::explain(&args),
        (Command::Audit(command), _) => audit::audit(&command),
        (Command::Setup(args), _) => setup::setup(&args),
        (Command::Ps(args), _) => operator::ps(&args),
        (Command::Logs(args), _) => operator::logs(&args),
        (Command::Attach(args), _) => operator::attach(&args),
        (Command::Stop(args), _) => operator::stop(&args),
        (Command::Metrics(args), _) => operator::metrics(&args),
        (Command::Run(_) | Command::Serve(_) | Command::Shell(_) | Command::Doctor { .. }, None) => {
            Err(say::Complaint::new("the launcher could not be started"))
        }
    };
    done.unwrap_or_else(|complaint| {
        complaint.print();
        complaint.code()
    })
}
