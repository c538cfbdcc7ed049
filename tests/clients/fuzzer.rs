//! `mcp-fuzzer` with a fixed seed: no crash, no answer out of line, nothing that never came.
//!
//! Two of its findings are none here: a command line with `; rm -rf /` in it is a command line, and what it may remove
//! is the walls' business; and an error repeats to its caller what the caller wrote.

use crate::site::Site;
use crate::support::Outcome;
use crate::{clients, serve};
use serde_json::Value;
use std::process::Command;

const HARMLESS: [&str; 2] = ["accepted_malformed", "injection_reflection"];

/// Fuzzes the site's server; the fuzzer's own summary, or `None` where there is no fuzzer.
fn fuzz(site: &Site, words: &[&str]) -> Option<Value> {
    let mut command = Command::new(clients()?.join("python/bin/python"));
    let endpoint = serve(site, &mut command).join(" ");
    let reports = site.beside.directory("reports");
    command.args(["-m", "mcp_fuzzer", "--protocol", "stdio", "--endpoint", &endpoint, "--seed", "7", "--no-corpus"]);
    // It also sends what is no JSON (`NaN`), is told so without an id, and waits for one in vain.
    command.args(["--timeout", "4", "--fail-if-no-tools", "--output-dir"]).arg(&reports);
    command.args(words).env("HOME", site.beside.path()).env("PYTHONDONTWRITEBYTECODE", "1");
    let outcome = Outcome::of(command.current_dir(site.workspace.path()));
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let text = std::fs::read_to_string(reports.join("run_summary.json")).expect("a summary");
    let summary: Value = serde_json::from_str(&text).expect("JSON");
    let findings = std::fs::read_to_string(reports.join("findings.json")).unwrap_or_default();
    for (category, count) in summary["findings"]["by_category"].as_object().expect("findings") {
        assert!(HARMLESS.contains(&category.as_str()), "{category}: {count}: {findings:.4000}");
    }
    Some(summary)
}

#[test]
fn fuzzed_tools_neither_crash_nor_hang() {
    for surface in ["verbs", "families"] {
        let site = Site::with(&format!(
            "[tools]\nsurface = \"{surface}\"\n[limits]\nmax_wall_time = \"5s\"\nwall_time = \"2s\""
        ));
        let words = ["--mode", "tools", "--phase", "both", "--runs", "3", "--max-concurrency", "4"];
        let Some(summary) = fuzz(&site, &words) else { return };
        let tools = summary["tools"]["by_name"].as_object().expect("tools");
        assert!(tools.len() >= 4 && summary["status"] == "completed", "{summary}");
        for (name, tool) in tools {
            for bad in ["crashed", "anomaly", "exceptions"] {
                assert_eq!(tool["outcomes"][bad], 0, "{surface}: {name}: {tool}");
            }
            assert!(tool["total_runs"].as_u64() >= Some(6), "{name}: {tool}");
        }
    }
}

#[test]
fn a_fuzzed_protocol_neither_crashes_nor_hangs() {
    for phase in ["realistic", "aggressive"] {
        let site = Site::new();
        let words = ["--mode", "protocol", "--protocol-phase", phase, "--runs-per-type", "3"];
        let Some(summary) = fuzz(&site, &words) else { return };
        assert!(summary["protocols"]["total_runs"].as_u64() >= Some(30), "{phase}: {summary}");
    }
}
