//! Races between a client's wish and a process's own end, thousands of times.

use crate::ends::{SOON, eventually, marker, processes_with};
use crate::site::Site;
use crate::{Moments, times};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

#[test]
fn a_stop_that_races_a_natural_end_comes_to_one_end() {
    // TM-05.
    let site = Site::new();
    let mut client = site.open();
    let mut moments = Moments::new();
    let mut ends = [0, 0];
    for round in 0..times(10_000) {
        let seconds = format!("0.00{}", moments.next(6));
        let arguments = json!({ "argv": ["sleep", seconds], "initial_read_timeout_ms": 0 });
        let proc_id = client.ok("proc_start", arguments)["proc_id"].clone();
        let wait = Instant::now() + Duration::from_micros(moments.next(5000));
        client.message_within(wait - Instant::now(), |_| false);
        let stopped = client.ok("proc_stop", json!({ "proc_id": proc_id, "signal": "KILL", "grace_ms": 0 }));
        let read = client.ok("proc_read", json!({ "proc_id": proc_id, "timeout_ms": 0 }));
        let end = |answer: &Value| {
            [&answer["state"], &answer["reason"], &answer["exit_code"], &answer["signal"]].map(Value::clone)
        };
        assert_eq!(end(&stopped), end(&read), "round {round}");
        match stopped["reason"].as_str() {
            Some("exit") => assert_eq!(stopped["exit_code"], 0, "round {round}: {stopped}"),
            // It may end by itself after it was asked to.
            Some("stopped") => {
                assert!(stopped["signal"] == "SIGKILL" || stopped["exit_code"] == 0, "round {round}: {stopped}");
            }
            _ => panic!("round {round}: {stopped}"),
        }
        ends[usize::from(stopped["reason"] == "stopped")] += 1;
        client.ok("proc_remove", json!({ "proc_id": proc_id }));
    }
    println!("{} ended by themselves, {} were stopped", ends[0], ends[1]);
}

#[test]
fn calls_cancelled_at_any_moment_leave_nothing() {
    // TM-16 and BX-05.
    let (site, marker) = (Site::new(), marker());
    let mut client = site.open();
    let mut moments = Moments::new();
    for round in 0..times(10_000) {
        let tool = if round % 2 == 0 { "run" } else { "proc_start" };
        let call = client.begin(tool, json!({ "command": format!("exec -a {marker} sleep 1000") }));
        let moment = Instant::now() + Duration::from_micros(moments.next(5000));
        client.message_within(moment - Instant::now(), |_| false);
        client.cancel(call);
        if moments.next(4) == 0 {
            client.cancel(call);
        }
        if round % 50 == 49 {
            // A start that was answered before it was canceled goes on, as it should.
            client.ok("proc_stop", json!({ "session": "default", "grace_ms": 0 }));
            client.take_heard();
        }
    }
    client.ok("proc_stop", json!({ "session": "default", "grace_ms": 0 }));
    eventually("all are gone", SOON, || processes_with(&marker).is_empty());
    assert_eq!(client.ok("proc_list", json!({ "state": "running" }))["processes"], json!([]));
    assert_eq!(client.ok("run", json!({ "argv": ["echo", "on"] }))["stdout"], "on\n");
    let broker = client.pid();
    client.hang_up();
    client.wait(SOON);
    site.nothing_is_left(broker, &marker);
}
