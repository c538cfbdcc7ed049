//! Progress: output that arrives while a call waits, only for clients that ask, at most four times a second.

use crate::mcp::Client;
use crate::site::Site;
use serde_json::{Value, json};

fn is_progress(message: &Value) -> bool {
    message["method"] == "notifications/progress"
}

/// The progress that came with a call.
fn progress_of(client: &mut Client, id: u64, tool: &str) -> (Vec<Value>, Value) {
    let answer = client.finish(tool, id);
    (client.take_heard().into_iter().filter(is_progress).collect(), answer)
}

#[test]
fn new_output_is_told_while_a_run_waits() {
    let site = Site::new();
    let mut client = site.open();
    let script = "for i in $(seq 1 20); do echo line $i; sleep 0.1; done";
    let id = client.begin_with_progress("run", json!({ "command": script }));
    let (told, ran) = progress_of(&mut client, id, "run");
    assert_eq!(ran["stdout_bytes"], 151);
    // Two seconds at four a second, and one for each end.
    assert!((2..=10).contains(&told.len()), "{}: {told:?}", told.len());
    let figures: Vec<f64> = told.iter().map(|one| one["params"]["progress"].as_f64().expect("a number")).collect();
    assert!(figures.windows(2).all(|pair| pair[0] < pair[1]) && figures.last() <= Some(&151.0), "{figures:?}");
    assert!(told.iter().all(|one| one["params"]["progressToken"] == id), "{told:?}");
    let text: String = told.iter().map(|one| one["params"]["message"].as_str().unwrap_or_default()).collect();
    assert!(ran["stdout"].as_str().expect("text").starts_with(&text) && text.contains("line 1\n"), "{text}");
}

#[test]
fn nobody_who_did_not_ask_is_told() {
    let site = Site::new();
    let mut client = site.open();
    let id = client.begin("run", json!({ "command": "for i in $(seq 1 6); do echo line $i; sleep 0.1; done" }));
    let (told, ran) = progress_of(&mut client, id, "run");
    assert_eq!((told, &ran["exit_code"]), (Vec::new(), &json!(0)));
}

#[test]
fn a_read_that_waits_tells_too_and_a_flood_is_told_in_small_pieces() {
    let site = Site::new();
    let mut client = site.open();
    let script = "for i in $(seq 1 10); do echo tick $i; sleep 0.1; done; echo over; sleep 1000";
    let proc_id =
        client.ok("proc_start", json!({ "command": script, "initial_read_timeout_ms": 0 }))["proc_id"].clone();
    let arguments = json!({ "proc_id": proc_id, "until": "over", "timeout_ms": 10_000 });
    let id = client.begin_with_progress("proc_read", arguments);
    let (told, read) = progress_of(&mut client, id, "proc_read");
    assert!(!told.is_empty() && read["matched"].is_string(), "{told:?} {read}");
    let id = client.begin_with_progress("run", json!({ "command": "yes | head -c 20000000" }));
    let (told, _) = progress_of(&mut client, id, "run");
    let longest = told.iter().map(|one| one["params"]["message"].as_str().unwrap_or_default().len()).max();
    assert!(longest.is_none_or(|longest| longest <= 4096), "{longest:?}");
}
