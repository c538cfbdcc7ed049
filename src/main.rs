//! stockade: a real Linux terminal for an untrusted agent.
//!
//! Three processes. This one becomes the broker; before it reads a word or starts a thread it forks the launcher,
//! which makes cells and the sealed processes in them. `launch` tells the whole story.

use std::process::ExitCode;
use stockade::sys::words;
use stockade::{cli, launch, worker};

fn main() -> ExitCode {
    let first = words::argument(1).map_or(&b""[..], |word| word.to_bytes());
    let rest = (2..).map_while(words::argument).map(|word| word.to_bytes());
    let launcher = if cli::needs_launcher(first, rest) { launch::start(worker::serve::serve).ok() } else { None };
    ExitCode::from(cli::main(launcher))
}
