//! The wire under load: long lines, many requests, and a client that does not read.

use crate::site::Site;
use crate::wire::{PARSE, REQUEST, is_refusal, ping, run};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

#[test]
fn a_line_beyond_the_bound_is_refused_without_being_held_and_the_next_is_served() {
    // BR-04 and BR-22: with its newline at once, and long after.
    let site = Site::new();
    let mut client = site.open();
    let chunk = vec![b'x'; 1 << 20];
    for megabytes in [64, 100] {
        client.take_heard();
        client.raw(br#"{"jsonrpc":"2.0","id":"it","method":"ping","params":{"pad":""#);
        for _ in 0..megabytes {
            client.raw(&chunk);
        }
        client.raw(b"\"}}\n");
        let answer = client.wait_for_message("an error", |message| message["error"]["code"].is_i64());
        assert!([PARSE, REQUEST].contains(&answer["error"]["code"].as_i64().unwrap_or(0)), "{answer}");
        assert!(client.request("ping", json!({}))["result"].is_object(), "it goes on");
        let peak = client.memory_kb("VmHWM");
        assert!(peak < 60 << 10, "{megabytes} MB on one line made the server grow to {peak} kB");
    }
}

#[test]
fn ten_thousand_pings_have_ten_thousand_answers() {
    // BR-25.
    let site = Site::new();
    let mut client = site.open();
    let lines: Vec<u8> = (0..10_000).flat_map(|number| ping(&format!("\"p{number}\""))).collect();
    client.raw(&lines);
    let mut seen = BTreeSet::new();
    for _ in 0..10_000 {
        let answer = client.wait_for_message("an answer", |_| true);
        let id = answer["id"].as_str().expect("an id").to_owned();
        assert!(answer["result"].is_object() && seen.insert(id), "{answer}");
    }
    assert_eq!(client.message_within(Duration::from_millis(200), |_| true), None, "nothing is answered twice");
}

#[test]
fn one_id_used_by_fifty_requests_at_once_is_answered_fifty_times() {
    // BR-26.
    let site = Site::new();
    let mut client = site.open();
    let lines: Vec<u8> = (0..50).flat_map(|_| run(r#"{"argv":["echo","ran"]}"#)).collect();
    client.raw(&lines);
    for number in 0..50 {
        let answer = client.wait_for_message(&format!("answer {number}"), |message| message["id"] == "it");
        let ran = answer["result"]["structuredContent"]["stdout"] == "ran\n";
        assert!(ran || is_refusal(&answer), "{answer}");
    }
    assert_eq!(client.ok("run", json!({ "argv": ["echo", "alive"] }))["stdout"], "alive\n");
}

#[test]
fn a_client_that_stops_reading_is_waited_for_and_costs_little() {
    // BR-27.
    let site = Site::with("[limits]\ninline_bytes = \"64K\"");
    let mut client = site.open();
    let script = r#"{"argv":["head","-c","60000","/dev/zero"],"encoding":"base64"}"#;
    let (mut sent, mut bytes) = (0, Vec::new());
    for number in 0..1500 {
        let text = String::from_utf8(run(script)).expect("text").replace("\"it\"", &format!("\"n{number}\""));
        bytes.extend(text.into_bytes());
        sent += 1;
    }
    let went = client.raw_deaf(&bytes, Duration::from_secs(2));
    let held = client.memory_kb("VmRSS");
    assert!(held < 60 << 10, "{held} kB while nobody reads");
    client.raw(&bytes[went..]);
    let mut seen = BTreeSet::new();
    while seen.len() < sent {
        let answer = client.wait_for_message("an answer", |message| message.get("id").is_some());
        assert!(seen.insert(answer["id"].as_str().expect("an id").to_owned()), "{answer:.300}");
    }
    let held = client.memory_kb("VmHWM");
    assert!(held < 60 << 10, "{held} kB at most");
}
