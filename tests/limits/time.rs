//! Wall time and idle time: kept outside the cell, so that nothing inside can stretch them.

use crate::ends::{eventually, json, marker, nothing_is_left, processes_with, wait_for};
use crate::support::Yard;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Commands that would go on for ever, each in its own way.
const STUBBORN: &[(&str, &str)] = &[
    ("it only waits", "exec -a MARKER sleep 1000"),
    ("it ignores every signal that can be ignored", "exec PROBE deaf MARKER"),
    ("it has stopped itself", "PROBE deaf MARKER & exec PROBE stop-everyone"),
    (
        "it moved to another session and closed its output",
        "setsid nohup PROBE deaf MARKER >/dev/null 2>&1 & exec -a MARKER sleep 1000",
    ),
    ("its pipe to a stopped reader is full", "yes MARKER | PROBE stop-everyone"),
    (
        "its child was made by vfork and holds it",
        "python3 -c 'import subprocess; subprocess.call([\"PROBE\", \"deaf\", \"MARKER\"])'",
    ),
];

#[test]
fn nothing_outlives_its_time() {
    let yard = Yard::new().flag("--timeout").flag("1s");
    for (what, script) in STUBBORN {
        let marker = marker();
        let script = script.replace("MARKER", &marker).replace("PROBE", &yard.probe_path());
        let start = Instant::now();
        let mut command = yard.command();
        command.arg("--").args(["/bin/bash", "-c", &script]).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("stockade starts");
        let broker = child.id();
        eventually(what, Duration::from_secs(10), || !processes_with(&marker).is_empty());
        let status = wait_for(&mut child, Duration::from_secs(20));
        let took = start.elapsed();
        assert_eq!(status.code(), Some(124), "{what}");
        assert!((Duration::from_secs(1)..Duration::from_secs(5)).contains(&took), "{what}: {took:?}");
        nothing_is_left(&yard, broker, &marker);
    }
}

#[test]
fn a_timeout_says_so() {
    let (code, result) = json(&Yard::new().flag("--timeout").flag("300ms"), &["sleep", "1000"]);
    assert_eq!((code, result["reason"].as_str()), (124, Some("timeout")), "{result}");
    assert_eq!(result["signal"].as_str(), Some("SIGTERM"), "it was asked first: {result}");
    let outcome = Yard::new().flag("--timeout").flag("300ms").run(&["sleep", "1000"]);
    assert_eq!(outcome.stderr, "stockade: the time limit was reached; everything was killed\n");
    let (code, result) = json(&Yard::new().flag("--timeout").flag("20s"), &["sleep", "0.4"]);
    assert_eq!((code, result["reason"].as_str()), (0, Some("exit")), "control: {result}");
}

#[test]
fn a_command_may_clean_up_when_its_time_is_over() {
    let yard = Yard::new().flag("--timeout").flag("300ms");
    let (code, result) = json(&yard, &["/bin/bash", "-c", "trap 'echo cleaned; exit 7' TERM; sleep 1000 & wait"]);
    assert_eq!((code, result["reason"].as_str()), (124, Some("timeout")), "{result}");
    assert_eq!(result["stdout"].as_str(), Some("cleaned\n"), "{result}");
    assert_eq!(result["exit_code"].as_i64(), Some(7), "{result}");
}

#[test]
fn daemons_die_with_the_command_that_started_them() {
    let yard = Yard::new();
    let marker = marker();
    let probe = yard.probe_path();
    let script = format!("(setsid nohup {probe} deaf {marker} >/dev/null 2>&1 </dev/null &) ; exit 5");
    let mut child = yard.command().arg("--").args(["/bin/bash", "-c", &script]).spawn().expect("stockade starts");
    let broker = child.id();
    assert_eq!(wait_for(&mut child, Duration::from_secs(10)).code(), Some(5));
    nothing_is_left(&yard, broker, &marker);
}

#[test]
fn an_idle_command_is_ended_and_a_talking_one_is_not() {
    let yard = Yard::with("[limits]\nidle_time = \"800ms\"");
    let (code, result) = json(&yard, &["/bin/bash", "-c", "echo one; sleep 1000"]);
    assert_eq!((code, result["reason"].as_str()), (124, Some("idle_timeout")), "{result}");
    assert_eq!(result["stdout"].as_str(), Some("one\n"));
    let talking = "for i in $(seq 10); do echo $i; sleep 0.2; done";
    let (code, result) = json(&yard, &["/bin/bash", "-c", talking]);
    assert_eq!((code, result["reason"].as_str()), (0, Some("exit")), "control: {result}");
    let outcome = yard.run(&["sleep", "1000"]);
    assert_eq!(outcome.stderr, "stockade: idle for too long; everything was killed\n");
}

/// Stops one process of a running cell, chosen from the broker's and the command's PID, and expects a timeout.
fn stretched_by_stopping(victim: impl Fn(u32, u32) -> u32) {
    let (yard, marker) = (Yard::new().flag("--timeout").flag("1s"), marker());
    let mut command = yard.command();
    command.arg("--").arg(yard.probe_path()).args(["deaf", &marker]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("stockade starts");
    let broker = child.id();
    eventually("the command runs", Duration::from_secs(10), || !processes_with(&marker).is_empty());
    let victim = victim(broker, processes_with(&marker)[0]);
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(victim as i32), nix::sys::signal::Signal::SIGSTOP)
        .expect("it is there");
    // The broker gives a launcher that does not answer a few seconds to take the cell apart.
    assert_eq!(wait_for(&mut child, Duration::from_secs(10)).code(), Some(124));
    nothing_is_left(&yard, broker, &marker);
}

#[test]
fn a_stopped_launcher_does_not_stretch_the_deadline() {
    stretched_by_stopping(|broker, _| {
        let children = crate::ends::children_of(broker);
        assert_eq!(children.len(), 1, "the launcher is the broker's only child");
        children[0]
    });
}

#[test]
fn a_stopped_pid_1_does_not_stretch_the_deadline() {
    stretched_by_stopping(|_, command| {
        let status = std::fs::read_to_string(format!("/proc/{command}/status")).expect("it runs");
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).expect("a parent");
        parent.trim().parse().expect("a number")
    });
}

#[test]
fn an_end_that_races_its_deadline_is_told_once_and_truly() {
    let yard = Yard::new().flag("--timeout").flag("60ms");
    let mut seen = [0, 0];
    for run in 0..40 {
        let (code, result) = json(&yard, &["/bin/bash", "-c", &format!("sleep 0.0{}", 45 + run % 30)]);
        let (reason, exit_code) = (result["reason"].as_str().expect("a reason"), result["exit_code"].as_i64());
        match reason {
            "exit" => assert_eq!((code, exit_code), (0, Some(0)), "{result}"),
            "timeout" => assert_eq!(code, 124, "{result}"),
            other => panic!("{other}: {result}"),
        }
        seen[usize::from(reason == "timeout")] += 1;
    }
    assert!(seen[0] + seen[1] == 40 && seen[1] > 0, "{seen:?}");
}
