//! A terminal in a cell works as a terminal, belongs to the cell alone, and leaves the person's own as it was (TT).

use crate::controls::Outside::{Differs, IfKnown, NotTried, Works};
use crate::controls::{Case, check};
use crate::support::Yard;
use crate::terminal::Person;
use libc::{ENOTTY, ENXIO, EPERM};
use nix::sys::signal::Signal;
use std::process::Command;

/// Typing into a terminal that belongs to the caller. A host with `dev.tty.legacy_tiocsti = 0` answers EIO, which is no EPERM either.
const KEYS: &[Case<'_>] = &[
    ("TT-02 type", "own-terminal call ioctl 0 0x5412 :x", EPERM, Differs),
    ("TT-02 type, high bits", "own-terminal call ioctl 0 0x100005412 :x", EPERM, Differs),
    ("TT-02 console keys", "own-terminal call ioctl 0 0x541c :x", EPERM, Differs),
    // It would redirect the host's console.
    ("TT-02 console output", "own-terminal call ioctl 0 0x541d 0", EPERM, NotTried),
    ("TT-05 line discipline", "own-terminal call ioctl 0 0x5423 @4", EPERM, Works),
    ("TT-05 line discipline 21", "own-terminal call ioctl 0 0x5423 @4=15000000", EPERM, IfKnown),
    // Where it works, it hangs up on the one who tried.
    ("TT-05 hang up", "own-terminal call ioctl 0 0x5437 0", EPERM, NotTried),
    ("TT-05 hang up all", "call vhangup", EPERM, NotTried),
    ("TT-05 console", "own-terminal call ioctl 0 0x4b3a @4", ENOTTY, IfKnown),
    ("TT-05 take a terminal", "own-terminal call ioctl 0 0x540e 0", 0, Works),
    ("TT-05 size", "own-terminal call ioctl 0 0x5413 @8", 0, Works),
];

#[test]
fn a_terminal_of_one_s_own_cannot_be_typed_into() {
    check(&Yard::new(), KEYS);
}

/// Run under a real terminal without `--tty`: the person's terminal must be out of reach.
#[test]
fn the_person_s_terminal_is_not_there_without_tty() {
    let yard = Yard::new();
    let probe = yard.probe_path();
    let line =
        "$0 read /dev/tty; echo tty=$?; $0 call ioctl 0 0x5412 :x; echo sti=$?; readlink /proc/self/fd/*; exit 5";
    let mut person = Person::starts(yard, &["--no-tty"], &["/bin/bash", "-c", line, &probe]);
    person.sees(&format!("tty={ENXIO}"));
    person.sees(&format!("sti={EPERM}"));
    assert_eq!(person.waits(), 5);
    let line = "$0 write /dev/tty; echo tty=$?; exit 5";
    let mut control = Person::starts_outside(&["/bin/bash", "-c", line, &probe]);
    control.sees("tty=0");
    assert_eq!(control.waits(), 5);
}

#[test]
fn the_terminal_in_a_cell_cannot_be_typed_into() {
    let yard = Yard::new();
    let probe = yard.probe_path();
    let line =
        "$0 write /dev/tty; echo tty=$?; for c in 0x5412 0x100005412 0x541c; do $0 call ioctl 0 $c :x; echo c=$?; done";
    let mut person = Person::starts(yard, &["--tty"], &["/bin/bash", "-c", line, &probe]);
    person.sees("tty=0");
    for _ in 0..3 {
        person.sees(&format!("c={EPERM}"));
    }
    assert_eq!(person.waits(), 0);
    let mut control = Person::starts_outside(&["/bin/bash", "-c", line, &probe]);
    let told = {
        control.sees("tty=0");
        control.sees("c=");
        control.sees("\n")
    };
    assert_ne!(told.trim(), EPERM.to_string(), "the host refuses it too");
}

#[test]
fn only_the_cell_s_own_terminals_are_listed() {
    let mut person = Person::starts(Yard::new(), &["--tty"], &["/bin/bash", "-c", "tty; echo [$(ls /dev/pts)]"]);
    person.sees("/dev/pts/0");
    person.sees("[0 ptmx]");
    assert_eq!(person.waits(), 0);
    assert_eq!(Yard::new().shell("ls /dev/pts").stdout, "ptmx\n");
    let mut control = Person::starts_outside(&["/bin/bash", "-c", "tty; ls /dev/pts | wc -l"]);
    control.sees("/dev/pts/");
    assert_eq!(control.waits(), 0);
}

#[test]
fn a_new_size_reaches_the_program() {
    let line = "trap 'stty size; exit 6' WINCH; stty size; sleep 1000 & echo ready; wait";
    let mut person = Person::starts(Yard::new(), &["--tty"], &["/bin/bash", "-c", line]);
    person.sees("24 80");
    person.sees("ready");
    person.resizes(33, 101);
    person.sees("33 101");
    assert_eq!(person.waits(), 6);
}

#[test]
fn an_interrupt_reaches_the_program_and_not_stockade() {
    let line = "trap 'echo caught' INT; echo ready; read -r word; echo got=$word; exit 9";
    let mut person = Person::starts(Yard::new(), &["--tty"], &["/bin/bash", "-c", line]);
    person.sees("ready");
    person.types_until("\x03", "caught");
    person.types("more\r");
    person.sees("got=more");
    assert_eq!(person.waits(), 9);
    let mut person = Person::starts(Yard::new(), &["--tty"], &["/bin/sh", "-c", "echo ready; exec sleep 1000"]);
    person.sees("ready");
    person.types("\x03");
    assert_eq!(person.waits(), 128 + Signal::SIGINT as u32);
}

#[test]
fn job_control_works() {
    let mut person = Person::starts(Yard::new(), &["--tty"], &["/bin/bash", "--norc", "-i"]);
    person.sees("$ ");
    // Halves in quotes, so that what is typed does not look like what is said.
    let job = "trap 'echo contin''ued' CONT; echo fore''ground; sleep 1000 & wait; wait";
    person.types(&format!("bash -c \"{job}\"\r"));
    person.sees("foreground");
    person.types("\x1a");
    person.sees("Stopped");
    person.types("fg\r");
    person.sees("continued");
    person.types("\x03");
    person.sees("$ ");
    person.types("echo st''atus=$?; jobs | wc -l\r");
    person.sees("status=130\r\n0\r\n");
    person.types("sleep 1000 & kill %1; wait %1; echo st''atus=$?\r");
    person.sees("status=143");
    person.types("exit 4\r");
    assert_eq!(person.waits(), 4);
}

/// Starts something that waits, and makes sure that the terminal's modes were changed for it.
fn waiting(flags: &[&str]) -> (Person, String) {
    let flags: Vec<&str> = ["--tty"].iter().chain(flags).copied().collect();
    let before = Person::starts_outside(&["/bin/true"]).modes();
    let line = "echo ready; read -r code; exit $code";
    let mut person = Person::starts(Yard::new(), &flags, &["/bin/bash", "-c", line]);
    person.sees("ready");
    assert!(person.is_raw(), "keys are not passed on as they are");
    (person, format!("{before:?}"))
}

#[test]
fn modes_are_restored_after_an_exit() {
    let (mut person, before) = waiting(&[]);
    person.types("7\r");
    assert_eq!(person.waits(), 7);
    assert_eq!(format!("{:?}", person.modes()), before);
}

#[test]
fn modes_are_restored_after_a_time_out() {
    let (mut person, before) = waiting(&["--timeout", "1s"]);
    assert_eq!(person.waits(), 124);
    assert_eq!(format!("{:?}", person.modes()), before);
    person.sees("time limit");
}

#[test]
fn modes_are_restored_after_each_signal_that_asks_stockade_to_end() {
    for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT] {
        let (mut person, before) = waiting(&[]);
        person.sends(signal);
        let code = person.waits();
        assert!(code > 128, "{signal}: {code}");
        assert_eq!(format!("{:?}", person.modes()), before, "{signal}");
    }
}

#[test]
fn exit_codes_pass_through_a_terminal() {
    for (line, code) in [("exit 0", 0), ("exit 77", 77), ("kill -KILL $$", 137)] {
        let mut person = Person::starts(Yard::new(), &["--tty"], &["/bin/bash", "-c", line]);
        assert_eq!(person.waits(), code, "{line}");
    }
}

/// Title report, status request, clipboard, bracketed paste, cursor position.
const SEQUENCES: &str = "\\033[21t\\033P$q\"p\\033\\\\\\033]52;c;?\\a\\033[?2004h\\033[6n";

#[test]
fn escape_sequences_are_data_and_nobody_answers_them() {
    let piped = Yard::new().shell(&format!("printf '{SEQUENCES}'"));
    let outside = Command::new("/bin/bash").args(["-c", &format!("printf '{SEQUENCES}'")]).output().expect("bash");
    assert_eq!(piped.stdout.as_bytes(), outside.stdout);
    // An answer would stand before what the person types.
    let line = format!("stty -echo; printf '{SEQUENCES}'; echo ready; read -r word; printf 'got=%q.\\n' \"$word\"");
    let mut person = Person::starts(Yard::new(), &["--tty"], &["/bin/bash", "-c", &line]);
    person.sees("ready");
    person.types("word\r");
    person.sees("got=word.");
    assert_eq!(person.waits(), 0);
}
