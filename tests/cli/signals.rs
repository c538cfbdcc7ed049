//! Signals to `stockade` itself: passed on, and nothing left whatever the command makes of them.

use crate::ends::{eventually, marker, nothing_is_left, processes_with, wait_for};
use crate::support::Yard;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Starts a script that prints `ready`, and waits for that.
fn start(yard: &Yard, script: &str) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut command = yard.command();
    command.args(["--", "/bin/bash", "-c", script]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("stockade starts");
    let mut reader = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    reader.read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    (child, reader)
}

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id() as i32), signal).expect("stockade is there");
}

const SIGNALS: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

#[test]
fn signals_are_passed_on_to_the_command() {
    let yard = Yard::new();
    for signal in SIGNALS {
        let name = signal.as_str();
        let script = format!("trap 'echo heard; exit 42' {name}; echo ready; while :; do sleep 0.01; done");
        let (mut child, mut reader) = start(&yard, &script);
        send(&child, signal);
        assert_eq!(wait_for(&mut child, Duration::from_secs(10)).code(), Some(42), "{name}");
        let mut rest = String::new();
        reader.read_to_string(&mut rest).expect("text");
        assert_eq!(rest, "heard\n", "{name}");
    }
}

#[test]
fn a_command_that_does_not_catch_a_signal_ends_by_it() {
    let yard = Yard::new();
    for signal in SIGNALS {
        // Not the shell says that it is ready: it ignores some signals until it has become the program.
        let sleeper = "import time; print('ready', flush=True); time.sleep(1000)";
        let (mut child, _reader) = start(&yard, &format!("exec python3 -c \"{sleeper}\""));
        send(&child, signal);
        assert_eq!(wait_for(&mut child, Duration::from_secs(10)).code(), Some(128 + signal as i32), "{signal}");
    }
}

#[test]
fn a_deaf_command_is_killed_after_a_while_and_nothing_is_left() {
    let yard = Yard::new();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let marker = marker();
        let probe = yard.probe_path();
        let script = format!("setsid {probe} deaf {marker} >/dev/null & exec {probe} deaf {marker}");
        let (mut child, _reader) = start(&yard, &script);
        eventually("both run", Duration::from_secs(10), || processes_with(&marker).len() == 2);
        let broker = child.id();
        send(&child, signal);
        assert_eq!(wait_for(&mut child, Duration::from_secs(10)).code(), Some(137), "{signal}");
        nothing_is_left(&yard, broker, &marker);
    }
}

#[test]
fn asking_twice_kills_at_once() {
    let (yard, marker) = (Yard::new(), marker());
    let (mut child, _reader) = start(&yard, &format!("exec {} deaf {marker}", yard.probe_path()));
    let broker = child.id();
    send(&child, Signal::SIGINT);
    // Two of one kind may become one while the first is pending; two kinds never do.
    send(&child, Signal::SIGTERM);
    let start = Instant::now();
    assert_eq!(wait_for(&mut child, Duration::from_secs(10)).code(), Some(137));
    assert!(start.elapsed() < Duration::from_millis(1500), "sooner than the grace time: {:?}", start.elapsed());
    nothing_is_left(&yard, broker, &marker);
}

#[test]
fn the_terminals_ctrl_c_does_not_reach_the_launcher() {
    // A terminal signals the whole foreground group; the launcher must still be there to clean up.
    use std::os::unix::process::CommandExt;
    let (yard, marker) = (Yard::new(), marker());
    let mut command = yard.command();
    command.args(["--", &yard.probe_path(), "deaf", &marker]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.process_group(0).spawn().expect("stockade starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    let broker = child.id();
    kill(Pid::from_raw(-(broker as i32)), Signal::SIGINT).expect("the group is there");
    assert_eq!(wait_for(&mut child, Duration::from_secs(10)).code(), Some(137));
    nothing_is_left(&yard, broker, &marker);
}
