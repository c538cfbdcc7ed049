//! MCP clients that others wrote, as judges: the PyPI package in both eras, the inspector, a fuzzer; and conversations
//! with interpreters, a debugger and an editor through one of them.
//!
//! `cargo xtask test` fetches the clients; where that was not possible, the tests say that they were skipped.

#[path = "../support/ends.rs"]
#[expect(dead_code, reason = "each test file uses its own part of this")]
mod ends;
#[path = "../support/mcp.rs"]
#[expect(dead_code, reason = "each test file uses its own part of this")]
mod mcp;
#[path = "../support/schema.rs"]
mod schema;
#[path = "../support/server.rs"]
#[expect(dead_code, reason = "each test file uses its own part of this")]
mod server;
#[path = "../support/site.rs"]
#[expect(dead_code, reason = "each test file uses its own part of this")]
mod site;
#[path = "../support/mod.rs"]
mod support;

mod fuzzer;
mod inspector;

use site::Site;
use std::path::PathBuf;
use std::process::Command;

/// Where the clients lie; `None` after saying that there are none.
fn clients() -> Option<PathBuf> {
    let fetched = || support::repo().join("target/clients");
    let dir = std::env::var_os("STOCKADE_CLIENTS").map_or_else(fetched, PathBuf::from);
    if dir.join("fetched").is_file() {
        return Some(dir);
    }
    assert!(std::env::var_os("CI").is_none(), "no clients in {}", dir.display());
    println!("skipped: no clients in {}; `cargo xtask test` fetches them", dir.display());
    None
}

/// The words that start the site's server, and the variables with them.
fn serve(site: &Site, command: &mut Command) -> Vec<String> {
    let server = site.command();
    for (name, value) in server.get_envs() {
        command.env(name, value.expect("a value"));
    }
    let words = std::iter::once(server.get_program()).chain(server.get_args());
    words.map(|word| word.to_str().expect("text").to_owned()).collect()
}

/// Runs a script of this directory with the PyPI package; it must end well.
fn script(site: &Site, name: &str, argument: &str) {
    let Some(dir) = clients() else { return };
    let mut command = Command::new(dir.join("python/bin/python"));
    let words = serde_json::to_string(&serve(site, &mut command)).expect("JSON");
    command.arg(support::repo().join("tests/clients").join(name)).arg(argument);
    command.env("SERVE", words).env("PYTHONDONTWRITEBYTECODE", "1").current_dir(site.workspace.path());
    let outcome = support::Outcome::of(&mut command);
    assert_eq!(outcome.code, 0, "{name} {argument}:\n{}\n{}", outcome.stdout, outcome.stderr);
}

#[test]
fn the_python_package_works_in_the_handshake_era() {
    script(&Site::new(), "sdk.py", "legacy");
}

#[test]
fn the_python_package_works_in_the_modern_era() {
    script(&Site::new(), "sdk.py", "2026-07-28");
}

#[test]
fn the_python_package_finds_out_which_era_it_is() {
    script(&Site::new(), "sdk.py", "auto");
}

#[test]
fn python_answers_remembers_and_asks_back() {
    script(&Site::extending("repl", ""), "conversations.py", "python3");
}

#[test]
fn bash_has_jobs_and_a_prompt() {
    script(&Site::extending("repl", ""), "conversations.py", "bash");
}

#[test]
fn node_answers_and_remembers() {
    script(&Site::extending("repl", ""), "conversations.py", "node");
}

#[test]
fn sqlite_keeps_its_tables() {
    script(&Site::extending("repl", ""), "conversations.py", "sqlite3");
}

#[test]
fn gdb_stops_steps_and_looks_around() {
    script(&Site::extending("debugger", ""), "conversations.py", "gdb");
}

#[test]
fn vim_opens_edits_and_saves() {
    script(&Site::new(), "conversations.py", "vim");
}
