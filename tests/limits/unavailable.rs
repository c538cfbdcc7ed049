//! A host that cannot put up a wall: a refusal that names the remedy, or a warning where the policy says so.
//!
//! cgroups are hidden from `stockade` in a mount namespace of its own, where they lie under an empty tmpfs; system
//! calls are made to fail by `strace`.

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
    assert_eq!(lines.last(), Some(&other), "{outcome:?}");
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

/// What root can take away in a mount namespace on cgroup v1, and what is said about it.
const DAMAGE: &[(&str, &str)] = &[
    ("umount /sys/fs/cgroup/memory", "memory"),
    ("umount /sys/fs/cgroup/pids", "pids"),
    ("mount -o remount,bind,ro /sys/fs/cgroup/pids", "pids"),
    ("mount -o remount,bind,ro /sys/fs/cgroup/cpu", "cpu"),
];

#[test]
fn a_controller_that_is_missing_or_read_only_is_named() {
    if !is_root() || !std::path::Path::new("/sys/fs/cgroup/memory/tasks").exists() {
        eprintln!("only root can take a controller of cgroup v1 away; on v2 they go together, which another test does");
        return;
    }
    let yard = Yard::new();
    for (damage, name) in DAMAGE {
        let inside = yard.command();
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c"]).arg(format!("{damage} && exec \"$@\""));
        command.arg("sh").arg(inside.get_program()).args(inside.get_args()).args(["--", "/bin/echo", "ran"]);
        let outcome = Outcome::new(&command.current_dir(yard.workspace.path()).output().expect("unshare starts"));
        assert_eq!((outcome.code, outcome.stdout.as_str()), (125, ""), "{damage}: {outcome:?}");
        let error = outcome.stderr.lines().next().unwrap_or_default();
        assert!(error.starts_with("error: this host cannot enforce `cgroups`") && error.contains(name), "{error}");
    }
    assert_eq!(yard.run(&["/bin/echo", "ran"]).stdout, "ran\n", "control");
}

/// A call that fails everywhere, the exit code, and how the complaint begins.
const FAILING: &[(&str, i32, &str)] = &[
    (
        "landlock_create_ruleset:error=ENOSYS",
        125,
        "error: this host cannot enforce `landlock`, which the policy requires",
    ),
    ("landlock_restrict_self:error=ENOSYS", 125, "error: sealing files with Landlock: Function not implemented"),
    ("seccomp:error=EINVAL", 125, "error: this host cannot enforce `seccomp`, which the policy requires"),
    ("sethostname:error=EPERM", 125, "error: naming the cell"),
    ("pivot_root:error=EINVAL", 125, "error: leaving the old root"),
    ("capset:error=EPERM", 125, "error: dropping capabilities"),
    ("setrlimit,prlimit64:error=EPERM", 125, "error: setting rlimits"),
];

/// `stockade run` under `strace`, which makes calls fail.
fn run_failing(yard: &Yard, fault: &str) -> Outcome {
    let inside = yard.command();
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e"]).arg(format!("inject={fault}"));
    command.arg(inside.get_program()).args(inside.get_args()).args(["--", "/bin/echo", "ran"]);
    Outcome::new(&command.current_dir(yard.workspace.path()).output().expect("strace starts"))
}

#[test]
fn a_wall_that_fails_to_go_up_stops_the_command() {
    let yard = Yard::new();
    for (fault, code, complaint) in FAILING {
        let outcome = run_failing(&yard, fault);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (*code, ""), "{fault}: {outcome:?}");
        assert!(outcome.stderr.starts_with(complaint), "{fault}: {outcome:?}");
    }
    // A call that nothing here makes.
    assert_eq!(run_failing(&yard, "acct:error=EPERM").stdout, "ran\n", "control");
}

#[test]
fn without_landlock_or_seccomp_a_policy_that_allows_it_warns_and_goes_on() {
    for (wall, fault) in [("landlock", "landlock_create_ruleset:error=ENOSYS"), ("seccomp", "seccomp:error=EINVAL")] {
        let outcome = run_failing(&Yard::with(&format!("[enforcement]\n{wall} = \"if-available\"")), fault);
        let warning = format!(
            "warning: running without `{wall}`: this host cannot enforce it, and the policy allows going without\n"
        );
        assert_eq!((outcome.stdout.as_str(), outcome.stderr), ("ran\n", warning), "{wall}");
    }
}
