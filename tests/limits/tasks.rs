//! Processes and threads: bombs run into the bound, and nothing of them outlives the command.

use crate::ends::{
    SOON, eventually, groups_of, json, marker, nothing_is_left, printed, probe, processes_with, wait_for,
};
use crate::support::Yard;
use std::process::Stdio;
use std::time::Duration;

/// The limit that the tests set.
const PROCESSES: u64 = 40;

fn yard() -> Yard {
    Yard::new().flag("--processes").flag(PROCESSES.to_string())
}

#[test]
fn forks_and_threads_beyond_the_limit_are_refused_with_eagain() {
    let yard = yard();
    for bomb in ["fork", "fork-setsid", "threads"] {
        let marker = marker();
        let outcome = probe(&yard, &[bomb, &marker]);
        assert_eq!(outcome.code, libc::EAGAIN, "{bomb}: {outcome:?}");
        let reached = printed(&outcome.stdout, "count");
        // The command itself is one; a daemonising fork needs two at once.
        assert!((PROCESSES - 2..PROCESSES).contains(&reached), "{bomb} reached {reached} of {PROCESSES}");
        eventually("the bomb is gone", SOON, || processes_with(&marker).is_empty());
    }
}

#[test]
fn a_higher_limit_lets_more_in() {
    let (yard, marker) = (Yard::new().flag("--processes").flag("80"), marker());
    let outcome = probe(&yard, &["fork", &marker]);
    assert_eq!(outcome.code, libc::EAGAIN);
    assert_eq!(printed(&outcome.stdout, "count"), 79);
}

#[test]
fn fork_bombs_are_gone_two_seconds_after_their_timeout() {
    let yard = yard().flag("--timeout").flag("1s");
    let probe = yard.probe_path();
    let bombs = [
        "bomb() { bomb | bomb & }; bomb; exec -a MARKER sleep 1000",
        "f() { setsid bash -c 'trap \"\" TERM INT HUP; for i in 1 2 3; do setsid -f bash \"$0\" MARKER & done; wait' & }; \
         f; exec -a MARKER sleep 1000",
        "while :; do (setsid PROBE deaf MARKER &) ; done 2>/dev/null",
        "PROBE threads MARKER; exec PROBE deaf MARKER",
    ];
    for bomb in bombs {
        let marker = marker();
        let script = bomb.replace("MARKER", &marker).replace("PROBE", &probe);
        let mut command = yard.command();
        command.arg("--").args(["/bin/bash", "-c", &script, &marker]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("stockade starts");
        let broker = child.id();
        eventually("the bomb is seen", Duration::from_secs(10), || !processes_with(&marker).is_empty());
        let status = wait_for(&mut child, Duration::from_secs(1 + 10));
        assert_eq!(status.code(), Some(124), "{bomb}");
        nothing_is_left(&yard, broker, &marker);
    }
}

#[test]
fn orphans_are_reaped_so_they_do_not_fill_the_cell() {
    // Each leaves an orphan that dies at once: unreaped, forty of them would be the limit.
    assert_eq!(yard().probe(&["zombies", "400"]), 0);
    let marker = marker();
    assert_eq!(yard().probe(&["fork", &marker]), libc::EAGAIN, "control: the limit is there");
}

#[test]
fn no_cgroup_is_left_after_a_hundred_runs() {
    let yard = Yard::new().flag("--memory").flag("64M");
    let mut brokers = Vec::new();
    for run in 0..100 {
        // Every tenth ends while the kernel is out of memory.
        let words: &[&str] = if run % 10 == 0 { &["allocate", "640"] } else { &["allocate", "1"] };
        let mut child = yard
            .command()
            .arg("--")
            .arg(yard.probe_path())
            .args(words)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("stockade starts");
        brokers.push(child.id());
        let status = wait_for(&mut child, Duration::from_secs(20));
        assert_eq!(status.code(), Some(if run % 10 == 0 { 137 } else { 0 }), "run {run}");
    }
    let left: Vec<_> = brokers.into_iter().flat_map(groups_of).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_running_cell_has_cgroups_that_end_with_it() {
    let (yard, marker) = (Yard::new(), marker());
    let mut command = yard.command();
    command.args(["--timeout", "2s", "--"]).arg(yard.probe_path()).args(["deaf", &marker]).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::null()).spawn().expect("stockade starts");
    let broker = child.id();
    eventually("the command runs", Duration::from_secs(10), || !processes_with(&marker).is_empty());
    assert!(!groups_of(broker).is_empty(), "control: groups are found while it runs");
    assert_eq!(wait_for(&mut child, Duration::from_secs(10)).code(), Some(124));
    nothing_is_left(&yard, broker, &marker);
}

#[test]
fn usage_counts_what_daemons_used_too() {
    // It works, says so, and is still alive when the command ends: nobody ever waits for it.
    let daemon = "for ((i = 0; i < 200000; i++)); do :; done; touch worked; sleep 1000";
    let script = format!("setsid bash -c '{daemon}' & until [ -e worked ]; do sleep 0.02; done");
    let (code, with) = json(&Yard::new(), &["/bin/bash", "-c", &script]);
    assert_eq!(code, 0, "{with}");
    let (_, without) = json(&Yard::new(), &["/bin/bash", "-c", "sleep 0.02"]);
    let used = |result: &serde_json::Value| result["usage"]["cpu_ms"].as_u64().expect("a number");
    assert!(used(&with) > used(&without) + 50, "{with} {without}");
}

#[test]
fn figures_are_read_before_their_group_goes() {
    // What is left charged to a group makes the launcher remove it at once.
    let yard = Yard::new().flag("--memory").flag("64M");
    let path = yard.probe_path();
    for run in 0..40 {
        let (code, result) = json(&yard, &[&path, "shared-memory", "640"]);
        assert_eq!((code, result["reason"].as_str()), (137, Some("memory")), "run {run}: {result}");
        assert!(result["usage"]["max_rss_kb"].as_u64().expect("a number") > 1000, "run {run}: {result}");
    }
}
