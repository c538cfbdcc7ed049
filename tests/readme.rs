//! The README keeps its word: its commands run, its lists are complete, what it names exists.

mod support;

use std::path::PathBuf;
use std::process::Command;
use support::{Scratch, stockade};

fn repository() -> PathBuf {
    std::env::var_os("STOCKADE_REPO").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from)
}

fn readme() -> String {
    std::fs::read_to_string(repository().join("README.md")).expect("a README")
}

/// The lines of every `sh` block.
fn commands() -> Vec<String> {
    let text = readme();
    let blocks = text.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.flat_map(str::lines).map(|line| line.split(" #").next().unwrap_or(line).trim().to_owned()).collect()
}

#[test]
fn the_main_command_runs_inside_a_cell() {
    let main = commands().into_iter().find(|line| line.starts_with("cargo run")).expect("the main command");
    let words = main.strip_prefix("cargo run --release -- ").expect("it runs the release build");
    let line = format!("'{}' {words}", stockade().display());
    let home = Scratch::new();
    let output = Command::new("bash")
        .args(["-c", &line])
        .env("TMPDIR", home.path())
        .current_dir(home.path())
        .output()
        .expect("bash");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(out.contains("(agent)"), "it shows who it is: {out} {err}");
    assert!(err.contains("/etc/shadow: No such file or directory"), "and what it cannot see: {out} {err}");
    assert_eq!(output.status.code(), Some(1), "the exit code is the command's: {err}");
}

#[test]
fn the_test_command_is_what_ci_calls() {
    assert!(commands().iter().any(|line| line == "cargo xtask test"));
    let ci = std::fs::read_to_string(repository().join(".ci/run")).expect(".ci/run");
    assert!(ci.lines().any(|line| line.trim() == "cargo xtask test"), "{ci}");
}

#[test]
fn every_command_of_ours_is_known_to_the_program() {
    let ours: Vec<String> = commands().into_iter().filter(|line| line.starts_with("stockade ")).collect();
    assert!(ours.len() >= 5, "the README shows how to use it: {ours:?}");
    for line in ours {
        let words: Vec<&str> = line.split_whitespace().skip(1).take_while(|word| *word != "--").collect();
        let verb: Vec<&str> = words.iter().copied().take_while(|word| !word.starts_with('-')).collect();
        let output = Command::new(stockade()).args(&verb).arg("--help").output().expect("stockade");
        let help = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "`{line}`: {help}");
        for flag in words.iter().filter(|word| word.starts_with("--")) {
            assert!(help.contains(flag), "`{line}`: no `{flag}` in its help");
        }
    }
}

#[test]
fn every_shipped_policy_is_in_the_table_and_nothing_else() {
    let text = readme();
    let rows = text.split("| policy | for |").nth(1).and_then(|rest| rest.split("\n\n").next()).expect("the table");
    let mut told: Vec<&str> = rows.lines().filter_map(|row| row.split('`').nth(1)).collect();
    let files = std::fs::read_dir(repository().join("policies")).expect("policies");
    let names =
        files.map(|file| file.expect("a file").path().file_stem().expect("a name").to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    told.sort_unstable();
    assert_eq!(told, names);
    let listed = Command::new(stockade()).args(["policy", "list"]).output().expect("stockade");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(names.iter().all(|name| listed.contains(name.as_str())), "{listed}");
}

#[test]
fn what_the_readme_names_in_the_repository_exists() {
    let text = readme();
    let paths =
        text.split('`').filter(|word| ["src/", "tests/", "policies/"].iter().any(|start| word.starts_with(start)));
    let paths: Vec<&str> = paths.filter(|path| !path.contains(char::is_whitespace)).collect();
    assert!(!paths.is_empty());
    for path in paths {
        assert!(repository().join(path).exists(), "`{path}` is named but not there");
    }
}
