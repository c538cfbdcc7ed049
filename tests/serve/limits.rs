//! Bounds on what one agent can pile up: processes, finished ones, time, sessions. Each is named when it is reached.

use crate::ends::{SOON, eventually, marker, processes_with};
use crate::mcp::Client;
use crate::server::PATIENCE;
use crate::site::Site;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Starts something that goes on; its id.
fn sleeper(client: &mut Client, session: &str) -> Value {
    let arguments = json!({ "argv": ["sleep", "1000"], "session": session, "initial_read_timeout_ms": 0 });
    client.ok("proc_start", arguments)["proc_id"].clone()
}

fn refusal(client: &mut Client, session: &str) -> (String, String) {
    client.refused("proc_start", json!({ "argv": ["sleep", "1000"], "session": session }))
}

#[test]
fn a_session_holds_so_many_running_processes() {
    let site = Site::with("[processes]\nper_session = 2\ntotal = 8");
    let mut client = site.open();
    client.ok("session_open", json!({ "session": "other" }));
    let first = sleeper(&mut client, "default");
    sleeper(&mut client, "default");
    let (code, message) = refusal(&mut client, "default");
    assert!(code == "PROC_LIMIT_EXCEEDED" && message.contains("per_session") && message.contains('2'), "{message}");
    let (code, _) = client.refused("run", json!({ "argv": ["sleep", "1000"], "background": true }));
    assert_eq!(code, "PROC_LIMIT_EXCEEDED", "a run in the background is one too");
    assert_eq!(client.ok("run", json!({ "argv": ["true"] }))["exit_code"], 0, "one that is waited for is not");
    sleeper(&mut client, "other");
    client.ok("proc_stop", json!({ "proc_id": first }));
    sleeper(&mut client, "default");
}

#[test]
fn all_sessions_together_hold_so_many() {
    let site = Site::with("[processes]\nper_session = 2\ntotal = 3");
    let mut client = site.open();
    client.ok("session_open", json!({ "session": "other" }));
    for session in ["default", "default", "other"] {
        sleeper(&mut client, session);
    }
    let (code, _) = client.refused("run", json!({ "argv": ["true"] }));
    assert_eq!(code, "PROC_LIMIT_EXCEEDED", "here every command counts");
    let (code, message) = refusal(&mut client, "other");
    assert!(code == "PROC_LIMIT_EXCEEDED" && message.contains("total") && message.contains('3'), "{code}: {message}");
    client.ok("proc_stop", json!({ "session": "default" }));
    sleeper(&mut client, "other");
}

#[test]
fn what_was_refused_leaves_nothing() {
    // TM-15: rejections are errors, no id is lost, nothing hangs.
    let (site, marker) = (Site::with("[processes]\nper_session = 4\ntotal = 4"), marker());
    let mut client = site.open();
    let script = format!("exec -a {marker} sleep 1000");
    let arguments = json!({ "command": script, "initial_read_timeout_ms": 0 });
    let calls: Vec<u64> = (0..60).map(|_| client.begin("proc_start", arguments.clone())).collect();
    let answers: Vec<Value> = calls.into_iter().map(|call| client.finish("proc_start", call)).collect();
    let started: Vec<&Value> = answers.iter().filter(|answer| answer.get("error").is_none()).collect();
    assert_eq!(started.len(), 4, "{answers:?}");
    let others = answers.iter().filter(|answer| answer["error"]["code"] == "PROC_LIMIT_EXCEEDED");
    assert_eq!(others.count(), 56);
    eventually("four run", PATIENCE, || processes_with(&marker).len() == 4);
    let list = client.ok("proc_list", json!({}));
    let mut listed: Vec<String> = ids(&list["processes"]);
    let mut told: Vec<String> = started.iter().map(|answer| answer["proc_id"].to_string()).collect();
    listed.sort();
    told.sort();
    assert_eq!(listed, told);
}

fn ids(entries: &Value) -> Vec<String> {
    entries.as_array().expect("a list").iter().map(|entry| entry["proc_id"].to_string()).collect()
}

#[test]
fn finished_processes_are_kept_for_their_time_and_no_longer() {
    let site = Site::with("[processes]\nkeep_finished = \"1s\"");
    let mut client = site.open();
    let running = sleeper(&mut client, "default");
    let ended = client.ok("run", json!({ "argv": ["echo", "kept"] }))["proc_id"].clone();
    let read = client.ok("proc_read", json!({ "proc_id": ended, "cursor": 0 }));
    assert_eq!(read["output"], "kept\n", "control");
    eventually("it is forgotten", Duration::from_secs(40), || {
        client.ok("proc_read", json!({ "proc_id": ended, "timeout_ms": 0 }))["state"] == "no_such_process"
    });
    assert_eq!(ids(&client.ok("proc_list", json!({}))["processes"]), [running.to_string()]);
}

#[test]
fn a_process_may_ask_for_less_time_and_never_for_more() {
    // BX-13.
    let site = Site::with("[limits]\nwall_time = \"1s\"\nmax_wall_time = \"2s\"");
    let mut client = site.open();
    for (timeout, least, most) in [(json!(300), 300, 1000), (Value::Null, 1000, 1900)] {
        let mut arguments = json!({ "argv": ["sleep", "1000"] });
        if !timeout.is_null() {
            arguments["timeout_ms"] = timeout.clone();
        }
        let begun = Instant::now();
        let ran = client.ok("run", arguments);
        let took = begun.elapsed().as_millis();
        assert_eq!(ran["reason"], "timeout", "{timeout}: {ran}");
        assert!((least..most).contains(&took), "{timeout}: {took} ms");
    }
    let begun = Instant::now();
    let answer = client.call("run", json!({ "argv": ["sleep", "1000"], "timeout_ms": 600_000 }));
    let refused = answer["error"]["message"].as_str().is_some_and(|text| text.contains("max_wall_time"));
    assert!(refused || answer["reason"] == "timeout", "{answer}");
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_managed_process_ends_when_its_time_or_its_idle_time_is_over() {
    let site = Site::new();
    let mut client = site.open();
    for (parameter, reason) in [("timeout_ms", "timeout"), ("idle_timeout_ms", "idle_timeout")] {
        let marker = marker();
        let script = format!(
            "setsid {probe} deaf {marker} > /dev/null & exec -a {marker} sleep 1000",
            probe = site.probe_path()
        );
        let mut arguments = json!({ "command": script, "initial_read_timeout_ms": 0 });
        arguments[parameter] = json!(700);
        let proc_id = client.ok("proc_start", arguments)["proc_id"].clone();
        let read = client.ok("proc_read", json!({ "proc_id": proc_id, "timeout_ms": 10_000 }));
        assert_eq!((&read["state"], &read["reason"]), (&json!("exited"), &json!(reason)), "{read}");
        eventually("all are gone", SOON, || processes_with(&marker).is_empty());
    }
}

#[test]
fn talking_to_a_process_keeps_it_awake() {
    let site = Site::new();
    let mut client = site.open();
    let arguments = json!({ "argv": ["cat"], "idle_timeout_ms": 800, "initial_read_timeout_ms": 0 });
    let proc_id = client.ok("proc_start", arguments)["proc_id"].clone();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(2000) {
        let sent =
            client.ok("proc_send", json!({ "proc_id": proc_id, "input": "x", "wait_ms": 250, "until": "never" }));
        assert_eq!(sent["state"], "running", "{sent}");
    }
    let read = client.ok("proc_read", json!({ "proc_id": proc_id, "until": "never", "timeout_ms": 10_000 }));
    assert_eq!(read["reason"], "idle_timeout", "control: left alone it ends: {read}");
}

#[test]
fn sessions_have_a_bound_too() {
    // BX-14.
    let site = Site::new();
    let mut client = site.open();
    let mut opened = 0;
    let (code, message) = loop {
        let answer = client.call("session_open", json!({ "session": format!("s{opened}") }));
        match answer["error"]["code"].as_str() {
            None => opened += 1,
            Some(code) => break (code.to_owned(), answer["error"]["message"].as_str().unwrap_or_default().to_owned()),
        }
        assert!(opened <= 10_000, "no bound at all");
    };
    assert!(code == "LIMIT_EXCEEDED" && opened >= 4 && message.contains("session"), "{opened}: {code}: {message}");
    client.ok("session_close", json!({ "session": "s0", "processes": "stop" }));
    client.ok("session_open", json!({ "session": "again" }));
    let neighbour = site.neighbour("");
    let mut other = neighbour.open();
    other.ok("session_open", json!({ "session": "theirs" }));
}

#[test]
fn finished_processes_do_not_pile_up_without_a_bound() {
    // BX-14: the registry itself is bounded, whatever `keep_finished` says.
    let site = Site::new();
    let mut client = site.open();
    let before = client.memory_kb("VmRSS");
    for _ in 0..300 {
        client.ok("run", json!({ "argv": ["echo", "x"] }));
    }
    let after = client.memory_kb("VmRSS");
    assert!(after < before + (12 << 10), "{before} kB, then {after} kB after 300 runs");
}
