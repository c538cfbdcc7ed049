//! `cargo xtask bench mcp`: `stockade serve` through its protocol, beside what it is compared with.
//!
//! Each figure is measured in turns with its measure, in the same minutes; medians, unless it says otherwise. Times
//! that have no ratio depend on the machine: read them beside the plain spawn of the same table.

mod bulk;
mod client;
pub mod commander;
mod figure;
mod spawns;
mod talk;

use super::IDLE;
use super::measure::Pace;
use crate::shell::{About, Result};
use client::Program;
use figure::{Figure, Figures};
use std::fs;
use std::path::{Path, PathBuf};

/// The name under which the broker keeps what it measures.
pub const AGENT: &str = "bench";

/// Where the path of Desktop Commander's program is told to `bench-here`.
pub const COMMANDER: &str = "STOCKADE_BENCH_COMMANDER";

/// Measures everything, as whoever we are now, in a directory that may be written.
pub fn run_here(rounds: usize) -> Result {
    let stockade = std::env::var_os("STOCKADE_BIN").ok_or("STOCKADE_BIN is not set")?;
    let workspace = std::env::current_dir().about("the workspace")?;
    let stage = workspace.parent().ok_or("the workspace lies nowhere")?;
    let server = |surface| Program::stockade(&stockade, &stage.join(format!("{surface}.toml")), &workspace);
    let [verbs, families] = &SURFACES.map(server);
    let mut figures = Figures::default();
    let mut add = |what: &str, measured: Result<Vec<Figure>>| match measured {
        Ok(more) => figures.0.extend(more),
        Err(reason) => println!("{what} is left out: {reason}"),
    };
    let one = |figure: Result<Figure>| figure.map(|figure| vec![figure]);
    add("one client", one(spawns::one_client(verbs, rounds, Pace::Tight, "one after the other")));
    let after = format!("after {} ms of idle", IDLE.as_millis());
    add("one client after idle", one(spawns::one_client(verbs, (rounds / 10).max(10), Pace::After(IDLE), &after)));
    add("eight at once", spawns::many(verbs));
    add("Desktop Commander", one(beside_commander(verbs, (rounds / 50).max(5))));
    add("the REPL", one(talk::repl(verbs, rounds)));
    add("the flood", bulk::flood(verbs));
    add("memory at rest", bulk::quiet(verbs));
    add("the first reply", one(bulk::first_reply(verbs, (rounds / 20).max(10))));
    add("reads in time", one(talk::overshoot(verbs)));
    add("the tools, verbs", one(bulk::tools(verbs, "verbs", 14_000.0)));
    add("the tools, families", one(bulk::tools(families, "families", 8_000.0)));
    println!("\n{figures}");
    Ok(())
}

fn beside_commander(stockade: &Program, rounds: usize) -> Result<Figure> {
    let script = std::env::var_os(COMMANDER).map(PathBuf::from).ok_or("it was not fetched")?;
    spawns::commander(&commander::program(&script)?, stockade, rounds)
}

/// The policies of the two surfaces, which differ in nothing else. They lie beside the workspaces.
const SURFACES: [&str; 2] = ["verbs", "families"];

/// Writes what [`run_here`] will look for.
pub fn write_policies(stage: &Path) -> Result {
    for surface in SURFACES {
        let path = stage.join(format!("{surface}.toml"));
        let text = format!(
            "extends = \"default\"\nagent = \"{AGENT}\"\n\n[processes]\nper_session = 64\ntotal = 64\n\n\
             [tools]\nsurface = \"{surface}\"\n"
        );
        fs::write(&path, text).about(path.display())?;
    }
    Ok(())
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_unstable_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or_default()
}
