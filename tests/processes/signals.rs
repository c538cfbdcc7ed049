//! Signals stay inside, and whatever they do there, stockade lives to tell (SG).

use crate::controls::Outside::Works;
use crate::controls::check;
use crate::support::Yard;
use libc::ESRCH;
use std::process::{Child, Command, Stdio};

/// A process of the host, of the same user, in the same group as stockade.
struct Canary(Child);

impl Canary {
    fn new() -> Self {
        Canary(Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("a canary"))
    }

    fn assert_alive(&mut self) {
        assert_eq!(self.0.try_wait().expect("a child"), None, "the canary died");
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn a_host_process_cannot_be_named() {
    let canary = Canary::new();
    let pid = canary.0.id();
    // `siginfo` with `SI_QUEUE` and a forged sender; `sigevent` with `SIGEV_THREAD_ID` for a foreign thread.
    let info = "@128=0000000000000000ffffffff00000000010000000000000000000000";
    let event = format!("@64=00000000000000000a00000004000000{}", to_hex(pid));
    check(
        &Yard::new(),
        &[
            ("SG-01", &format!("call kill {pid} 0"), ESRCH, Works),
            ("SG-01 group", &format!("call kill -{} 0", nix::unistd::getpgrp()), ESRCH, Works),
            ("SG-04", &format!("call fcntl </dev/null 8 {pid}"), ESRCH, Works),
            ("SG-05 queue", &format!("call rt_sigqueueinfo {pid} 0 {info}"), ESRCH, Works),
            (
                "SG-05 timer",
                &format!("call timer_create 1 {event} @8"),
                libc::EINVAL,
                crate::controls::Outside::IfKnown,
            ),
        ],
    );
}

fn to_hex(number: u32) -> String {
    number.to_le_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_command_leads_a_group_and_a_session_of_its_own() {
    let yard = Yard::new();
    let outcome = yard.run(&[&yard.probe_path(), "ids"]);
    let ids: Vec<u32> = outcome.stdout.split_whitespace().map(|id| id.parse().expect("a number")).collect();
    assert!(ids.iter().all(|id| *id == ids[0] && *id > 1), "{outcome:?}");
}

#[test]
fn killing_everyone_kills_only_the_cell() {
    let (yard, mut canary) = (Yard::new(), Canary::new());
    let outcome = yard.run(&[&yard.probe_path(), "kill-all"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "ended 4\n"), "{outcome:?}");
    // From a shell, which goes with its own group.
    assert_eq!(yard.shell("kill -KILL 0; echo not reached").code, 128 + libc::SIGKILL);
    assert_eq!(yard.shell("sleep 1000 & kill -KILL -1; wait $!; exit $?").code, 128 + libc::SIGKILL);
    canary.assert_alive();
}

#[test]
fn pid_1_cannot_be_signalled_from_inside() {
    let yard = Yard::new();
    let line = "\"$0\" signals-to 1; echo $?; sleep 1000 & kill -KILL $!; wait $!; echo $?; exit 7";
    let outcome = yard.run(&["/bin/bash", "-c", line, &yard.probe_path()]);
    // The control is the second line: the same signal ends an ordinary process.
    assert_eq!((outcome.stdout.as_str(), outcome.code), ("0\n137\n", 7), "{outcome:?}");
}

#[test]
fn an_exit_status_survives_a_storm_of_children() {
    let yard = Yard::new();
    let line = "\"$0\" storm 50000; exit 42";
    let outcome = yard.run(&["/bin/bash", "-c", line, &yard.probe_path()]);
    assert_eq!((outcome.stdout.as_str(), outcome.code), ("made 50000\n", 42), "{outcome:?}");
}

#[test]
fn the_reason_of_an_end_is_told() {
    for (line, code) in [("exit 0", 0), ("exit 3", 3), ("kill -SEGV $$", 139), ("kill -TERM $$", 143)] {
        assert_eq!(Yard::new().shell(line).code, code, "{line}");
    }
}
