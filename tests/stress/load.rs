//! Many at once, many in a row, and more output than anyone reads.

use crate::ends::{SOON, eventually, is_alive, marker, processes_with};
use crate::mcp::Client;
use crate::server::PATIENCE;
use crate::site::Site;
use crate::times;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The server's bounds in memory: at rest, and whatever happens.
const QUIET_KB: u64 = 30 << 10;
const MOST_KB: u64 = 40 << 10;

fn cat(client: &mut Client) -> Value {
    client.ok("proc_start", json!({ "argv": ["cat"], "initial_read_timeout_ms": 0 }))["proc_id"].clone()
}

#[test]
fn thirty_two_processes_at_once_all_answer() {
    let site = Site::with("[processes]\nper_session = 32\ntotal = 32");
    let mut client = site.open();
    let all: Vec<Value> = (0..32).map(|_| cat(&mut client)).collect();
    assert_eq!(client.refused("proc_start", json!({ "argv": ["cat"] })).0, "PROC_LIMIT_EXCEEDED");
    for round in 0..times(200) {
        let calls: Vec<u64> = all
            .iter()
            .enumerate()
            .map(|(number, proc_id)| {
                let line = format!("{round}.{number}");
                client
                    .begin("proc_send", json!({ "proc_id": proc_id, "input": line, "wait_ms": 10_000, "until": "\n" }))
            })
            .collect();
        for (number, call) in calls.into_iter().enumerate() {
            assert_eq!(client.finish("proc_send", call)["output"], format!("{round}.{number}\n"));
        }
    }
    let held = client.memory_kb("VmRSS");
    println!("{held} kB with 32 processes");
    assert!(held < QUIET_KB, "{held} kB");
    client.ok("proc_stop", json!({ "session": "default" }));
    let list = client.ok("proc_list", json!({ "state": "running" }));
    assert_eq!(list["processes"], json!([]));
}

#[test]
fn a_thousand_quick_starts_and_stops_leave_nothing() {
    let (site, marker) = (Site::new(), marker());
    let mut client = site.open();
    let arguments = json!({ "command": format!("exec -a {marker} sleep 1000"), "initial_read_timeout_ms": 0 });
    let mut seen = BTreeSet::new();
    for round in 0..times(1000) {
        let proc_id = client.ok("proc_start", arguments.clone())["proc_id"].clone();
        assert!(seen.insert(proc_id.to_string()), "{proc_id} again");
        let stopped = client.ok("proc_stop", json!({ "proc_id": proc_id, "grace_ms": 100 }));
        assert_eq!((&stopped["success"], &stopped["reason"]), (&json!(true), &json!("stopped")), "round {round}");
        client.ok("proc_remove", json!({ "proc_id": proc_id }));
    }
    assert_eq!(processes_with(&marker), Vec::<u32>::new());
    assert_eq!(client.ok("proc_list", json!({}))["processes"], json!([]));
    let (broker, held) = (client.pid(), client.memory_kb("VmHWM"));
    assert!(held < MOST_KB, "{held} kB");
    client.hang_up();
    client.wait(SOON);
    site.nothing_is_left(broker, &marker);
}

#[test]
fn output_of_commands_that_end_at_once_is_always_there() {
    // TM-11.
    let site = Site::new();
    let mut client = site.open();
    for round in 0..times(1000) {
        let arguments =
            json!({ "command": format!("echo {round}; echo err >&2; exit 3"), "initial_read_timeout_ms": 0 });
        let proc_id = client.ok("proc_start", arguments)["proc_id"].clone();
        let ask =
            json!({ "proc_id": proc_id, "cursor": 0, "until": "never", "timeout_ms": 10_000, "stream": "stdout" });
        let read = client.ok("proc_read", ask);
        assert_eq!((&read["output"], &read["exit_code"]), (&json!(format!("{round}\n")), &json!(3)), "{read}");
        client.ok("proc_remove", json!({ "proc_id": proc_id }));
    }
}

#[test]
fn a_storm_of_starts_is_answered_one_by_one() {
    // TM-15: far more than may run, in a cell that may hold few processes.
    let (site, marker) = (Site::with("[limits]\nprocesses = 64\n[processes]\nper_session = 8\ntotal = 8"), marker());
    let mut client = site.open();
    let arguments = json!({ "command": format!(": {marker}; exit 0"), "initial_read_timeout_ms": 0 });
    let (mut started, mut refused) = (BTreeSet::new(), 0);
    let begun = Instant::now();
    for _ in 0..times(10) {
        let calls: Vec<u64> = (0..500).map(|_| client.begin("proc_start", arguments.clone())).collect();
        for call in calls {
            let answer = client.finish("proc_start", call);
            match answer["error"]["code"].as_str() {
                None => assert!(started.insert(answer["proc_id"].to_string()), "{answer}"),
                Some("PROC_LIMIT_EXCEEDED" | "LIMIT_EXCEEDED") => refused += 1,
                Some(_) => panic!("{answer}"),
            }
        }
    }
    println!("{} started, {refused} refused in {:?}", started.len(), begun.elapsed());
    eventually("all have ended", PATIENCE, || {
        client.ok("proc_list", json!({ "state": "running" }))["processes"] == json!([])
    });
    let list = client.ok("proc_list", json!({}));
    let listed: BTreeSet<String> =
        list["processes"].as_array().expect("a list").iter().map(|entry| entry["proc_id"].to_string()).collect();
    assert!(listed.is_subset(&started), "an id that nobody was told");
    assert_eq!(client.ok("run", json!({ "argv": ["echo", "on"] }))["stdout"], "on\n");
    eventually("no process is left", SOON, || processes_with(&marker).is_empty());
}

#[test]
fn a_gigabyte_against_a_client_that_does_not_read_costs_no_memory() {
    let (site, marker) = (Site::new(), marker());
    let mut client = site.open();
    let bytes = times(1 << 30);
    let script = format!("exec -a {marker} head -c {bytes} /dev/zero");
    let call =
        client.begin_with_progress("run", json!({ "command": script, "yield_ms": 55_000, "timeout_ms": 600_000 }));
    eventually("it runs", PATIENCE, || !processes_with(&marker).is_empty());
    let process = processes_with(&marker)[0];
    let (mut most, begun) = (0, Instant::now());
    // Nothing is read meanwhile: this loop only looks on.
    while is_alive(process) {
        most = most.max(client.memory_kb("VmRSS"));
        assert!(most < MOST_KB, "{most} kB while nobody reads");
        assert!(begun.elapsed() < Duration::from_secs(300), "the writer is held up by a client that does not read");
        std::thread::sleep(Duration::from_millis(5));
    }
    println!("{bytes} bytes in {:?}, at most {most} kB", begun.elapsed());
    let ran = client.finish("run", call);
    assert_eq!((&ran["stdout_bytes"], &ran["exit_code"]), (&json!(bytes), &json!(0)), "{ran:.300}");
    let peak = client.memory_kb("VmHWM");
    assert!(peak < MOST_KB, "{peak} kB at most");
}
