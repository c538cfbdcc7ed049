//! Bad input: a code, a message that says what would be accepted, and everything as it was.

use crate::mcp::Client;
use crate::site::Site;
use serde_json::{Value, json};

/// Processes and sessions, without what changes by itself.
pub fn everything(client: &mut Client) -> Value {
    let mut processes = client.ok("proc_list", json!({}))["processes"].take();
    for entry in processes.as_array_mut().expect("a list") {
        for figure in ["runtime_ms", "last_activity", "usage"] {
            entry.as_object_mut().expect("an entry").remove(figure);
        }
    }
    let mut sessions = client.ok("session_list", json!({}))["sessions"].take();
    for entry in sessions.as_array_mut().expect("a list") {
        entry.as_object_mut().expect("an entry").remove("usage");
    }
    json!([processes, sessions])
}

/// A server with a session, a process over pipes, one in a terminal and one that has ended.
pub struct Scene {
    pub client: Client,
    pub running: Value,
    pub in_terminal: Value,
    pub ended: Value,
}

pub fn scene(site: &Site) -> Scene {
    let mut client = site.open();
    client.ok("session_open", json!({ "session": "room" }));
    let mut start = |arguments: Value| client.ok("proc_start", arguments)["proc_id"].clone();
    let running = start(json!({ "argv": ["cat"], "initial_read_timeout_ms": 0 }));
    let in_terminal = start(json!({ "argv": ["sleep", "1000"], "pty": true, "initial_read_timeout_ms": 0 }));
    let ended = client.ok("run", json!({ "argv": ["echo", "ended"] }))["proc_id"].clone();
    Scene { client, running, in_terminal, ended }
}

/// Tool, arguments, code, and what the message must name.
type Row = (&'static str, Value, &'static str, &'static [&'static str]);

fn rows(site: &Site, scene: &Scene) -> Vec<Row> {
    let (running, ended) = (&scene.running, &scene.ended);
    site.workspace.file("file", "text");
    let file = site.workspace.path().join("file");
    vec![
        ("run", json!({}), "INVALID_ARGUMENT", &["command", "argv"]),
        ("run", json!({ "command": "true", "argv": ["true"] }), "INVALID_ARGUMENT", &["command", "argv"]),
        ("proc_start", json!({}), "INVALID_ARGUMENT", &["command", "argv"]),
        ("proc_start", json!({ "command": "true", "argv": ["true"] }), "INVALID_ARGUMENT", &["command", "argv"]),
        ("run", json!({ "argv": ["true"], "comand": "x" }), "INVALID_ARGUMENT", &["comand", "`command`"]),
        ("run", json!({ "argv": ["true"], "timeout": 5 }), "INVALID_ARGUMENT", &["timeout", "timeout_ms"]),
        ("proc_read", json!({ "proc_id": running, "curser": 5 }), "INVALID_ARGUMENT", &["curser", "cursor"]),
        ("proc_list", json!({ "all": true }), "INVALID_ARGUMENT", &["all"]),
        ("run", json!({ "argv": ["true"], "cwd": "/srv" }), "PATH_NOT_ALLOWED", &["below"]),
        ("run", json!({ "argv": ["true"], "cwd": "/" }), "PATH_NOT_ALLOWED", &["below"]),
        ("run", json!({ "argv": ["true"], "cwd": "/etc" }), "PATH_NOT_ALLOWED", &["/etc"]),
        ("run", json!({ "argv": ["true"], "cwd": "~" }), "PATH_NOT_ALLOWED", &["~"]),
        (
            "run",
            json!({ "argv": ["true"], "cwd": format!("{}/../x", site.workspace.path().display()) }),
            "PATH_NOT_ALLOWED",
            &[".."],
        ),
        ("run", json!({ "argv": ["true"], "cwd": "" }), "PATH_NOT_ALLOWED", &["below"]),
        ("run", json!({ "argv": ["true"], "cwd": "/tmp/a\0b" }), "INVALID_ARGUMENT", &["NUL"]),
        ("run", json!({ "argv": ["true"], "cwd": file }), "PATH_NOT_ALLOWED", &["directory"]),
        ("run", json!({ "argv": ["true"], "cwd": "/tmp/missing" }), "PATH_NOT_ALLOWED", &["directory"]),
        ("proc_start", json!({ "argv": ["true"], "cwd": "/etc" }), "PATH_NOT_ALLOWED", &["/etc"]),
        ("session_open", json!({ "session": "other", "cwd": "/etc" }), "PATH_NOT_ALLOWED", &["/etc"]),
        ("run", json!({ "argv": ["true"], "env": { "A=B": "x" } }), "INVALID_ARGUMENT", &["A=B", "`=`"]),
        ("run", json!({ "argv": ["true"], "env": { "": "x" } }), "INVALID_ARGUMENT", &["name"]),
        ("run", json!({ "argv": ["true"], "env": { "A\0": "x" } }), "INVALID_ARGUMENT", &["NUL"]),
        ("run", json!({ "argv": ["true"], "env": { "A": "x\0y" } }), "INVALID_ARGUMENT", &["NUL"]),
        ("run", json!({ "argv": ["true"], "env": { "A": 5 } }), "INVALID_ARGUMENT", &["env"]),
        ("session_open", json!({ "session": "other", "env": { "A=B": "x" } }), "INVALID_ARGUMENT", &["A=B"]),
        (
            "run",
            json!({ "argv": ["cat"], "stdin": "not base64!", "stdin_encoding": "base64" }),
            "INVALID_ARGUMENT",
            &["stdin", "base64"],
        ),
        (
            "proc_send",
            json!({ "proc_id": running, "input": "a", "encoding": "base64" }),
            "INVALID_ARGUMENT",
            &["input", "base64"],
        ),
        ("run", json!({ "argv": ["true"], "encoding": "latin1" }), "INVALID_ARGUMENT", &["latin1", "utf8", "base64"]),
        ("proc_read", json!({ "proc_id": running, "until": "(" }), "INVALID_ARGUMENT", &["until", "regex"]),
        ("proc_start", json!({ "argv": ["true"], "until": "[z-a]" }), "INVALID_ARGUMENT", &["until", "regex"]),
        (
            "proc_send",
            json!({ "proc_id": running, "input": "x", "wait_ms": 10, "until": "a{99999999}" }),
            "INVALID_ARGUMENT",
            &["until"],
        ),
        ("proc_read", json!({ "proc_id": running, "until": "x{1000}{1000}{1000}" }), "INVALID_ARGUMENT", &["until"]),
        ("proc_read", json!({ "proc_id": ended, "cursor": 7 }), "INVALID_ARGUMENT", &["cursor", "6"]),
        (
            "proc_read",
            json!({ "proc_id": ended, "cursor": 9_223_372_036_854_775_807_u64 }),
            "INVALID_ARGUMENT",
            &["cursor"],
        ),
        (
            "proc_read",
            json!({ "proc_id": ended, "cursor": 18_446_744_073_709_551_615_u64 }),
            "INVALID_ARGUMENT",
            &["cursor"],
        ),
        ("proc_read", json!({ "proc_id": ended, "cursor": -1 }), "INVALID_ARGUMENT", &["cursor"]),
        ("proc_read", json!({ "proc_id": ended, "cursor": "0" }), "INVALID_ARGUMENT", &["cursor"]),
        ("proc_read", json!({ "proc_id": running, "stream": "stdin" }), "INVALID_ARGUMENT", &["stream", "stderr"]),
        ("proc_read", json!({ "proc_id": running, "format": "xml" }), "INVALID_ARGUMENT", &["format", "chunks"]),
        ("proc_read", json!({ "proc_id": running, "format": "screen" }), "INVALID_ARGUMENT", &["screen", "pty"]),
        (
            "proc_read",
            json!({ "proc_id": running, "timeout_ms": 10_001 }),
            "INVALID_ARGUMENT",
            &["timeout_ms", "10000"],
        ),
        (
            "proc_start",
            json!({ "argv": ["true"], "initial_read_timeout_ms": 5001 }),
            "INVALID_ARGUMENT",
            &["initial_read_timeout_ms", "5000"],
        ),
        ("run", json!({ "argv": ["true"], "timeout_ms": 0 }), "INVALID_ARGUMENT", &["timeout_ms"]),
        ("run", json!({ "argv": ["true"], "timeout_ms": -1 }), "INVALID_ARGUMENT", &["timeout_ms"]),
        ("run", json!({ "argv": ["true"], "timeout_ms": 1.5 }), "INVALID_ARGUMENT", &["timeout_ms"]),
        ("run", json!({ "argv": ["true"], "timeout_ms": "1e3" }), "INVALID_ARGUMENT", &["timeout_ms"]),
        ("run", json!({ "argv": ["true"], "timeout_ms": 1_000_000_000_000_u64 }), "INVALID_ARGUMENT", &["timeout_ms"]),
        (
            "run",
            json!({ "argv": ["true"], "max_output_bytes": 1_000_000_000_000_u64 }),
            "INVALID_ARGUMENT",
            &["max_output_bytes"],
        ),
        ("run", json!({ "argv": ["sudo", "id"] }), "COMMAND_NOT_ALLOWED", &["sudo", "blocked"]),
        ("proc_start", json!({ "argv": ["/usr/bin/su"] }), "COMMAND_NOT_ALLOWED", &["su", "blocked"]),
        ("proc_send", json!({ "proc_id": ended, "input": "x" }), "PROCESS_NOT_RUNNING", &["exit"]),
        ("proc_signal", json!({ "proc_id": ended, "signal": "INT" }), "PROCESS_NOT_RUNNING", &["exit"]),
        ("proc_resize", json!({ "proc_id": ended, "rows": 5, "cols": 5 }), "INVALID_ARGUMENT", &["pty"]),
        ("proc_signal", json!({ "proc_id": running, "signal": "SEGV" }), "INVALID_ARGUMENT", &["SEGV", "INT"]),
        ("proc_signal", json!({ "proc_id": running, "signal": 9 }), "INVALID_ARGUMENT", &["signal"]),
        ("proc_signal", json!({ "proc_id": running }), "INVALID_ARGUMENT", &["signal"]),
        ("proc_resize", json!({ "proc_id": running, "rows": 0, "cols": 80 }), "INVALID_ARGUMENT", &["rows"]),
        ("proc_stop", json!({}), "INVALID_ARGUMENT", &["proc_id", "session"]),
        ("proc_stop", json!({ "proc_id": running, "session": "room" }), "INVALID_ARGUMENT", &["proc_id", "session"]),
        ("proc_stop", json!({ "proc_id": running, "signal": "NOPE" }), "INVALID_ARGUMENT", &["NOPE"]),
        ("proc_read", json!({}), "INVALID_ARGUMENT", &["proc_id"]),
        ("proc_read", json!({ "proc_id": 5 }), "INVALID_ARGUMENT", &["proc_id"]),
        ("proc_list", json!({ "state": "asleep" }), "INVALID_ARGUMENT", &["state", "running"]),
        (
            "session_close",
            json!({ "session": "room", "processes": "leave" }),
            "INVALID_ARGUMENT",
            &["processes", "keep"],
        ),
        ("session_close", json!({ "session": "room" }), "INVALID_ARGUMENT", &["processes"]),
    ]
}

#[test]
fn each_bad_argument_is_named_and_nothing_changes() {
    let site = Site::new();
    let mut scene = scene(&site);
    let rows = rows(&site, &scene);
    let client = &mut scene.client;
    let mut before = everything(client);
    let mut wrong = Vec::new();
    for (tool, arguments, code, words) in rows {
        let shown = format!("{tool} {arguments:.200}");
        let answer = client.call(tool, arguments);
        let (found, message) =
            (answer["error"]["code"].as_str(), answer["error"]["message"].as_str().unwrap_or_default());
        let unnamed: Vec<_> = words.iter().filter(|word| !message.contains(**word)).collect();
        if found != Some(code) || !unnamed.is_empty() {
            wrong.push(format!("{shown}: not {code} naming {words:?} but {answer:.400}"));
        }
        let after = everything(client);
        if after != before {
            wrong.push(format!("{shown}: something changed: {before}\n  {after}"));
            before = after;
        }
    }
    let sent =
        client.ok("proc_send", json!({ "proc_id": scene.running, "input": "alive", "wait_ms": 5000, "until": "\n" }));
    assert_eq!(sent["output"], "alive\n", "the process hears only what it was meant to");
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn errors_tell_nothing_of_the_host() {
    // BX-15.
    let site = Site::new();
    let other = site.neighbour("");
    let mut client = site.open();
    let state = site.state();
    let hidden = [
        state.display().to_string(),
        other.agent.clone(),
        site.beside.path().join("policy.toml").display().to_string(),
        "RUST_BACKTRACE".into(),
        "src/".into(),
        "panicked".into(),
    ];
    for (tool, arguments) in [
        ("run", json!({ "argv": ["true"], "cwd": state })),
        ("run", json!({ "argv": ["/nonexistent/program"] })),
        ("run", json!({ "argv": ["sudo"] })),
        ("proc_send", json!({ "proc_id": "p_0000000000000000", "input": "x" })),
        ("session_close", json!({ "session": "none", "processes": "stop" })),
        ("config_get", json!({ "key": "no.such.key" })),
        ("config_set", json!({ "key": "filesystem.allowed_roots", "value": ["/"] })),
    ] {
        let asked = arguments.to_string();
        let answer = client.call(tool, arguments).to_string();
        // What the caller wrote may be repeated to him.
        for secret in hidden.iter().filter(|secret| !asked.contains(secret.as_str())) {
            assert!(!answer.contains(secret.as_str()), "{tool} {asked}: {answer}");
        }
    }
}
