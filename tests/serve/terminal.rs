//! Processes in a terminal of their own: echo, job keys, sizes, and the screen as a person would see it.

use crate::mcp::Client;
use crate::site::Site;
use serde_json::{Value, json};

fn start(client: &mut Client, mut arguments: Value) -> Value {
    arguments["pty"] = json!(true);
    client.ok("proc_start", arguments)["proc_id"].clone()
}

/// The rows of the screen as one text.
fn screen(client: &mut Client, proc_id: &Value) -> String {
    let read = client.ok("proc_read", json!({ "proc_id": proc_id, "format": "screen", "timeout_ms": 0 }));
    read["screen"].as_str().expect("text").to_owned()
}

/// Waits for what the process says; the text up to and with it.
fn sees(client: &mut Client, proc_id: &Value, pattern: &str) -> String {
    let arguments = json!({ "proc_id": proc_id, "until": pattern, "timeout_ms": 10_000, "strip_ansi": true });
    let read = client.ok("proc_read", arguments);
    assert!(read["matched"].is_string(), "`{pattern}` never came: {read}");
    read["output"].as_str().expect("text").to_owned()
}

#[test]
fn only_with_pty_is_it_a_terminal() {
    let site = Site::new();
    let mut client = site.open();
    let script = "test -t 0 && test -t 1 && test -t 2 && echo terminal || echo pipes";
    for (pty, expected) in [(true, "terminal"), (false, "pipes")] {
        let arguments = json!({ "command": script, "pty": pty, "initial_read_timeout_ms": 5000, "until": "\n" });
        let started = client.ok("proc_start", arguments);
        assert_eq!(started["first_output"].as_str().map(str::trim), Some(expected), "{started}");
    }
}

#[test]
fn the_size_is_what_was_asked_for_and_can_be_changed() {
    let site = Site::new();
    let mut client = site.open();
    for (arguments, expected) in [(json!({}), "40 120"), (json!({ "rows": 10, "cols": 33 }), "10 33")] {
        let mut arguments = arguments;
        arguments["argv"] = json!(["stty", "size"]);
        let proc_id = start(&mut client, arguments);
        let read = client.ok("proc_read", json!({ "proc_id": proc_id, "cursor": 0, "until": "\n" }));
        assert_eq!(read["output"], format!("{expected}\r\n"), "{read}");
    }
    let script = "trap 'stty size' WINCH; echo ready; while :; do sleep 0.01; done";
    let proc_id = start(&mut client, json!({ "command": script, "until": "ready", "initial_read_timeout_ms": 5000 }));
    let told = client.ok("proc_resize", json!({ "proc_id": proc_id, "rows": 50, "cols": 90 }));
    assert_eq!((&told["rows"], &told["cols"]), (&json!(50), &json!(90)));
    assert!(sees(&mut client, &proc_id, "\\d+ \\d+").contains("50 90"), "the process is told");
}

#[test]
fn pipes_have_no_size() {
    let site = Site::new();
    let mut client = site.open();
    let arguments = json!({ "argv": ["sleep", "1000"], "initial_read_timeout_ms": 0 });
    let proc_id = client.ok("proc_start", arguments)["proc_id"].clone();
    let (code, message) = client.refused("proc_resize", json!({ "proc_id": proc_id, "rows": 50, "cols": 90 }));
    assert!(code == "INVALID_ARGUMENT" && message.contains("pty"), "{code}: {message}");
}

#[test]
fn keys_that_mean_signals_are_signals() {
    let site = Site::new();
    let mut client = site.open();
    let proc_id =
        start(&mut client, json!({ "argv": ["bash", "--norc"], "env": { "PS1": "prompt> " }, "until": "prompt> " }));
    // What says that it has begun is what gets the key: a shell between two commands would lose it.
    client.ok("proc_send", json!({ "proc_id": proc_id, "input": "sh -c 'echo be\"\"gun; exec sleep 1000'" }));
    sees(&mut client, &proc_id, "begun\n");
    client.ok("proc_send", json!({ "proc_id": proc_id, "input": "\u{3}", "newline": false }));
    sees(&mut client, &proc_id, "prompt> ");
    client.ok("proc_send", json!({ "proc_id": proc_id, "input": "echo code $?" }));
    sees(&mut client, &proc_id, "code 130\n");
    let sent = client.ok("proc_send", json!({ "proc_id": proc_id, "input": "exit 7", "wait_ms": 10_000 }));
    assert_eq!((&sent["state"], &sent["exit_code"]), (&json!("exited"), &json!(7)), "{sent}");
}

#[test]
fn end_of_input_in_a_terminal_ends_a_reader() {
    let site = Site::new();
    let mut client = site.open();
    let proc_id = start(&mut client, json!({ "argv": ["cat"], "initial_read_timeout_ms": 0 }));
    let sent = client.ok("proc_send", json!({ "proc_id": proc_id, "input": "said", "eof": true, "wait_ms": 10_000 }));
    assert_eq!((&sent["state"], &sent["exit_code"]), (&json!("exited"), &json!(0)), "{sent}");
    assert_eq!(sent["output"], "said\r\nsaid\r\n", "what was typed is shown, then said: {sent}");
}

#[test]
fn the_screen_is_what_a_person_would_see() {
    let site = Site::new();
    let mut client = site.open();
    let script = "printf 'first\\r\\nsecond\\033[1;1Hover\\033[5;3H[deep]\\033[2K\\033[5;1Hlast'; sleep 1000";
    let proc_id = start(&mut client, json!({ "command": script, "rows": 6, "cols": 20, "until": "last" }));
    let read = client.ok("proc_read", json!({ "proc_id": proc_id, "format": "screen", "timeout_ms": 0 }));
    let rows: Vec<String> = screen(&mut client, &proc_id).lines().map(str::to_owned).collect();
    assert_eq!(rows[..5], ["overt", "second", "", "", "last"], "{read}");
}

#[test]
fn the_screen_scrolls_and_clears_like_one() {
    let site = Site::new();
    let mut client = site.open();
    let script = "seq 1 100; read; clear; echo alone; sleep 1000";
    let proc_id = start(&mut client, json!({ "command": script, "rows": 5, "cols": 40, "until": "100\r\n" }));
    let rows: Vec<String> = screen(&mut client, &proc_id).lines().map(str::to_owned).collect();
    assert_eq!(rows[..4], ["97", "98", "99", "100"]);
    client.ok("proc_send", json!({ "proc_id": proc_id, "input": "" }));
    sees(&mut client, &proc_id, "alone");
    assert_eq!(screen(&mut client, &proc_id).lines().next(), Some("alone"));
}

#[test]
fn a_pager_shows_a_page_and_turns_it() {
    let site = Site::new();
    site.workspace.file("text", &(1..=100).map(|number| format!("row {number}\n")).collect::<String>());
    let mut client = site.open();
    let arguments =
        json!({ "argv": ["less", "text"], "rows": 10, "cols": 40, "env": { "TERM": "xterm" }, "until": "text" });
    let proc_id = start(&mut client, arguments);
    assert!(screen(&mut client, &proc_id).starts_with("row 1\nrow 2\n"));
    let arguments = json!({ "proc_id": proc_id, "input": "G", "newline": false, "wait_ms": 5000, "until": "END" });
    client.ok("proc_send", arguments);
    assert!(screen(&mut client, &proc_id).contains("row 100"));
    let sent = client.ok("proc_send", json!({ "proc_id": proc_id, "input": "q", "newline": false, "wait_ms": 10_000 }));
    assert_eq!(sent["state"], "exited", "{sent}");
}
