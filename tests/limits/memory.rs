//! Memory: the whole cell has one bound, and running into it ends the whole process group.

use crate::ends::{SOON, eventually, json, marker, printed, probe, processes_with};
use crate::support::Yard;

/// A cell of 64 MiB. The timeout is for a missing wall: what should have been killed would wait for ever.
fn small() -> Yard {
    Yard::new().flag("--memory").flag("64M").flag("--timeout").flag("20s")
}

/// What a cell of 64 MiB cannot hold, whichever way it is asked for. `false`: it may.
const ATTEMPTS: &[(&[&str], bool)] = &[
    (&["allocate", "16"], false),
    (&["allocate", "640"], true),
    (&["allocate-in", "20", "1"], false),
    (&["allocate-in", "20", "32"], true),
    (&["memory-file", "16"], false),
    (&["memory-file", "640"], true),
    (&["shared-memory", "16"], false),
    (&["shared-memory", "640"], true),
    (&["fill", "/dev/shm/file", "16"], false),
];

#[test]
fn memory_beyond_the_limit_is_reported_as_memory_and_ends_with_137() {
    let yard = small();
    let probe = yard.probe_path();
    for (attempt, too_much) in ATTEMPTS {
        let argv: Vec<&str> = [probe.as_str()].into_iter().chain(attempt.iter().copied()).collect();
        let (code, result) = json(&yard, &argv);
        let expected = if *too_much { (137, "memory") } else { (0, "exit") };
        assert_eq!((code, result["reason"].as_str().expect("a reason")), expected, "{attempt:?}: {result}");
    }
}

#[test]
fn out_of_memory_ends_siblings_in_other_sessions_too() {
    let yard = small();
    let (marker, probe) = (marker(), yard.probe_path());
    // The hog is not the command: it alone would die without the limit on the whole group. On cgroup v1 the kernel
    // kills it first and the launcher the rest, so the command gets a moment; it does not get ten seconds.
    let script = format!(
        "setsid {probe} deaf {marker} & setsid {probe} deaf {marker} & {probe} allocate 640; sleep 10; echo survived; wait"
    );
    let (code, result) = json(&yard, &["/bin/bash", "-c", &script]);
    assert_eq!((code, result["reason"].as_str()), (137, Some("memory")), "{result}");
    assert!(!result["stdout"].as_str().expect("text").contains("survived"), "{result}");
    eventually("the siblings are dead", SOON, || processes_with(&marker).is_empty());

    let script = format!("setsid {probe} deaf {marker} & {probe} allocate 16; echo survived");
    let (code, result) = json(&yard, &["/bin/bash", "-c", &script]);
    assert_eq!((code, result["reason"].as_str()), (0, Some("exit")), "control: {result}");
    assert!(result["stdout"].as_str().expect("text").contains("survived"), "control: {result}");
}

#[test]
fn without_json_a_word_on_stderr_says_that_memory_ran_out() {
    let yard = small();
    let outcome = probe(&yard, &["allocate", "640"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (137, ""));
    assert_eq!(outcome.stderr, "stockade: the memory limit was reached; everything was killed\n");
    let outcome = probe(&yard, &["allocate", "16"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "control");
}

#[test]
fn full_pipes_are_counted_as_the_cells_memory() {
    let small = Yard::with("[limits]\nmemory = \"64M\"\nopen_files = 16384");
    let path = small.probe_path();
    let (code, result) = json(&small, &[&path, "pipes"]);
    // The kernel also holds back buffers of pipes beyond a share of its own: then descriptors end first.
    let by_count = code == libc::EMFILE && printed(result["stdout"].as_str().expect("text"), "count") > 8000;
    assert!(by_count || (code, result["reason"].as_str()) == (137, Some("memory")), "{code} {result}");
    let few = Yard::with("[limits]\nmemory = \"64M\"\nopen_files = 64");
    assert_eq!(few.probe(&["pipes"]), libc::EMFILE, "control: few pipes fit");
}

#[test]
fn memory_beyond_the_small_lockable_part_cannot_be_locked() {
    let yard = Yard::new();
    assert_eq!(yard.probe(&["locked", "1"]), 0);
    assert_eq!(yard.probe(&["locked", "64"]), libc::ENOMEM);
    assert_eq!(yard.probe(&["raise-limit", &libc::RLIMIT_MEMLOCK.to_string()]), libc::EPERM);
}

#[test]
fn when_the_host_runs_out_of_memory_a_cell_goes_before_the_broker() {
    let score = |text: &str| text.trim().parse::<i32>().expect("a number");
    let yard = Yard::new();
    let inside = score(&yard.run(&["cat", "/proc/self/oom_score_adj"]).stdout);
    let own = score(&std::fs::read_to_string("/proc/self/oom_score_adj").expect("a score"));
    assert!(inside >= own + 500 || inside == 1000, "inside {inside}, outside {own}");
    assert_eq!(yard.probe(&["write", "/proc/self/oom_score_adj"]), libc::EROFS, "and cannot change it");
    assert_eq!(yard.probe_outside(&["write", "/proc/self/oom_score_adj"]), 0, "control");
}
