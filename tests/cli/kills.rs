//! SIGKILL of `stockade` or of its launcher at any moment: no process, no cgroup, no mount is left two seconds later.
//!
//! `STOCKADE_TEST_KILLS` sets how often each is killed.

use crate::ends::{
    SOON, children_of, eventually, groups_of, is_alive, marker, nothing_is_left, processes_with, wait_for,
};
use crate::support::Yard;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// From the first instruction to a running command takes about half of this on a quiet machine.
const SPAN: Duration = Duration::from_millis(120);

fn count() -> u64 {
    std::env::var("STOCKADE_TEST_KILLS").map_or(20, |text| text.parse().expect("STOCKADE_TEST_KILLS is a number"))
}

/// Starts a command with a daemon beside it, both deaf.
fn start(yard: &Yard, marker: &str) -> Child {
    let probe = yard.probe_path();
    let script = format!("setsid {probe} deaf {marker} >/dev/null & exec {probe} deaf {marker}");
    let mut command = yard.command();
    command.args(["--", "/bin/bash", "-c", &script]).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("stockade starts")
}

/// Lets a random part of the span pass; the moment is the stimulus, nothing is waited for.
fn let_time_pass() {
    let random = RandomState::new().hash_one(Instant::now());
    std::thread::sleep(SPAN.mul_f64((random % 1000) as f64 / 1000.0));
}

#[test]
fn killing_stockade_at_a_random_moment_leaves_nothing() {
    let yard = Yard::new();
    for _ in 0..count() {
        let marker = marker();
        let mut child = start(&yard, &marker);
        let broker = child.id();
        let_time_pass();
        let launcher = children_of(broker);
        child.kill().expect("stockade is there");
        child.wait().expect("stockade is dead");
        // Looked at as soon as the launcher has ended: a little later the next start would have cleaned up.
        eventually("the launcher has ended", SOON, || !launcher.iter().any(|pid| is_alive(*pid)));
        assert_eq!(groups_of(broker), Vec::<PathBuf>::new(), "the launcher left cgroups");
        nothing_is_left(&yard, broker, &marker);
    }
    assert_eq!(yard.run(&["true"]).code, 0, "control: the next run works");
}

#[test]
fn killing_the_launcher_at_a_random_moment_ends_stockade_and_leaves_nothing() {
    let yard = Yard::new();
    let mut killed = 0;
    for _ in 0..count() * 4 {
        let marker = marker();
        let mut child = start(&yard, &marker);
        let broker = child.id();
        let_time_pass();
        let launcher = children_of(broker);
        for pid in &launcher {
            kill(Pid::from_raw(*pid as i32), Signal::SIGKILL).expect("the launcher is there");
        }
        if launcher.is_empty() {
            // Too early: there is none yet.
            child.kill().expect("stockade is there");
            child.wait().expect("stockade is dead");
        } else {
            let code = wait_for(&mut child, Duration::from_secs(10)).code();
            assert_eq!(groups_of(broker), Vec::<PathBuf>::new(), "stockade left cgroups");
            assert_eq!(code, Some(125), "stockade says that it failed");
            killed += 1;
        }
        nothing_is_left(&yard, broker, &marker);
        if killed == count() {
            break;
        }
    }
    assert_eq!(killed, count(), "the launcher was hardly ever there");
}

#[test]
fn killing_both_at_once_leaves_no_process_and_the_next_start_removes_the_cgroups() {
    let yard = Yard::new();
    for _ in 0..count().min(20) {
        let marker = marker();
        let mut child = start(&yard, &marker);
        let broker = child.id();
        let_time_pass();
        let launcher = children_of(broker);
        child.kill().expect("stockade is there");
        for pid in launcher {
            // It may have ended by itself: it saw the broker die.
            let _ = kill(Pid::from_raw(pid as i32), Signal::SIGKILL);
        }
        child.wait().expect("stockade is dead");
        eventually("no process is left", SOON, || processes_with(&marker).is_empty());
        assert_eq!(yard.run(&["true"]).code, 0, "the next start");
        nothing_is_left(&yard, broker, &marker);
    }
}

#[test]
fn the_launchers_death_alone_ends_the_command() {
    // A stopped broker can help nobody: what is left is the kernel's word to PID 1.
    let (yard, marker) = (Yard::new(), marker());
    let mut child = start(&yard, &marker);
    let broker = child.id();
    eventually("both run", Duration::from_secs(10), || processes_with(&marker).len() == 2);
    kill(Pid::from_raw(broker as i32), Signal::SIGSTOP).expect("stockade is there");
    for launcher in children_of(broker) {
        kill(Pid::from_raw(launcher as i32), Signal::SIGKILL).expect("the launcher is there");
    }
    eventually("the command is dead", SOON, || processes_with(&marker).is_empty());
    kill(Pid::from_raw(broker as i32), Signal::SIGCONT).expect("stockade is there");
    assert_eq!(wait_for(&mut child, Duration::from_secs(10)).code(), Some(125));
    nothing_is_left(&yard, broker, &marker);
}
