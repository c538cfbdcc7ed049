//! `record`: an asciicast of a terminal, exported while it grows and after.

use crate::desk::{Desk, soon};
use serde_json::{Value, json};

#[test]
fn a_recording_is_exported_and_is_an_asciicast() {
    let desk = Desk::new();
    let mut server = desk.serve();
    let id = server.start_with(&json!({
        "command": "printf 'h\\303\\251llo\\n'; read word; echo got $word", "pty": true, "record": true, "rows": 24, "cols": 80,
    }));
    server.until(&id, "llo");
    server.call("proc_send", &json!({ "proc_id": id, "input": "typed" }));
    soon("its end", || desk.ps(&["--all"])[0]["ended"] == 1);
    let cast = desk.say(&["logs", &id, "--cast", "-"]);
    assert_eq!(cast.code, 0, "{cast:?}");
    let lines: Vec<Value> = cast.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!((&lines[0]["version"], &lines[0]["width"], &lines[0]["height"]), (&json!(2), &json!(80), &json!(24)));
    let of = |kind: &str| {
        let events = lines[1..].iter().filter(|line| line[1] == kind);
        events.map(|line| line[2].as_str().expect("text")).collect::<String>()
    };
    assert!(of("o").contains("h\u{e9}llo\r\n") && of("o").contains("got typed"), "{lines:?}");
    assert_eq!(of("i"), "typed\n");
    let file = desk.workspace.path().join("out.cast");
    assert_eq!(desk.say(&["logs", &id, "--cast", "out.cast"]).code, 0);
    assert_eq!(std::fs::read_to_string(file).expect("the export"), cast.stdout);
    server.kill();
    assert_eq!(desk.say(&["logs", &id, "--cast", "-"]).stdout, cast.stdout, "also of a dead broker");
}

#[test]
fn only_terminals_are_recorded() {
    let desk = Desk::new();
    let mut server = desk.serve();
    let refused = server.try_call("proc_start", &json!({ "command": "true", "record": true }));
    let text = refused["content"][0]["text"].as_str().unwrap_or_default();
    assert!(text.contains("INVALID_ARGUMENT") && text.contains("`pty`"), "{refused}");
    let id = server.start("echo x");
    let none = desk.say(&["logs", &id, "--cast", "-"]);
    assert_eq!(none.code, 1, "{none:?}");
    assert!(none.stderr.contains("was not recorded"), "{none:?}");
}
