//! More output than is kept: counted to the byte, kept exactly, and nobody else's trouble.

use crate::ends::eventually;
use crate::mcp::Client;
use crate::server::PATIENCE;
use crate::site::Site;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Numbered lines of ten bytes each, so that every offset tells what must stand there.
const NUMBERED: &str =
    "import sys\nout = sys.stdout.buffer\nfor i in range(COUNT): out.write(b'%09d\\n' % i)\nout.flush()";

fn numbered(count: u64) -> Value {
    json!(["python3", "-c", NUMBERED.replace("COUNT", &count.to_string())])
}

/// Everything that is kept, from where it begins: the first offset and the bytes.
fn kept(client: &mut Client, proc_id: &Value) -> (u64, String) {
    let (mut first, mut text, mut cursor) = (None, String::new(), json!(0));
    loop {
        let read = client
            .ok("proc_read", json!({ "proc_id": proc_id, "cursor": cursor, "timeout_ms": 0, "max_bytes": 60_000 }));
        let got = read["output"].as_str().expect("text");
        let end = read["next_cursor"].as_u64().expect("a number");
        if first.is_none() && !got.is_empty() {
            first = Some(end - got.len() as u64);
        }
        text.push_str(got);
        cursor = json!(end);
        if read["more"] == false {
            return (first.unwrap_or(0), text);
        }
    }
}

fn size_of(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => size_of(&entry.path()),
            Ok(meta) => meta.len(),
            Err(_) => 0,
        })
        .sum()
}

#[test]
fn the_oldest_goes_first_and_is_counted_exactly() {
    let site = Site::with("[limits]\noutput_bytes = \"256K\"");
    let mut client = site.open();
    let total = 3_000_000;
    let ran = client.ok("run", json!({ "argv": numbered(total / 10) }));
    assert_eq!((&ran["stdout_bytes"], &ran["exit_code"]), (&json!(total), &json!(0)), "{ran:.400}");
    let read = client.ok("proc_read", json!({ "proc_id": ran["proc_id"], "cursor": 0, "timeout_ms": 0 }));
    let dropped = read["dropped_bytes"].as_u64().expect("a number");
    assert_eq!((&read["total_bytes"], &read["total_lines"]), (&json!(total), &json!(total / 10)));
    let (first, text) = kept(&mut client, &ran["proc_id"]);
    assert_eq!((first, first + text.len() as u64), (dropped, total), "what is not kept is dropped, and no more");
    assert!((128 << 10..=256 << 10).contains(&text.len()), "{}", text.len());
    // The first line may be cut; from then on every line stands where its number says.
    for (at, line) in (first..).zip(text.as_bytes().iter()).filter(|(at, _)| at % 10 == 0).map(|(at, _)| {
        let start = (at - first) as usize;
        (at, &text.as_bytes()[start..(start + 10).min(text.len())])
    }) {
        assert_eq!(line, format!("{:09}\n", at / 10).as_bytes(), "at {at}");
    }
    let tail = client.ok("proc_read", json!({ "proc_id": ran["proc_id"], "tail_lines": 2, "format": "lines" }));
    assert_eq!(tail["lines"][1]["number"], total / 10, "lines are numbered over the whole output");
}

#[test]
fn nothing_is_dropped_below_the_cap() {
    let site = Site::with("[limits]\noutput_bytes = \"4M\"");
    let mut client = site.open();
    let ran = client.ok("run", json!({ "argv": numbered(300_000) }));
    let (first, text) = kept(&mut client, &ran["proc_id"]);
    assert_eq!((first, text.len()), (0, 3_000_000));
    let read = client.ok("proc_read", json!({ "proc_id": ran["proc_id"], "cursor": 0, "timeout_ms": 0 }));
    assert_eq!(read["dropped_bytes"], 0);
}

#[test]
fn a_policy_may_hold_the_writer_up_instead() {
    const CAP: u64 = 256 << 10;
    let site = Site::with("[limits]\noutput_bytes = \"256K\"\noutput_overflow = \"pause\"");
    let mut client = site.open();
    let started = client.ok("proc_start", json!({ "argv": numbered(300_000), "initial_read_timeout_ms": 0 }));
    let proc_id = &started["proc_id"];
    let total = |client: &mut Client| {
        let read = client.ok("proc_read", json!({ "proc_id": proc_id, "tail_lines": 1, "timeout_ms": 0 }));
        assert_eq!((&read["state"], &read["dropped_bytes"]), (&json!("running"), &json!(0)), "{read:.300}");
        read["total_bytes"].as_u64().expect("a number")
    };
    eventually("it is full", PATIENCE, || total(&mut client) == CAP);
    let more = client.ok("proc_read", json!({ "proc_id": proc_id, "cursor": CAP, "timeout_ms": 500 }));
    assert_eq!((&more["output"], total(&mut client)), (&json!(""), CAP), "it waits");
    let (first, text) = kept(&mut client, proc_id);
    assert_eq!((first, text.len() as u64, &text[..20]), (0, CAP, "000000000\n000000001\n"));
    client.ok("proc_remove", json!({ "proc_id": proc_id, "output_only": true }));
    let more = client.ok("proc_read", json!({ "proc_id": proc_id, "cursor": CAP, "timeout_ms": 5000, "until": "\n" }));
    assert!(
        more["output"].as_str().is_some_and(|text| text.starts_with("26214\n000026215\n")),
        "it goes on: {more:.300}"
    );
    assert_eq!(client.ok("proc_stop", json!({ "proc_id": proc_id }))["success"], true);
}

#[test]
fn a_policy_may_end_the_writer_instead() {
    let site = Site::with("[limits]\noutput_bytes = \"256K\"\noutput_overflow = \"kill\"");
    let mut client = site.open();
    let ran = client.ok("run", json!({ "argv": ["yes"] }));
    assert_eq!((&ran["state"], &ran["reason"]), (&json!("exited"), &json!("output_limit")), "{ran:.400}");
    let ran = client.ok("run", json!({ "argv": numbered(20_000) }));
    assert_eq!((&ran["reason"], &ran["stdout_bytes"]), (&json!("exit"), &json!(200_000)), "control");
}

#[test]
fn a_flood_neither_grows_the_server_nor_slows_the_others() {
    let site = Site::with("[limits]\noutput_bytes = \"1M\"");
    let mut client = site.open();
    let flood = client.ok("proc_start", json!({ "argv": ["yes"], "initial_read_timeout_ms": 0 }))["proc_id"].clone();
    let other = client.ok("proc_start", json!({ "argv": ["cat"], "initial_read_timeout_ms": 0 }))["proc_id"].clone();
    let begun = Instant::now();
    for number in 0..40 {
        let ask = json!({ "proc_id": other, "input": format!("say {number}"), "wait_ms": 10_000, "until": "\n" });
        assert_eq!(client.ok("proc_send", ask)["output"], format!("say {number}\n"));
    }
    let each = begun.elapsed() / 40;
    assert!(each < Duration::from_millis(100), "a question beside a flood takes {each:?}");
    let total = |client: &mut Client| {
        client.ok("proc_read", json!({ "proc_id": flood, "timeout_ms": 0, "tail_lines": 1 }))["total_bytes"]
            .as_u64()
            .expect("a number")
    };
    let deadline = Instant::now() + Duration::from_secs(30);
    while total(&mut client) < 200 << 20 {
        assert!(Instant::now() < deadline, "only {} bytes", total(&mut client));
    }
    client.ok("proc_stop", json!({ "proc_id": flood }));
    let (peak, disk) = (client.memory_kb("VmHWM"), size_of(&site.state()));
    assert!(peak < 40 << 10, "{peak} kB");
    assert!(disk < 8 << 20, "{disk} bytes of state for 1 MB of output");
}

#[test]
fn only_so_many_lines_are_kept_when_asked() {
    let site = Site::new();
    let mut client = site.open();
    let arguments = json!({ "argv": numbered(5000), "buffer_lines": 100, "initial_read_timeout_ms": 0 });
    let proc_id = client.ok("proc_start", arguments)["proc_id"].clone();
    // A read returns when a reply is full, which is long before the end.
    eventually("it has ended", PATIENCE, || {
        client.ok("proc_read", json!({ "proc_id": proc_id, "tail_lines": 1 }))["state"] == "exited"
    });
    let (first, text) = kept(&mut client, &proc_id);
    assert!(text.ends_with("000004998\n000004999\n") && text.lines().count() <= 101, "{} lines", text.lines().count());
    let read = client.ok("proc_read", json!({ "proc_id": proc_id, "cursor": 0, "timeout_ms": 0 }));
    assert_eq!((&read["dropped_bytes"], &read["total_lines"]), (&json!(first), &json!(5000)), "{read:.300}");
}
