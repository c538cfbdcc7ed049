//! A host without cgroups: a refusal that names the remedy, or rlimits and a warning where the policy says so.
//!
//! Root hides the hierarchies from `stockade` in a mount namespace of its own, where they lie under an empty tmpfs.

use crate::ends::{marker, printed};
use crate::support::{Outcome, Yard, is_root};
use std::process::Command;

const IF_AVAILABLE: &str = "[enforcement]\ncgroups = \"if-available\"\n[limits]\nprocesses = 40\nopen_files = 64";

/// Runs the probe in a cell of a `stockade` that sees no cgroup it may use.
fn without_groups(yard: &Yard, words: &[&str]) -> Outcome {
    let inside = yard.command();
    let hide = "mount -t tmpfs none /sys/fs/cgroup && exec \"$@\"";
    let mut command = Command::new("unshare");
    match is_root() {
        true => command.args(["--mount", "--propagation", "private"]),
        // Whoever may not mount becomes root of a user namespace for it, and takes the name back inside.
        false => command.args(["--user", "--map-current-user", "--keep-caps", "--mount", "--propagation", "private"]),
    };
    command.args(["sh", "-c", hide, "sh"]).arg(inside.get_program()).args(inside.get_args());
    command.arg("--").arg(yard.probe_path()).args(words).current_dir(yard.workspace.path());
    Outcome::new(&command.output().expect("unshare starts"))
}

#[test]
fn without_cgroups_a_policy_that_requires_them_is_refused_with_the_remedy() {
    let yard = Yard::new();
    let outcome = without_groups(&yard, &["read", "/etc/passwd"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (125, ""), "{outcome:?}");
    let lines: Vec<&str> = outcome.stderr.lines().collect();
    assert!(
        lines[0].starts_with("error: this host cannot enforce `cgroups`, which the policy requires: "),
        "{outcome:?}"
    );
    // A container is told how to start itself otherwise, a machine what to mount.
    assert!(lines[1].starts_with("hint: ") && lines[1].contains("cgroup"), "{outcome:?}");
    let other = "hint: or, to go on without this wall, say `cgroups = \"if-available\"` under `[enforcement]`";
    assert_eq!(lines[2..], [other], "{outcome:?}");
    assert_eq!(yard.probe(&["read", "/etc/passwd"]), 0, "control: with cgroups it runs");
}

#[test]
fn without_cgroups_a_policy_that_allows_it_warns_and_keeps_the_rlimits() {
    let yard = Yard::with(IF_AVAILABLE);
    let warning =
        "warning: running without `cgroups`: this host cannot enforce it, and the policy allows going without\n";
    let outcome = without_groups(&yard, &["open"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (libc::EMFILE, warning));
    assert_eq!(printed(&outcome.stdout, "count"), 61);
    let outcome = without_groups(&yard, &["fork", &marker()]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (libc::EAGAIN, warning));
    assert!(printed(&outcome.stdout, "count") < 200, "{outcome:?}");
    let with = yard.run(&[&yard.probe_path(), "open"]);
    assert_eq!((with.code, with.stderr.as_str()), (libc::EMFILE, ""), "control: with cgroups there is no warning");
}

#[test]
fn without_cgroups_the_json_result_says_what_was_not_enforced() {
    let yard = Yard::with(IF_AVAILABLE).flag("--json");
    let outcome = without_groups(&yard, &["read", "/etc/passwd"]);
    let result: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    assert_eq!(result["not_enforced"], serde_json::json!(["cgroups"]), "{result}");
    let (_, result) = crate::ends::json(&Yard::with(IF_AVAILABLE), &["/bin/true"]);
    assert_eq!(result.get("not_enforced"), None, "control");
}
