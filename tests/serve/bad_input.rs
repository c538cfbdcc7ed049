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

/// Tool, arguments, and words that the message must hold. `RUNNING` and `ENDED` stand for processes.
type Row = (&'static str, &'static str, &'static str);

const INVALID_ARGUMENT: &[Row] = &[
    ("run", r#"{}"#, "command argv"),
    ("run", r#"{"command":"true","argv":["true"]}"#, "command argv"),
    ("proc_start", r#"{}"#, "command argv"),
    ("proc_start", r#"{"command":"true","argv":["true"]}"#, "command argv"),
    ("run", r#"{"argv":["true"],"comand":"x"}"#, "comand `command`"),
    ("run", r#"{"argv":["true"],"timeout":5}"#, "timeout timeout_ms"),
    ("proc_read", r#"{"proc_id":"RUNNING","curser":5}"#, "curser cursor"),
    ("proc_list", r#"{"all":true}"#, "all"),
    ("run", r#"{"argv":["true"],"cwd":"/tmp/a\u0000b"}"#, "NUL"),
    ("run", r#"{"argv":["true"],"env":{"A=B":"x"}}"#, "A=B `=`"),
    ("run", r#"{"argv":["true"],"env":{"":"x"}}"#, "name"),
    ("run", r#"{"argv":["true"],"env":{"A\u0000":"x"}}"#, "NUL"),
    ("run", r#"{"argv":["true"],"env":{"A":"x\u0000y"}}"#, "NUL"),
    ("run", r#"{"argv":["true"],"env":{"A":5}}"#, "env"),
    ("session_open", r#"{"session":"other","env":{"A=B":"x"}}"#, "A=B"),
    ("run", r#"{"argv":["cat"],"stdin":"not base64!","stdin_encoding":"base64"}"#, "stdin base64"),
    ("proc_send", r#"{"proc_id":"RUNNING","input":"a","encoding":"base64"}"#, "input base64"),
    ("run", r#"{"argv":["true"],"encoding":"latin1"}"#, "latin1 utf8 base64"),
    ("proc_read", r#"{"proc_id":"RUNNING","until":"("}"#, "until regex"),
    ("proc_start", r#"{"argv":["true"],"until":"[z-a]"}"#, "until regex"),
    ("proc_send", r#"{"proc_id":"RUNNING","input":"x","wait_ms":10,"until":"a{99999999}"}"#, "until"),
    ("proc_read", r#"{"proc_id":"RUNNING","until":"x{1000}{1000}{1000}"}"#, "until"),
    ("proc_read", r#"{"proc_id":"ENDED","cursor":7}"#, "cursor 6"),
    ("proc_read", r#"{"proc_id":"ENDED","cursor":9223372036854775807}"#, "cursor"),
    ("proc_read", r#"{"proc_id":"ENDED","cursor":18446744073709551615}"#, "cursor"),
    ("proc_read", r#"{"proc_id":"ENDED","cursor":-1}"#, "cursor"),
    ("proc_read", r#"{"proc_id":"ENDED","cursor":"0"}"#, "cursor"),
    ("proc_read", r#"{"proc_id":"RUNNING","stream":"stdin"}"#, "stream stderr"),
    ("proc_read", r#"{"proc_id":"RUNNING","format":"xml"}"#, "format chunks"),
    ("proc_read", r#"{"proc_id":"RUNNING","format":"screen"}"#, "screen pty"),
    ("proc_read", r#"{"proc_id":"RUNNING","timeout_ms":10001}"#, "timeout_ms 10000"),
    ("proc_start", r#"{"argv":["true"],"initial_read_timeout_ms":5001}"#, "initial_read_timeout_ms 5000"),
    ("run", r#"{"argv":["true"],"timeout_ms":0}"#, "timeout_ms"),
    ("run", r#"{"argv":["true"],"timeout_ms":-1}"#, "timeout_ms"),
    ("run", r#"{"argv":["true"],"timeout_ms":1.5}"#, "timeout_ms"),
    ("run", r#"{"argv":["true"],"timeout_ms":"1e3"}"#, "timeout_ms"),
    ("run", r#"{"argv":["true"],"timeout_ms":1000000000000}"#, "timeout_ms"),
    ("run", r#"{"argv":["true"],"max_output_bytes":1000000000000}"#, "max_output_bytes"),
    ("proc_resize", r#"{"proc_id":"ENDED","rows":5,"cols":5}"#, "pty"),
    ("proc_resize", r#"{"proc_id":"RUNNING","rows":0,"cols":80}"#, "rows"),
    ("proc_signal", r#"{"proc_id":"RUNNING","signal":"SEGV"}"#, "SEGV INT"),
    ("proc_signal", r#"{"proc_id":"RUNNING","signal":9}"#, "signal"),
    ("proc_signal", r#"{"proc_id":"RUNNING"}"#, "signal"),
    ("proc_stop", r#"{}"#, "proc_id session"),
    ("proc_stop", r#"{"proc_id":"RUNNING","session":"room"}"#, "proc_id session"),
    ("proc_stop", r#"{"proc_id":"RUNNING","signal":"NOPE"}"#, "NOPE"),
    ("proc_read", r#"{}"#, "proc_id"),
    ("proc_read", r#"{"proc_id":5}"#, "proc_id"),
    ("proc_list", r#"{"state":"asleep"}"#, "state running"),
    ("session_close", r#"{"session":"room","processes":"leave"}"#, "processes keep"),
    ("session_close", r#"{"session":"room"}"#, "processes"),
];

/// `WORKSPACE` holds a file `file`. Links, which lead into the cell at most, are in `files::directory`.
const PATH_NOT_ALLOWED: &[Row] = &[
    ("run", r#"{"argv":["true"],"cwd":"/srv"}"#, "below"),
    ("run", r#"{"argv":["true"],"cwd":"/"}"#, "below"),
    ("run", r#"{"argv":["true"],"cwd":"/etc"}"#, "/etc"),
    ("run", r#"{"argv":["true"],"cwd":"~"}"#, "~"),
    ("run", r#"{"argv":["true"],"cwd":"WORKSPACE/../x"}"#, ".."),
    ("run", r#"{"argv":["true"],"cwd":"WORKSPACE/file"}"#, "directory"),
    ("run", r#"{"argv":["true"],"cwd":"/tmp/missing"}"#, "directory"),
    ("run", r#"{"argv":["true"],"cwd":""}"#, "below"),
    ("proc_start", r#"{"argv":["true"],"cwd":"/etc"}"#, "/etc"),
    ("session_open", r#"{"session":"other","cwd":"/etc"}"#, "/etc"),
];

const COMMAND_NOT_ALLOWED: &[Row] = &[
    ("run", r#"{"argv":["sudo","id"]}"#, "sudo blocked"),
    ("proc_start", r#"{"argv":["/usr/bin/su"]}"#, "su blocked"),
];

const PROCESS_NOT_RUNNING: &[Row] = &[
    ("proc_send", r#"{"proc_id":"ENDED","input":"x"}"#, "exit"),
    ("proc_signal", r#"{"proc_id":"ENDED","signal":"INT"}"#, "exit"),
];

#[test]
fn each_bad_argument_is_named_and_nothing_changes() {
    let site = Site::new();
    site.workspace.file("file", "text");
    let mut scene = scene(&site);
    let id = |of: &Value| of.as_str().expect("an id").to_owned();
    let (running, ended, place) = (id(&scene.running), id(&scene.ended), site.workspace.path().display().to_string());
    let fill = |text: &str| text.replace("RUNNING", &running).replace("ENDED", &ended).replace("WORKSPACE", &place);
    let client = &mut scene.client;
    let mut wrong = Vec::new();
    for (code, rows) in [
        ("INVALID_ARGUMENT", INVALID_ARGUMENT),
        ("PATH_NOT_ALLOWED", PATH_NOT_ALLOWED),
        ("COMMAND_NOT_ALLOWED", COMMAND_NOT_ALLOWED),
        ("PROCESS_NOT_RUNNING", PROCESS_NOT_RUNNING),
    ] {
        for (tool, arguments, words) in rows {
            let before = everything(client);
            let answer = client.call(tool, serde_json::from_str(&fill(arguments)).expect("JSON"));
            let message = answer["error"]["message"].as_str().unwrap_or_default();
            let named = words.split(' ').all(|word| message.contains(word));
            if answer["error"]["code"] != code || !named {
                wrong.push(format!("{tool} {arguments}: not {code} naming {words} but {answer:.400}"));
            }
            let after = everything(client);
            if after != before {
                wrong.push(format!("{tool} {arguments}: something changed: {before}\n  {after}"));
            }
        }
    }
    let ask = json!({ "proc_id": running, "input": "alive", "wait_ms": 5000, "until": "\n" });
    assert_eq!(client.ok("proc_send", ask)["output"], "alive\n", "the process hears only what it was meant to");
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
