//! `cargo xtask bench files`: searches against `rg`, reads against `cat`, and what a call costs, through the protocol.
//!
//! Each figure is measured in turns with its measure; medians. The target stands next to the figure.

mod client;

use crate::shell::{About, Result, find_program};
use client::Client;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Where the large tree is told to `bench-here`.
pub const TREE: &str = "STOCKADE_BENCH_TREE";

/// The name under which the broker keeps what it measures.
const AGENT: &str = "bench-files";

/// An ordinary user may not be able to read the tree, and a root that cannot be read is refused.
const WITH_TREE: &str = "files.toml";
const WITHOUT: &str = "files-without-tree.toml";

/// Turns of each search; everything else is measured more often, because it is shorter.
const TURNS: usize = 5;
const CALLS: usize = 1000;

/// Rare and common words, a regex, one without regard to case.
const PATTERNS: [(&str, &str); 4] = [
    ("a rare word", "unsafe impl Send for"),
    ("a regex", r"fn \w+_unchecked\("),
    ("nowhere", "zqxjkvbwpy"),
    ("any case", "(?i)todo:"),
];

/// The large tree: the sources of every crate that was ever fetched here.
pub fn tree() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")))?;
    Some(home.join("registry/src")).filter(|path| path.is_dir())
}

/// Writes the policies that [`run_here`] looks for beside the workspaces.
pub fn write_policies(stage: &Path) -> Result {
    let root = tree().map(|tree| format!("{:?}", tree.display().to_string())).unwrap_or_default();
    for (name, roots) in [(WITH_TREE, root.as_str()), (WITHOUT, "")] {
        let text = format!("extends = \"default\"\nagent = \"{AGENT}\"\n[filesystem]\nread_only_roots = [{roots}]\n");
        fs::write(stage.join(name), text).about(name)?;
    }
    Ok(())
}

/// Removes what root's broker kept; an ordinary user's lies in the stage.
pub fn forget_state() {
    let _ = fs::remove_dir_all(Path::new("/var/lib/stockade").join(AGENT));
}

/// Measures everything, as whoever we are now, in a directory that may be written.
pub fn run_here() -> Result {
    let workspace = std::env::current_dir().about("the workspace")?;
    let tree = std::env::var_os(TREE).map(PathBuf::from).filter(|tree| fs::read_dir(tree).is_ok());
    let policy = if tree.is_some() { WITH_TREE } else { WITHOUT };
    let mut client = Client::connect(&workspace.with_file_name(policy), &workspace)?;
    match (&tree, find_program("rg")) {
        (Some(tree), Some(_)) => searches(&mut client, tree)?,
        (None, _) => println!("searches are left out: there is no tree of crates that we can read"),
        (_, None) => println!("searches are left out: there is no rg"),
    }
    first_page(&mut client, &workspace)?;
    calls(&mut client, &workspace)?;
    reads(&mut client, &workspace)
}

fn searches(client: &mut Client, tree: &Path) -> Result {
    for (name, pattern) in PATTERNS {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let rg = || {
            let mut rg = Command::new("rg");
            rg.args(["--column", "--no-heading", "--smart-case", "-e", pattern]).arg(tree);
            rg
        };
        let found = rg().output().about("rg")?.stdout;
        let expected = found.iter().filter(|byte| **byte == b'\n').count() as u64;
        let mut matches = 0;
        for _ in 0..TURNS {
            ours.push(timed(|| {
                matches = search(client, tree, pattern)?;
                Ok(())
            })?);
            // One that misses something would be a fast one.
            if matches != expected {
                return Err(format!("{name}: {matches} matches, but rg has {expected}"));
            }
            // It ends with 1 where nothing is found.
            theirs.push(timed(|| rg().stdout(Stdio::null()).status().map(drop).about("rg"))?);
        }
        let what = format!("search to the last of {matches} matches, {name}");
        ratio(&what, median(&mut ours), "rg", median(&mut theirs), 1.15);
    }
    Ok(())
}

/// All pages of one search; how many matches it had.
fn search(client: &mut Client, tree: &Path, pattern: &str) -> Result<u64> {
    let tree = tree.display().to_string();
    let mut page = client.call("search_start", &json!({ "pattern": pattern, "path": tree, "limit": 1000 }))?;
    while page["more"] == true {
        let more = json!({ "search_id": page["search_id"], "limit": 1000, "wait_ms": 10_000 });
        page = client.call("search_more", &more)?;
    }
    match page["state"].as_str() {
        Some("done") => Ok(page["total"].as_u64().unwrap_or(0)),
        _ => Err(format!("the search ended as {}", page["state"])),
    }
}

fn first_page(client: &mut Client, workspace: &Path) -> Result {
    for directory in 0..100 {
        let directory = workspace.join(format!("many/{directory}"));
        fs::create_dir_all(&directory).about(directory.display())?;
        for file in 0..1000 {
            fs::write(directory.join(file.to_string()), "a needle\n").about("a file")?;
        }
    }
    let mut times = Vec::new();
    for _ in 0..TURNS {
        let start = Instant::now();
        let page = client.call("search_start", &json!({ "pattern": "needle", "path": "many" }))?;
        times.push(start.elapsed());
        client.call("search_stop", &json!({ "search_id": page["search_id"] }))?;
    }
    absolute("first page of a search over 100,000 files", median(&mut times), Duration::from_millis(50));
    Ok(())
}

fn calls(client: &mut Client, workspace: &Path) -> Result {
    fs::write(workspace.join("small"), "one\ntwo\nthree\n").about("a file")?;
    let mut each = |tool: &str, arguments: &dyn Fn(usize) -> Value| -> Result<Duration> {
        let calls = (0..CALLS).map(|number| timed(|| client.call(tool, &arguments(number)).map(drop)));
        Ok(median(&mut calls.collect::<Result<Vec<_>>>()?))
    };
    let stat = each("fs_stat", &|_| json!({ "path": "small" }))?;
    absolute("fs_stat", stat, Duration::from_micros(150));
    let edit = each("fs_edit", &|number| {
        let (old, new) = if number % 2 == 0 { ("two", "2") } else { ("2", "two") };
        json!({ "path": "small", "edits": [{ "old_text": old, "new_text": new }] })
    })?;
    println!("{:64} {:>9.3} ms", "fs_edit, with its backup", edit.as_secs_f64() * 1e3);
    Ok(())
}

fn reads(client: &mut Client, workspace: &Path) -> Result {
    let large = "0123456789abcde\n".repeat(1 << 16);
    fs::write(workspace.join("large"), large).about("a file")?;
    let names: Vec<String> = (0..1000).map(|number| format!("small-{number}")).collect();
    for name in &names {
        fs::write(workspace.join(name), "a line of some length\n".repeat(30)).about("a file")?;
    }
    let cases = [
        ("fs_read of 1 MB", json!({ "path": "large", "max_bytes": 1 << 20 }), vec!["large".to_owned()], None),
        ("fs_read of 1000 small files", json!({ "paths": names, "max_bytes": 1000 }), names.clone(), Some(2.0)),
    ];
    for (what, arguments, paths, target) in cases {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..TURNS * 5 {
            ours.push(timed(|| whole(&client.call("fs_read", &arguments)?))?);
            let mut cat = Command::new("cat");
            cat.args(&paths).current_dir(workspace);
            theirs.push(timed(|| cat.output().map(drop).about("cat"))?);
        }
        ratio(what, median(&mut ours), "cat", median(&mut theirs), target.unwrap_or(f64::INFINITY));
    }
    Ok(())
}

/// A reply that left something out would be a fast one.
fn whole(read: &Value) -> Result {
    let cut = read["files"].as_array().into_iter().flatten().find(|file| file["truncated"] != false);
    cut.map_or(Ok(()), |file| Err(format!("{} was cut", file["path"])))
}

fn timed(work: impl FnOnce() -> Result) -> Result<Duration> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed())
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "MISSED" }
}

fn absolute(what: &str, figure: Duration, target: Duration) {
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let met = verdict(figure <= target);
    println!("{what:64} {:>9.3} ms   target {:.3} ms: {met}", millis(figure), millis(target));
}

fn ratio(what: &str, ours: Duration, other: &str, theirs: Duration, target: f64) {
    let (mine, measure) = (ours.as_secs_f64() * 1e3, theirs.as_secs_f64() * 1e3);
    let ratio = mine / measure;
    let target =
        if target.is_finite() { format!("   target {target:.2}: {}", verdict(ratio <= target)) } else { String::new() };
    println!("{what:64} {mine:>9.3} ms   {other} {measure:>9.3} ms   ratio {ratio:.2}{target}");
}
