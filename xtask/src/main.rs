//! `cargo xtask VERB`: everything done to this repository that is more than one cargo command.
//!
//! One file or folder per verb; the verbs share how tests are staged, who runs them, and how they are counted.

mod bench;
mod ci;
mod clients;
mod identity;
mod kernels;
mod leftovers;
mod packages;
mod round;
mod shell;
mod stage;
mod stress;
mod suite;
mod test;
mod tidy;
mod turn;

use shell::Result;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(words: &[String]) -> Result {
    let (verb, rest) = words.split_first().ok_or_else(usage)?;
    match verb.as_str() {
        "test" => test::run(rest),
        "stress" => stress::run(rest),
        "ci" => ci::run_all(rest),
        "tidy" => tidy::run(rest),
        "kernels" => kernels::run(rest),
        "bench" => bench::run(rest),
        "bench-here" => bench::run_here(rest),
        "guest" => kernels::guest::run(rest),
        _ => Err(usage()),
    }
}

fn usage() -> String {
    ["usage: cargo xtask VERB", test::USAGE, stress::USAGE, ci::USAGE, tidy::USAGE, kernels::USAGE, bench::USAGE]
        .join("\n  ")
}
