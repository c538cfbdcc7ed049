//! The operator's words: `ps`, `logs`, `attach`, `stop`, `metrics`. They look into running brokers through the control
//! sockets in the state directory, and at what dead ones left in it.

mod attach;
mod find;
mod logs;
mod metrics;
mod output;
mod ps;
mod stop;
mod table;
mod tmux;

pub use attach::attach;
pub use logs::logs;
pub use metrics::metrics;
pub use ps::ps;
pub use stop::stop;

use clap::{ArgGroup, Args, ValueEnum};
use std::path::PathBuf;

const CODES: &str = "Exit codes: 0 done, 1 no such process or broker, 125 trouble, 2 words it does not know.";

#[derive(Debug, Args)]
#[command(after_help = CODES)]
pub struct PsArgs {
    /// Machine-readable
    #[arg(long)]
    json: bool,
    /// Also what has ended, and what brokers that died have left
    #[arg(long, short)]
    all: bool,
}

#[derive(Debug, Args)]
#[command(after_help = CODES)]
pub struct LogsArgs {
    /// A proc_id, or its beginning
    #[arg(value_name = "PROC")]
    process: String,
    /// Go on until the process ends
    #[arg(long, short)]
    follow: bool,
    /// One stream only
    #[arg(long, value_enum)]
    stream: Option<StreamName>,
    /// The last lines only
    #[arg(long, short = 'n', value_name = "N")]
    tail: Option<u64>,
    /// Leave escape sequences in, also on a terminal, which obeys them
    #[arg(long)]
    raw: bool,
    /// Instead of the output, write the recording of a process started with `record` (asciicast) to a file, or `-`
    #[arg(long, value_name = "FILE|-", conflicts_with_all = ["follow", "stream", "tail", "raw"])]
    cast: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum StreamName {
    Stdout,
    Stderr,
}

#[derive(Debug, Args)]
#[command(after_help = "Ctrl-] leaves, and without --write `q` and Ctrl-C do too; the process goes on.\n\n\
    Exit codes: 0 left or ended, 1 no such running process, 125 trouble, 2 words it does not know.")]
pub struct AttachArgs {
    /// A proc_id, or its beginning
    #[arg(value_name = "PROC")]
    process: String,
    /// Pass keys on and let the process's terminal take the size of this one
    #[arg(long)]
    write: bool,
    /// In a tmux window of its own, or in a session if this is not tmux
    #[arg(long)]
    tmux: bool,
}

#[derive(Debug, Args)]
#[command(after_help = CODES)]
#[command(group = ArgGroup::new("which").required(true).args(["process", "agent", "broker", "all"]))]
pub struct StopArgs {
    /// A proc_id, or its beginning
    #[arg(value_name = "PROC")]
    process: Option<String>,
    /// Everything that runs in this agent's brokers
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Everything that runs in this broker, as `ps` names it
    #[arg(long, value_name = "ID")]
    broker: Option<String>,
    /// Everything that runs in every broker
    #[arg(long)]
    all: bool,
    /// What a process is asked with: INT TERM HUP KILL QUIT USR1 USR2
    #[arg(long, value_name = "SIGNAL", default_value = "TERM")]
    signal: String,
    /// How long it may take before it is killed, at most 60s
    #[arg(long, value_name = "TIME", default_value = "2s")]
    grace: String,
}

#[derive(Debug, Args)]
#[command(after_help = CODES)]
pub struct MetricsArgs {
    /// Of this agent's brokers only
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
}
