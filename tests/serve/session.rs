//! Sessions: a working directory and variables that last, and processes that go together.

use crate::ends::{eventually, marker, processes_with};
use crate::mcp::Client;
use crate::server::PATIENCE;
use crate::site::Site;
use serde_json::{Value, json};

/// One entry of the session list.
fn listed(client: &mut Client, name: &str) -> Value {
    let list = client.ok("session_list", json!({}));
    let found = list["sessions"].as_array().expect("a list").iter().find(|entry| entry["session"] == name);
    found.cloned().unwrap_or(Value::Null)
}

#[test]
fn a_session_keeps_its_directory_and_its_variables() {
    let site = Site::new();
    let inside = site.workspace.directory("inside");
    let mut client = site.open();
    let opened =
        client.ok("session_open", json!({ "session": "work", "cwd": inside, "env": { "KEPT": "yes", "MORE": "a" } }));
    assert_eq!((&opened["session"], &opened["cwd"]), (&json!("work"), &json!(inside)));
    let script = "pwd; echo $KEPT $MORE";
    let place = inside.display();
    let ran = client.ok("run", json!({ "command": script, "session": "work" }));
    assert_eq!(ran["stdout"], format!("{place}\nyes a\n"));
    let ran = client.ok("run", json!({ "command": script, "session": "work", "env": { "MORE": "b" }, "cwd": "/tmp" }));
    assert_eq!(ran["stdout"], "/tmp\nyes b\n", "what a call says comes first");
    let ran = client.ok("run", json!({ "command": script, "session": "work" }));
    assert_eq!(ran["stdout"], format!("{place}\nyes a\n"), "and only in that call");
    let started = client.ok("proc_start", json!({ "command": script, "session": "work", "until": "yes a" }));
    assert_eq!(started["first_output"], format!("{place}\nyes a\n"));
    let ran = client.ok("run", json!({ "command": script }));
    assert_eq!(ran["stdout"], format!("{}\n\n", site.workspace.path().display()), "control: another session");
}

#[test]
fn a_session_that_is_not_open_is_not_found() {
    let site = Site::new();
    let mut client = site.open();
    for (tool, arguments) in [
        ("run", json!({ "argv": ["true"], "session": "nowhere" })),
        ("proc_start", json!({ "argv": ["true"], "session": "nowhere" })),
        ("proc_list", json!({ "session": "nowhere" })),
        ("session_close", json!({ "session": "nowhere", "processes": "stop" })),
    ] {
        let (code, message) = client.refused(tool, arguments);
        assert!(code == "SESSION_NOT_FOUND" && message.contains("nowhere"), "{tool}: {code}: {message}");
    }
}

#[test]
fn opening_again_changes_what_is_said_and_keeps_the_rest() {
    let site = Site::new();
    let inside = site.workspace.directory("inside");
    let mut client = site.open();
    client.ok("session_open", json!({ "session": "one", "env": { "KEPT": "yes" } }));
    client.ok("proc_start", json!({ "argv": ["sleep", "1000"], "session": "one", "initial_read_timeout_ms": 0 }));
    assert_eq!(client.ok("session_open", json!({ "session": "one", "cwd": inside }))["cwd"], json!(inside));
    let ran = client.ok("run", json!({ "command": "pwd; echo $KEPT", "session": "one" }));
    assert_eq!(ran["stdout"], format!("{}\nyes\n", inside.display()));
    assert_eq!(listed(&mut client, "one")["running"], 1, "and its processes");
    client.ok("session_close", json!({ "session": "one", "processes": "stop" }));
    client.ok("session_open", json!({ "session": "one" }));
    let ran = client.ok("run", json!({ "command": "echo [$KEPT]", "session": "one" }));
    assert_eq!(ran["stdout"], "[]\n", "a new one of that name begins anew");
}

#[test]
fn the_list_counts_what_runs_and_what_has_ended() {
    let site = Site::new();
    let mut client = site.open();
    client.ok("session_open", json!({ "session": "room" }));
    assert_eq!(
        (&listed(&mut client, "default")["running"], &listed(&mut client, "room")["running"]),
        (&json!(0), &json!(0))
    );
    client.ok("run", json!({ "argv": ["true"], "session": "room" }));
    client.ok("proc_start", json!({ "argv": ["sleep", "1000"], "session": "room", "initial_read_timeout_ms": 0 }));
    let room = listed(&mut client, "room");
    assert_eq!((&room["running"], &room["finished"]), (&json!(1), &json!(1)), "{room}");
    assert_eq!(room["cwd"], json!(site.workspace.path()));
    assert!(room["usage"]["cpu_ms"].is_u64(), "{room}");
    assert_eq!(client.ok("proc_list", json!({ "session": "room" }))["processes"].as_array().map(Vec::len), Some(2));
    assert_eq!(client.ok("proc_list", json!({ "session": "default" }))["processes"], json!([]));
}

#[test]
fn closing_stops_what_runs_there_and_nothing_else() {
    let (site, inside, outside) = (Site::new(), marker(), marker());
    let mut client = site.open();
    client.ok("session_open", json!({ "session": "room" }));
    for (session, marker) in [("room", &inside), ("room", &inside), ("default", &outside)] {
        let script = format!("exec -a {marker} sleep 1000");
        client.ok("proc_start", json!({ "command": script, "session": session, "initial_read_timeout_ms": 0 }));
    }
    eventually("all run", PATIENCE, || processes_with(&inside).len() == 2 && processes_with(&outside).len() == 1);
    let closed = client.ok("session_close", json!({ "session": "room", "processes": "stop" }));
    assert_eq!((&closed["stopped"], &closed["kept"]), (&json!(2), &json!(0)), "{closed}");
    assert_eq!((processes_with(&inside).len(), processes_with(&outside).len()), (0, 1));
    assert_eq!(listed(&mut client, "room"), Value::Null);
}

#[test]
fn what_is_kept_moves_to_the_default_session() {
    let (site, marker) = (Site::new(), marker());
    let mut client = site.open();
    client.ok("session_open", json!({ "session": "room" }));
    let script = format!("exec -a {marker} sleep 1000");
    let arguments = json!({ "command": script, "session": "room", "initial_read_timeout_ms": 0 });
    let proc_id = client.ok("proc_start", arguments)["proc_id"].clone();
    eventually("it runs", PATIENCE, || processes_with(&marker).len() == 1);
    let closed = client.ok("session_close", json!({ "session": "room", "processes": "keep" }));
    assert_eq!((&closed["stopped"], &closed["kept"]), (&json!(0), &json!(1)), "{closed}");
    assert_eq!(processes_with(&marker).len(), 1);
    let list = client.ok("proc_list", json!({ "session": "default" }));
    assert_eq!((&list["processes"][0]["proc_id"], &list["processes"][0]["session"]), (&proc_id, &json!("default")));
    assert_eq!(client.ok("proc_stop", json!({ "proc_id": proc_id }))["success"], true);
}

#[test]
fn a_whole_session_can_be_stopped_and_stays_open() {
    let (site, marker) = (Site::new(), marker());
    let mut client = site.open();
    client.ok("session_open", json!({ "session": "room" }));
    for _ in 0..3 {
        let script = format!("exec -a {marker} sleep 1000");
        client.ok("proc_start", json!({ "command": script, "session": "room", "initial_read_timeout_ms": 0 }));
    }
    eventually("all run", PATIENCE, || processes_with(&marker).len() == 3);
    let stopped = client.ok("proc_stop", json!({ "session": "room" }));
    assert_eq!((&stopped["success"], processes_with(&marker).len()), (&json!(true), 0), "{stopped}");
    let room = listed(&mut client, "room");
    assert_eq!((&room["running"], &room["finished"]), (&json!(0), &json!(3)), "{room}");
}

#[test]
fn a_name_is_plain_and_never_a_path() {
    // BX-02.
    let site = Site::new();
    let mut client = site.open();
    let long = "n".repeat(10_000);
    for name in ["", "../B", "a/b", "B\0", "a b", "tab\t", "\u{430}gent", "new\nline", long.as_str()] {
        let (code, message) = client.refused("session_open", json!({ "session": name }));
        assert_eq!(code, "INVALID_ARGUMENT", "{name:.40?}: {message}");
    }
    client.ok("session_open", json!({ "session": "b" }));
    client.ok("session_open", json!({ "session": "b-2_x" }));
    assert!(
        ["SESSION_NOT_FOUND", "INVALID_ARGUMENT"].contains(&&*client.refused("proc_list", json!({ "session": "B" })).0)
    );
}

#[test]
fn a_client_cannot_claim_to_be_another_agent() {
    // BX-03: whatever it says of itself, the policy it was started with decides.
    let site = Site::new();
    let other = site.neighbour("");
    let mut theirs = other.open();
    let secret = theirs.ok("run", json!({ "argv": ["echo", "secret"] }))["proc_id"].clone();
    let mut client = site.open_silent();
    let who = json!({ "name": other.agent, "version": "1", "agent": other.agent });
    let params = json!({
        "protocolVersion": crate::mcp::HANDSHAKE, "capabilities": {}, "clientInfo": who,
        "_meta": { "agent": other.agent },
    });
    client.request("initialize", params);
    client.notify("notifications/initialized", json!({}));
    client.learn();
    let call = json!({ "name": "proc_read", "arguments": { "proc_id": secret }, "_meta": { "agent": other.agent } });
    let response = client.request("tools/call", call);
    assert_eq!(client.content("proc_read", &response)["state"], "no_such_process");
    let (code, _) = client.refused("proc_read", json!({ "proc_id": secret, "agent": other.agent }));
    assert_eq!(code, "INVALID_ARGUMENT");
    assert_eq!(theirs.ok("proc_read", json!({ "proc_id": secret, "cursor": 0 }))["output"], "secret\n", "control");
}
