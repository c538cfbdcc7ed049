//! `attach --write`: keys reach the process, and its terminal takes our size.

use crate::desk::Desk;
use crate::pty::{LEAVE, Seat};
use serde_json::json;
use std::io::Write;
use std::process::Stdio;
use stockade::sys::terminal::Size;

const SIZE: Size = Size { rows: 30, cols: 100 };

#[test]
fn keys_and_size_are_passed_on() {
    let desk = Desk::new();
    let mut server = desk.serve();
    let program =
        "trap 'echo size $(stty size)' WINCH; echo ready; while :; do read line && echo \"got <$line>\"; done";
    let id = server.start_with(&json!({ "command": program, "pty": true }));
    server.until(&id, "ready");
    let mut seat = Seat::take(&desk, &["attach", "--write", &id], SIZE);
    seat.sees("ready");
    seat.press(b"typed q\r");
    seat.sees("got <typed q>");
    seat.sees("size 30 100");
    seat.resize(Size { rows: 20, cols: 60 });
    seat.press(b"\r");
    seat.sees("size 20 60");
    seat.press(LEAVE);
    assert_eq!(seat.is_left(), 0);
    assert_eq!(desk.ps(&[])[0]["running"], 1);
}

#[test]
fn ctrl_c_goes_to_the_process() {
    let desk = Desk::new();
    let mut server = desk.serve();
    let id = server.start_with(&json!({ "command": "echo ready; exec sleep 100", "pty": true }));
    server.until(&id, "ready");
    let mut seat = Seat::take(&desk, &["attach", "--write", &id], SIZE);
    seat.sees("ready");
    seat.press(&[3]);
    assert_eq!(seat.is_left(), 0);
    seat.sees("has ended: signal, signal 2");
}

#[test]
fn lines_go_to_a_process_with_pipes() {
    let desk = Desk::new();
    let mut server = desk.serve();
    let id = server.start("echo ready; while read line; do echo \"got <$line>\"; done");
    server.until(&id, "ready");
    let mut seat = Seat::take(&desk, &["attach", "--write", &id], SIZE);
    seat.sees("ready");
    seat.press(b"by hand\r");
    seat.sees("got <by hand>");
    seat.press(LEAVE);
    assert_eq!(seat.is_left(), 0);
    let mut piped = desk.command(&["attach", "--write", &id]);
    let mut piped = piped.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("stockade starts");
    piped.stdin.take().expect("a pipe").write_all(b"by pipe\n").expect("it reads");
    assert_eq!(crate::desk::ends(&mut piped), 0);
    server.until(&id, "got <by pipe>");
    assert_eq!(desk.ps(&[])[0]["running"], 1, "its input was not closed");
}

#[test]
fn tmux_shows_it_in_a_session() {
    if std::process::Command::new("tmux").arg("-V").output().is_err() {
        assert!(std::env::var_os("CI").is_none(), "tmux is missing");
        eprintln!("not run: tmux is missing");
        return;
    }
    let desk = Desk::new();
    let mut server = desk.serve();
    let id = server.start_with(&json!({ "command": "echo in the window; sleep 100", "pty": true }));
    server.until(&id, "in the window");
    // A tmux server of our own.
    let tmux = |words: &[&str]| {
        let mut command = std::process::Command::new("tmux");
        command.args(words).env_remove("TMUX").env("TMUX_TMPDIR", desk.workspace.path());
        command.output().expect("tmux starts")
    };
    let opened =
        desk.command(&["attach", "--tmux", &id]).env_remove("TMUX").env("TMUX_TMPDIR", desk.workspace.path()).output();
    let opened = crate::support::Outcome::new(&opened.expect("stockade starts"));
    let name = format!("stockade-{id}");
    assert_eq!(opened.code, 0, "{opened:?}");
    assert!(opened.stdout.contains(&format!("tmux attach -t {name}")), "{opened:?}");
    let pane = || String::from_utf8_lossy(&tmux(&["capture-pane", "-p", "-t", &name]).stdout).into_owned();
    crate::desk::soon("the view in tmux", || pane().contains("in the window"));
    tmux(&["kill-server"]);
}
