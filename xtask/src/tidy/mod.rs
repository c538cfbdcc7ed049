//! `cargo xtask tidy`: rules of this repository that no compiler lint checks.
//!
//! Imports point downward, third-party crates stay behind their fence, unsafe stays in `sys`,
//! every file opens with what it is. Each rule is a function from one file to findings; the
//! tables that say what is allowed stand in `imports.rs` and `fences.rs`.

mod fences;
mod imports;
mod source;
mod text;

use crate::shell::{About, Result, output, repo};
use source::Source;
use std::fmt;
use std::fs;
use std::process::Command;

pub const USAGE: &str = "tidy   imports, crate fences, module docs, unsafe, lengths";

/// Something a rule has to say about a line.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    path: String,
    line: usize,
    weight: Weight,
    message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weight {
    Error,
    Warning,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let weight = match self.weight {
            Weight::Error => "error",
            Weight::Warning => "warning",
        };
        let Finding { path, line, message, .. } = self;
        write!(f, "{path}:{line}: {weight}: {message}")
    }
}

pub fn run(words: &[String]) -> Result {
    if let Some(word) = words.first() {
        return Err(format!("`{word}` is not an option\nusage: {USAGE}"));
    }
    let mut findings = Vec::new();
    let mut files = 0;
    for path in tracked_files()? {
        // Not text, or a link to nowhere: nothing a rule could read.
        let Ok(text) = fs::read_to_string(repo().join(&path)) else {
            continue;
        };
        files += 1;
        findings.extend(check(&path, &text));
    }
    for finding in &findings {
        println!("{finding}");
    }
    let errors = findings.iter().filter(|finding| finding.weight == Weight::Error);
    match errors.count() {
        0 => {
            println!("tidy: {files} files");
            Ok(())
        }
        count => Err(format!("tidy: {count} findings in {files} files")),
    }
}

/// All rules on one file; the path decides which apply.
fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = text::machine_paths(path, text);
    let trees = ["src/", "tests/", "xtask/src/", "examples/"];
    if !path.ends_with(".rs") || !trees.iter().any(|tree| path.starts_with(tree)) {
        return findings;
    }
    let source = Source::read(path, text);
    findings.extend(text::opening(&source));
    findings.extend(text::length(&source));
    findings.extend(text::allow_attributes(&source));
    if !path.starts_with("tests/") && !path.starts_with("examples/") {
        findings.extend(text::unsafe_code(&source));
    }
    if path.starts_with("src/") {
        findings.extend(imports::check(&source));
        findings.extend(fences::check(&source));
    }
    findings
}

/// Files of the repository: known to git, or new and not ignored.
fn tracked_files() -> Result<Vec<String>> {
    let mut command = Command::new("git");
    command.args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    let list = output(command.current_dir(repo())).about("the list of files")?;
    let mut files: Vec<String> = list.lines().map(str::to_owned).collect();
    files.sort();
    files.dedup();
    Ok(files)
}
