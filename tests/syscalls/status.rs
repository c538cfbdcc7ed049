//! What the kernel says about every thread and about PID 1: filtered, without a capability, without a way to get one (AB).

use crate::support::{Yard, is_root};
use std::process::Command;

const SEALED: [(&str, &str); 7] = [
    ("NoNewPrivs", "1"),
    ("Seccomp", "2"),
    ("CapInh", "0000000000000000"),
    ("CapPrm", "0000000000000000"),
    ("CapEff", "0000000000000000"),
    ("CapBnd", "0000000000000000"),
    ("CapAmb", "0000000000000000"),
];

fn values<'a>(status: &'a str, key: &str) -> Vec<&'a str> {
    let value = |line: &'a str| line.strip_prefix(key)?.strip_prefix(':').map(str::trim);
    status.lines().filter_map(value).collect()
}

#[test]
fn every_thread_is_sealed() {
    let yard = Yard::new();
    let inside = yard.run(&[&yard.probe_path(), "threads"]);
    assert_eq!(inside.code, 0, "{inside:?}");
    let outside = Command::new(yard.probe_path()).arg("threads").output().expect("the probe");
    let outside = String::from_utf8_lossy(&outside.stdout);
    for (key, value) in SEALED {
        assert_eq!(values(&inside.stdout, key), [value; 5], "{key}");
    }
    // The control: outside, what can differ does.
    for (key, value) in [("NoNewPrivs", "1"), ("Seccomp", "2"), ("CapBnd", SEALED[5].1)] {
        assert_ne!(values(&outside, key), [value; 5], "{key} outside");
    }
    assert!(!is_root() || values(&outside, "CapEff") != [SEALED[4].1; 5], "root has no capability");
}

#[test]
fn pid_1_is_sealed_like_the_command() {
    let outcome = Yard::new().run(&["/bin/cat", "/proc/1/status"]);
    for (key, value) in SEALED {
        assert_eq!(values(&outcome.stdout, key), [value], "{key}: {outcome:?}");
    }
}

#[test]
fn a_debugger_s_policy_seals_no_less() {
    let yard = Yard::with("[syscalls]\nallow = [\"debug\", \"profile\", \"io_uring\"]");
    let outcome = yard.run(&["/bin/cat", "/proc/self/status"]);
    for (key, value) in SEALED {
        assert_eq!(values(&outcome.stdout, key), [value], "{key}: {outcome:?}");
    }
}
