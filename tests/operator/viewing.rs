//! `attach` without `--write`: a live view that changes nothing.

use crate::desk::{Desk, Server, soon};
use crate::pty::{LEAVE, Seat};
use serde_json::json;
use stockade::sys::terminal::Size;

const SIZE: Size = Size { rows: 40, cols: 120 };

/// A program that draws, and says what it reads and how large its terminal is.
const PROGRAM: &str = "stty -echo; printf '\\033[2J\\033[5;10H\\033[31mhere it is\\033[m\\n'; \
                       while read line; do echo \"got <$line> $(stty size)\"; done; echo over";

fn start(server: &mut Server) -> String {
    let id = server.start_with(&json!({ "command": PROGRAM, "pty": true }));
    server.until(&id, "here it is");
    id
}

#[test]
fn the_screen_is_drawn_first_and_then_as_it_changes() {
    let desk = Desk::new();
    let mut server = desk.serve();
    let id = start(&mut server);
    let mut seat = Seat::take(&desk, &["attach", &id], SIZE);
    seat.sees("         here it is");
    assert!(seat.raw().contains("\x1b[31m"), "with its colours");
    server.call("proc_send", &json!({ "proc_id": id, "input": "hello" }));
    seat.sees("got <hello> 40 120");
    seat.press(b"typed\r");
    server.call("proc_send", &json!({ "proc_id": id, "input": "after" }));
    seat.sees("got <after>");
    assert!(!seat.screen().contains("typed"), "a view passes no keys on");
    seat.press(LEAVE);
    assert_eq!(seat.is_left(), 0);
    soon("the screen from before", || seat.raw().contains("\x1b[?1049l") && seat.raw().contains("it goes on"));
    assert_eq!(desk.ps(&[])[0]["running"], 1);
}

#[test]
fn q_and_ctrl_c_leave_and_signals_do_too() {
    let desk = Desk::new();
    let mut server = desk.serve();
    let id = start(&mut server);
    for key in [b"q", &[3]] {
        let mut seat = Seat::take(&desk, &["attach", &id], SIZE);
        seat.sees("here it is");
        seat.press(key);
        assert_eq!(seat.is_left(), 0);
    }
    for signal in [nix::sys::signal::Signal::SIGTERM, nix::sys::signal::Signal::SIGHUP] {
        let mut seat = Seat::take(&desk, &["attach", &id], SIZE);
        seat.sees("here it is");
        let pid = seat.child.process_id().expect("a child") as i32;
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal).expect("ours");
        assert_eq!(seat.is_left(), 0);
        soon("the screen from before", || seat.raw().contains("\x1b[?1049l"));
    }
}

#[test]
fn a_small_window_shows_a_part_and_leaves_the_process_its_size() {
    let desk = Desk::new();
    let mut server = desk.serve();
    let id = start(&mut server);
    let mut seat = Seat::take(&desk, &["attach", &id], Size { rows: 10, cols: 30 });
    seat.sees("here it is");
    seat.resize(Size { rows: 12, cols: 50 });
    server.call("proc_send", &json!({ "proc_id": id, "input": "size?" }));
    seat.sees("got <size?> 40 120");
}

#[test]
fn the_end_of_the_process_ends_the_view() {
    let desk = Desk::new();
    let mut server = desk.serve();
    let id = start(&mut server);
    let mut seat = Seat::take(&desk, &["attach", &id], SIZE);
    seat.sees("here it is");
    server.call("proc_send", &json!({ "proc_id": id, "input": "", "newline": false, "eof": true }));
    assert_eq!(seat.is_left(), 0);
    seat.sees("has ended: exit, exit code 0");
    let again = desk.say(&["attach", &id]);
    assert_eq!(again.code, 1, "{again:?}");
    assert!(again.stderr.contains("has ended"), "{again:?}");
}

#[test]
fn a_broker_that_is_killed_leaves_the_terminal_as_it_was() {
    let desk = Desk::new();
    let mut server = desk.serve();
    let id = start(&mut server);
    let mut seat = Seat::take(&desk, &["attach", &id], SIZE);
    seat.sees("here it is");
    server.kill();
    assert_eq!(seat.is_left(), 125);
    seat.sees("the broker is gone");
}

#[test]
fn what_a_program_prints_does_not_talk_to_the_operators_terminal() {
    let desk = Desk::new();
    let mut server = desk.serve();
    let evil = "\\033]52;c;aGk=\\007\\033]0;owned\\007\\033[6n\\033[21t";
    let id = server.start_with(&json!({ "command": format!("printf '{evil}shown'; sleep 100"), "pty": true }));
    let piped = server.start(&format!("printf '{evil}piped\\n'; sleep 100"));
    server.until(&piped, "piped");
    let seat = Seat::take(&desk, &["attach", &id], SIZE);
    seat.sees("shown");
    let mut logs = Seat::take(&desk, &["logs", &piped], SIZE);
    logs.sees("piped");
    assert_eq!(logs.is_left(), 0);
    for raw in [seat.raw(), logs.raw()] {
        assert!(!raw.contains("\x1b]") && !raw.contains("\x1b[6n") && !raw.contains("\x1b[21t"), "{raw:?}");
    }
    let raw = Seat::take(&desk, &["logs", "--raw", &piped], SIZE);
    raw.sees("piped");
    assert!(raw.raw().contains("\x1b]52;"), "the control: with --raw it does");
}

#[test]
fn without_a_terminal_only_pipes_can_be_attached_to() {
    let desk = Desk::new();
    let mut server = desk.serve();
    let id = start(&mut server);
    let refused = desk.say(&["attach", &id]);
    assert_eq!(refused.code, 125, "{refused:?}");
    let piped = server.start("echo one; sleep 0.2; echo two");
    let shown = desk.say(&["attach", &piped]);
    assert!(shown.code == 1 || shown.stdout == "one\ntwo\n", "{shown:?}");
}
