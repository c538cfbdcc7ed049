//! Managed processes over pipes: start, send, signal, stop, list, remove.

use crate::ends::{eventually, marker, processes_with};
use crate::mcp::Client;
use crate::server::PATIENCE;
use crate::site::Site;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Starts a command and gives back its id.
fn start(client: &mut Client, arguments: Value) -> Value {
    client.ok("proc_start", arguments)["proc_id"].clone()
}

/// One read from the beginning.
fn output(client: &mut Client, proc_id: &Value) -> String {
    let read = client.ok("proc_read", json!({ "proc_id": proc_id, "cursor": 0, "timeout_ms": 0 }));
    read["output"].as_str().expect("text").to_owned()
}

#[test]
fn a_start_shows_the_first_output_and_who_it_is() {
    let (site, marker) = (Site::new(), marker());
    let mut client = site.open();
    let script = format!("echo ready; exec -a {marker} sleep 1000");
    let started = client.ok("proc_start", json!({ "command": script, "until": "ready\n" }));
    assert_eq!((&started["state"], &started["first_output"]), (&json!("running"), &json!("ready\n")), "{started}");
    assert_eq!(started["next_cursor"], 6);
    assert!(started["proc_id"].as_str().is_some_and(|id| id.starts_with('p')), "{started}");
    eventually("it runs", PATIENCE, || processes_with(&marker).len() == 1);
    let pid = started["pid"].as_u64().expect("a number");
    assert!(std::path::Path::new(&format!("/proc/{pid}")).exists(), "{started}");
    let ended = client.ok("proc_start", json!({ "command": "echo over; exit 4", "initial_read_timeout_ms": 5000 }));
    assert_eq!((&ended["state"], &ended["exit_code"], &ended["reason"]), (&json!("exited"), &json!(4), &json!("exit")));
    assert_eq!(ended["first_output"], "over\n");
}

#[test]
fn the_first_read_waits_no_longer_than_it_was_told() {
    let site = Site::new();
    let mut client = site.open();
    client.ok("run", json!({ "argv": ["true"] }));
    for (wait, least, most) in [(0, 0, 1000), (400, 400, 1500)] {
        let begun = Instant::now();
        let arguments = json!({ "argv": ["sleep", "1000"], "initial_read_timeout_ms": wait });
        assert_eq!(client.ok("proc_start", arguments)["first_output"], "");
        let took = begun.elapsed();
        assert!(took >= Duration::from_millis(least) && took < Duration::from_millis(most), "{wait}: {took:?}");
    }
}

#[test]
fn what_is_sent_is_what_arrives() {
    let site = Site::new();
    let mut client = site.open();
    let proc_id =
        start(&mut client, json!({ "argv": ["od", "-An", "-v", "-tx1", "-w1"], "initial_read_timeout_ms": 0 }));
    let mut expected = Vec::new();
    for (arguments, bytes) in [
        (json!({ "input": "a" }), &b"a\n"[..]),
        (json!({ "input": "b", "newline": false }), b"b"),
        (json!({ "input": "", "newline": true }), b"\n"),
        (json!({ "input": "é" }), "é\n".as_bytes()),
        (json!({ "input": "AP8K", "encoding": "base64", "newline": false }), b"\0\xff\n"),
        (json!({ "input": "z", "newline": false, "eof": true }), b"z"),
    ] {
        let mut arguments = arguments;
        arguments["proc_id"] = proc_id.clone();
        let sent = client.ok("proc_send", arguments.clone());
        assert_eq!((&sent["acknowledged"], &sent["bytes_written"]), (&json!(true), &json!(bytes.len())), "{arguments}");
        expected.extend_from_slice(bytes);
    }
    let read =
        client.ok("proc_read", json!({ "proc_id": proc_id, "cursor": 0, "until": "7a\n", "timeout_ms": 10_000 }));
    let seen: Vec<u8> = read["output"]
        .as_str()
        .expect("text")
        .split_whitespace()
        .map(|byte| u8::from_str_radix(byte, 16).expect("hexadecimal"))
        .collect();
    assert_eq!(seen, expected);
}

#[test]
fn a_question_and_its_answer_are_one_call() {
    let site = Site::new();
    let mut client = site.open();
    // The prompt goes to stderr; in one pipe it keeps its place behind the answer.
    let proc_id = start(&mut client, json!({ "command": "exec python3 -iq 2>&1", "until": ">>> " }));
    let ask = json!({ "proc_id": proc_id, "input": "6 * 7", "wait_ms": 10_000, "until": ">>> $" });
    let sent = client.ok("proc_send", ask);
    assert!(sent["output"].as_str().is_some_and(|text| text.contains("42\n")), "{sent}");
    assert!(sent["matched"].is_string() && sent["state"] == "running", "{sent}");
    let ask = json!({ "proc_id": proc_id, "input": "exit(3)", "wait_ms": 10_000 });
    let sent = client.ok("proc_send", ask);
    assert_eq!((&sent["state"], &sent["exit_code"]), (&json!("exited"), &json!(3)), "an end ends the wait: {sent}");
}

#[test]
fn end_of_input_ends_what_waits_for_it() {
    let site = Site::new();
    let mut client = site.open();
    let proc_id = start(&mut client, json!({ "argv": ["wc", "-c"], "initial_read_timeout_ms": 0 }));
    client.ok("proc_send", json!({ "proc_id": proc_id, "input": "12345" }));
    let sent = client
        .ok("proc_send", json!({ "proc_id": proc_id, "input": "", "newline": false, "eof": true, "wait_ms": 10_000 }));
    assert_eq!((&sent["state"], &sent["output"]), (&json!("exited"), &json!("6\n")), "{sent}");
    let (code, message) = client.refused("proc_send", json!({ "proc_id": proc_id, "input": "more" }));
    assert!(code == "PROCESS_NOT_RUNNING" && message.contains("exit"), "{code}: {message}");
}

#[test]
fn input_that_nobody_reads_is_told_and_nothing_waits_for_ever() {
    let site = Site::new();
    let mut client = site.open();
    let proc_id = start(&mut client, json!({ "argv": ["sleep", "1000"], "initial_read_timeout_ms": 0 }));
    let long = "x".repeat(300_000);
    let answer = client.call("proc_send", json!({ "proc_id": proc_id, "input": long }));
    let told = answer["acknowledged"] == false && answer["bytes_written"].as_u64() < Some(300_001);
    assert!(told || answer["error"]["code"].is_string(), "{answer}");
    assert_eq!(client.ok("run", json!({ "argv": ["echo", "on"] }))["stdout"], "on\n");
    let begun = Instant::now();
    assert_eq!(client.ok("proc_stop", json!({ "proc_id": proc_id }))["success"], true);
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn every_signal_of_the_list_arrives() {
    let site = Site::new();
    let mut client = site.open();
    for name in ["INT", "TERM", "HUP", "QUIT", "USR1", "USR2"] {
        let script = format!("trap 'echo heard {name}; exit 9' {name}; echo ready; while :; do sleep 0.01; done");
        let proc_id =
            start(&mut client, json!({ "command": script, "until": "ready\n", "initial_read_timeout_ms": 5000 }));
        let told = client.ok("proc_signal", json!({ "proc_id": proc_id, "signal": name }));
        assert_eq!(told["delivered"], true);
        let read = client.ok("proc_read", json!({ "proc_id": proc_id, "until": "heard", "timeout_ms": 10_000 }));
        assert!(read["output"].as_str().is_some_and(|text| text.contains(&format!("heard {name}"))), "{read}");
        let read = client.ok("proc_read", json!({ "proc_id": proc_id, "timeout_ms": 10_000 }));
        assert_eq!((&read["state"], &read["exit_code"]), (&json!("exited"), &json!(9)), "{name}: {read}");
    }
}

#[test]
fn a_stopped_process_says_nothing_until_it_goes_on() {
    let site = Site::new();
    let mut client = site.open();
    let script = "import time\nwhile True: print('tick', flush=True); time.sleep(0.01)";
    let proc_id = start(&mut client, json!({ "argv": ["python3", "-c", script], "until": "tick" }));
    client.ok("proc_signal", json!({ "proc_id": proc_id, "signal": "STOP" }));
    // What was on its way when it stopped.
    client.ok("proc_read", json!({ "proc_id": proc_id, "quiet_ms": 200, "timeout_ms": 5000 }));
    let read = client.ok("proc_read", json!({ "proc_id": proc_id, "timeout_ms": 500 }));
    assert_eq!((&read["output"], &read["state"]), (&json!(""), &json!("running")), "{read}");
    client.ok("proc_signal", json!({ "proc_id": proc_id, "signal": "CONT" }));
    let read = client.ok("proc_read", json!({ "proc_id": proc_id, "until": "tick", "timeout_ms": 10_000 }));
    assert!(read["matched"].is_string(), "{read}");
    client.ok("proc_signal", json!({ "proc_id": proc_id, "signal": "STOP" }));
    let stopped = client.ok("proc_stop", json!({ "proc_id": proc_id, "grace_ms": 300 }));
    assert_eq!(
        (&stopped["success"], &stopped["state"]),
        (&json!(true), &json!("exited")),
        "also a stopped one: {stopped}"
    );
}

#[test]
fn a_stop_kills_what_does_not_listen_and_everything_it_started() {
    let site = Site::new();
    let mut client = site.open();
    for (grace, script) in [
        (2000, "setsid PROBE deaf MARKER >/dev/null & exec -a MARKER sleep 1000"),
        (300, "setsid PROBE deaf MARKER >/dev/null & exec PROBE deaf MARKER"),
        (0, "(setsid PROBE deaf MARKER >/dev/null &) ; exec PROBE deaf MARKER"),
    ] {
        let marker = marker();
        let script = script.replace("MARKER", &marker).replace("PROBE", &site.probe_path());
        let proc_id = start(&mut client, json!({ "command": script, "initial_read_timeout_ms": 0 }));
        eventually("both run", PATIENCE, || processes_with(&marker).len() == 2);
        let begun = Instant::now();
        let stopped = client.ok("proc_stop", json!({ "proc_id": proc_id, "grace_ms": grace }));
        assert_eq!(processes_with(&marker), Vec::<u32>::new(), "{script}");
        assert!(begun.elapsed() < Duration::from_millis(grace + 2000), "{script}: {:?}", begun.elapsed());
        assert_eq!((&stopped["success"], &stopped["state"]), (&json!(true), &json!("exited")), "{stopped}");
        assert_eq!(stopped["reason"], "stopped", "{stopped}");
        let again = client.ok("proc_stop", json!({ "proc_id": proc_id }));
        assert_eq!(without_message(again), without_message(stopped), "the same answer again");
    }
}

fn without_message(mut answer: Value) -> Value {
    assert!(answer.as_object_mut().and_then(|fields| fields.remove("message")).is_some_and(|text| text.is_string()));
    answer
}

#[test]
fn a_stop_may_ask_with_another_signal() {
    let site = Site::new();
    let mut client = site.open();
    let script = "trap 'echo bye; exit 6' INT; echo ready; while :; do sleep 0.01; done";
    let proc_id = start(&mut client, json!({ "command": script, "until": "ready", "initial_read_timeout_ms": 5000 }));
    let stopped = client.ok("proc_stop", json!({ "proc_id": proc_id, "signal": "INT", "grace_ms": 5000 }));
    assert_eq!((&stopped["exit_code"], &stopped["reason"]), (&json!(6), &json!("stopped")), "{stopped}");
    assert_eq!(output(&mut client, &proc_id), "ready\nbye\n");
}

#[test]
fn stopping_what_is_not_there_is_an_answer_and_no_error() {
    let site = Site::new();
    let mut client = site.open();
    let answer = client.ok("proc_stop", json!({ "proc_id": "p_0000000000000000" }));
    assert_eq!((&answer["success"], &answer["state"]), (&json!(false), &json!("no_such_process")), "{answer}");
    let read = client.ok("proc_read", json!({ "proc_id": "p_0000000000000000" }));
    assert_eq!(read["state"], "no_such_process", "{read}");
    for (tool, arguments) in [
        ("proc_send", json!({ "proc_id": "p_0000000000000000", "input": "x" })),
        ("proc_signal", json!({ "proc_id": "p_0000000000000000", "signal": "INT" })),
        ("proc_resize", json!({ "proc_id": "p_0000000000000000", "rows": 10, "cols": 10 })),
        ("proc_remove", json!({ "proc_id": "p_0000000000000000" })),
    ] {
        assert_eq!(client.refused(tool, arguments).0, "PROCESS_NOT_FOUND", "{tool}");
    }
}

#[test]
fn the_list_tells_what_is_there() {
    let site = Site::new();
    let mut client = site.open();
    let ended = client.ok("run", json!({ "command": "seq 1 30; exit 2", "description": "counts" }))["proc_id"].clone();
    let running = start(&mut client, json!({ "argv": ["sleep", "1000"], "initial_read_timeout_ms": 0 }));
    let list = client.ok("proc_list", json!({ "include_output": true }));
    let entries = list["processes"].as_array().expect("a list");
    assert_eq!(entries.len(), 2, "{list}");
    let (first, second) = (&entries[0], &entries[1]);
    assert_eq!((&first["proc_id"], &second["proc_id"]), (&ended, &running), "in the order they were started");
    assert_eq!((&first["state"], &first["exit_code"], &first["reason"]), (&json!("exited"), &json!(2), &json!("exit")));
    assert_eq!((&first["total_bytes"], &first["total_lines"]), (&json!(81), &json!(30)));
    assert!(first["command"].as_str().is_some_and(|text| text.contains("seq 1 30")), "{first}");
    let recent = first["recent_output"].to_string();
    assert!(recent.contains("21") && recent.contains("30") && !recent.contains("20"), "the last ten lines: {recent}");
    assert_eq!((&second["state"], second.get("reason"), second.get("exit_code")), (&json!("running"), None, None));
    assert_eq!((&second["session"], second["pid"].is_u64()), (&json!("default"), true));
    assert!(first["usage"]["cpu_ms"].is_u64() && first["runtime_ms"].is_u64(), "{first}");
    let running_only = client.ok("proc_list", json!({ "state": "running" }));
    assert_eq!(running_only["processes"].as_array().map(Vec::len), Some(1));
    assert_eq!(running_only["processes"][0].get("recent_output"), None, "only when asked for");
    let exited = client.ok("proc_list", json!({ "state": "exited" }));
    assert_eq!(exited["processes"][0]["proc_id"], ended);
}

#[test]
fn removing_stops_first_and_forgets() {
    let (site, marker) = (Site::new(), marker());
    let mut client = site.open();
    let script = format!("echo said; exec -a {marker} sleep 1000");
    let proc_id = start(&mut client, json!({ "command": script, "until": "said" }));
    assert_eq!(client.ok("proc_remove", json!({ "proc_id": proc_id }))["removed"], true);
    assert_eq!(processes_with(&marker), Vec::<u32>::new());
    assert_eq!(client.ok("proc_read", json!({ "proc_id": proc_id }))["state"], "no_such_process");
    assert_eq!(client.ok("proc_list", json!({}))["processes"], json!([]));
    assert_eq!(client.refused("proc_remove", json!({ "proc_id": proc_id })).0, "PROCESS_NOT_FOUND");
}

#[test]
fn removing_the_output_alone_keeps_the_rest() {
    let site = Site::new();
    let mut client = site.open();
    let proc_id = client.ok("run", json!({ "command": "echo said; exit 3" }))["proc_id"].clone();
    assert_eq!(output(&mut client, &proc_id), "said\n", "control");
    assert_eq!(client.ok("proc_remove", json!({ "proc_id": proc_id, "output_only": true }))["removed"], true);
    assert_eq!(output(&mut client, &proc_id), "");
    let list = client.ok("proc_list", json!({}));
    assert_eq!(list["processes"][0]["exit_code"], 3, "{list}");
}
