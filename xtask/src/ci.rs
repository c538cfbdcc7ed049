//! `cargo xtask ci`: what must hold before a change lands, cheapest first, with the tests last.
//!
//! `.ci/run` calls `ci --without-tests` and then the README's own test command, so that the
//! command a person types is the one CI proves.

use crate::shell::{About, Result, cargo, repo, run};
use crate::{test, tidy};
use std::fs;
use std::process::Command;

pub const USAGE: &str = "ci [--without-tests]   formatting, lints, tidy, shipped policies, tests";

pub fn run_all(words: &[String]) -> Result {
    let with_tests = match words {
        [] => true,
        [word] if word == "--without-tests" => false,
        _ => return Err(format!("usage: {USAGE}")),
    };
    step("formatting");
    run(cargo().args(["fmt", "--all", "--check"]))?;
    step("tidy");
    tidy::run(&[])?;
    step("lints");
    let clippy = ["clippy", "--workspace", "--all-targets", "--quiet"];
    run(cargo().args(clippy).args(["--", "-D", "warnings"]))?;
    step("shipped policies");
    check_policies()?;
    if with_tests {
        step("tests");
        test::run(&[])?;
    }
    Ok(())
}

/// Every policy we ship must be one that `stockade` takes.
fn check_policies() -> Result {
    let Ok(entries) = fs::read_dir(repo().join("policies")) else {
        println!("no policies/ here");
        return Ok(());
    };
    run(cargo().args(["build", "--quiet", "--bin", "stockade"]))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(repo().join("target"), Into::into);
    let stockade = target.join("debug/stockade");
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "toml"));
    paths.sort();
    // Not the checkout: a policy inside its own workspace is refused, as it should be.
    let workspace = std::env::temp_dir().join(format!("stockade-ci-{}", std::process::id()));
    fs::create_dir_all(&workspace).about(workspace.display())?;
    let check = |path| run(Command::new(&stockade).args(["policy", "check", "--workspace"]).arg(&workspace).arg(path));
    let checked = paths.iter().try_for_each(check);
    let _ = fs::remove_dir(&workspace);
    checked
}

fn step(name: &str) {
    println!("\n-- {name}");
}
