//! `proc_read`: cursors, waiting, lines, chunks; every byte once, and never later than asked.

use crate::mcp::Client;
use crate::site::Site;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn start(client: &mut Client, script: &str) -> Value {
    client.ok("proc_start", json!({ "command": script, "initial_read_timeout_ms": 0 }))["proc_id"].clone()
}

/// A process that says each line it is sent, to stdout.
fn echo(client: &mut Client) -> Value {
    client.ok("proc_start", json!({ "argv": ["cat"], "initial_read_timeout_ms": 0 }))["proc_id"].clone()
}

fn read(client: &mut Client, proc_id: &Value, mut arguments: Value) -> Value {
    arguments["proc_id"] = proc_id.clone();
    client.ok("proc_read", arguments)
}

#[test]
fn a_read_goes_on_where_the_last_one_ended_and_a_cursor_goes_anywhere() {
    let site = Site::new();
    let mut client = site.open();
    let proc_id = echo(&mut client);
    for word in ["one", "two", "three"] {
        client.ok("proc_send", json!({ "proc_id": proc_id, "input": word }));
        let got = read(&mut client, &proc_id, json!({ "until": "\n", "timeout_ms": 10_000 }));
        assert_eq!(got["output"], format!("{word}\n"), "{got}");
    }
    let again = read(&mut client, &proc_id, json!({ "cursor": 4, "timeout_ms": 0 }));
    assert_eq!((&again["output"], &again["next_cursor"]), (&json!("two\nthree\n"), &json!(14)), "{again}");
    assert_eq!(
        (&again["total_bytes"], &again["total_lines"], &again["dropped_bytes"]),
        (&json!(14), &json!(3), &json!(0))
    );
    let part = read(&mut client, &proc_id, json!({ "cursor": 0, "max_bytes": 5, "timeout_ms": 0 }));
    assert_eq!((&part["output"], &part["next_cursor"], &part["more"]), (&json!("one\nt"), &json!(5), &json!(true)));
    let end = read(&mut client, &proc_id, json!({ "cursor": 14, "timeout_ms": 0 }));
    assert_eq!((&end["output"], &end["more"]), (&json!(""), &json!(false)));
}

#[test]
fn until_returns_at_once_also_for_what_was_already_said() {
    let site = Site::new();
    let mut client = site.open();
    let proc_id = start(&mut client, "echo 'answer: 42'; printf 'a\\0b'; sleep 1000");
    read(&mut client, &proc_id, json!({ "until": "b$", "timeout_ms": 10_000 }));
    for (pattern, matched) in [("answer: \\d+", "answer: 42"), ("(?i)ANSWER", "answer"), ("\\0", "\0"), ("b$", "b")] {
        let begun = Instant::now();
        let got = read(&mut client, &proc_id, json!({ "cursor": 0, "until": pattern, "timeout_ms": 10_000 }));
        assert_eq!(got["matched"], matched, "{pattern}: {got}");
        assert!(begun.elapsed() < Duration::from_secs(2), "{pattern}: {:?}", begun.elapsed());
    }
    let begun = Instant::now();
    let got = read(&mut client, &proc_id, json!({ "cursor": 0, "until": "never", "timeout_ms": 300 }));
    assert_eq!((got.get("matched"), got["output"].as_str()), (None, Some("answer: 42\na\0b")), "{got}");
    assert!(begun.elapsed() >= Duration::from_millis(300), "control");
}

#[test]
fn until_finds_a_match_that_comes_in_pieces() {
    let site = Site::new();
    let mut client = site.open();
    let script = "for part in pro mpt '> '; do printf \"$part\"; sleep 0.1; done; sleep 1000";
    let proc_id = start(&mut client, script);
    let got = read(&mut client, &proc_id, json!({ "cursor": 0, "until": "prompt> ", "timeout_ms": 10_000 }));
    assert_eq!((&got["matched"], &got["output"]), (&json!("prompt> "), &json!("prompt> ")), "{got}");
}

#[test]
fn a_read_returns_when_its_time_is_over_and_not_much_later() {
    let site = Site::new();
    let mut client = site.open();
    let proc_id = start(&mut client, "sleep 1000");
    let busy = start(&mut client, "yes");
    for wait in [0_u64, 50, 200, 500] {
        let begun = Instant::now();
        let got = read(&mut client, &proc_id, json!({ "timeout_ms": wait }));
        let took = begun.elapsed();
        assert_eq!((&got["output"], &got["state"]), (&json!(""), &json!("running")));
        // The client, a debug build and a flood on two processors cost something too.
        let late = took.saturating_sub(Duration::from_millis(wait));
        assert!(took >= Duration::from_millis(wait) && late < Duration::from_millis(250), "{wait}: {took:?}");
    }
    client.ok("proc_stop", json!({ "proc_id": busy }));
}

#[test]
fn silence_after_output_ends_the_wait_and_silence_before_it_does_not() {
    let site = Site::new();
    let mut client = site.open();
    let proc_id = start(&mut client, "sleep 0.6; for i in 1 2 3 4 5; do echo $i; sleep 0.05; done; sleep 1000");
    let begun = Instant::now();
    let got = read(&mut client, &proc_id, json!({ "quiet_ms": 400, "timeout_ms": 10_000 }));
    let took = begun.elapsed();
    assert_eq!(got["output"], "1\n2\n3\n4\n5\n", "{got}");
    assert!((Duration::from_millis(700)..Duration::from_secs(5)).contains(&took), "{took:?}");
}

#[test]
fn an_end_ends_the_wait_and_the_last_word_is_there() {
    let site = Site::new();
    let mut client = site.open();
    let proc_id = echo(&mut client);
    let call = client.begin("proc_read", json!({ "proc_id": proc_id, "until": "never", "timeout_ms": 10_000 }));
    client.ok("proc_send", json!({ "proc_id": proc_id, "input": "last", "eof": true }));
    let begun = Instant::now();
    let got = client.finish("proc_read", call);
    assert_eq!((&got["output"], &got["state"], &got["exit_code"]), (&json!("last\n"), &json!("exited"), &json!(0)));
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn output_of_a_command_that_ends_at_once_is_always_there() {
    // TM-11.
    let site = Site::new();
    let mut client = site.open();
    for run in 0..60 {
        let proc_id = start(&mut client, "head -c 30000 /dev/zero | tr '\\0' x; exit 4");
        let got = read(
            &mut client,
            &proc_id,
            json!({ "cursor": 0, "max_bytes": 40_000, "until": "y", "timeout_ms": 10_000 }),
        );
        let length = got["output"].as_str().expect("text").len();
        assert_eq!((length, &got["state"], &got["exit_code"]), (30_000, &json!("exited"), &json!(4)), "run {run}");
        client.ok("proc_remove", json!({ "proc_id": proc_id }));
    }
}

#[test]
fn lines_have_numbers_and_streams_and_times() {
    let site = Site::new();
    let mut client = site.open();
    let script = "import sys, time
for i in range(1, 101):
    print('line', i, file=sys.stdout if i % 10 else sys.stderr, flush=True)
    if i % 10 in (0, 9): time.sleep(0.01)";
    let proc_id = client.ok("run", json!({ "argv": ["python3", "-c", script] }))["proc_id"].clone();
    let got = read(&mut client, &proc_id, json!({ "format": "lines", "from_line": 8, "lines": 4 }));
    let lines = got["lines"].as_array().expect("lines");
    let shown: Vec<_> =
        lines.iter().map(|line| (&line["number"], line["stream"].as_str(), line["text"].as_str())).collect();
    assert_eq!(
        shown,
        [
            (&json!(8), Some("stdout"), Some("line 8")),
            (&json!(9), Some("stdout"), Some("line 9")),
            (&json!(10), Some("stderr"), Some("line 10")),
            (&json!(11), Some("stdout"), Some("line 11")),
        ]
    );
    assert!(lines.windows(2).all(|pair| pair[0]["ts"].as_str() <= pair[1]["ts"].as_str()), "{got}");
    let tail = read(&mut client, &proc_id, json!({ "tail_lines": 3, "format": "lines" }));
    let numbers: Vec<_> = tail["lines"].as_array().expect("lines").iter().map(|line| line["number"].clone()).collect();
    assert_eq!(numbers, [98, 99, 100]);
    let text = read(&mut client, &proc_id, json!({ "tail_lines": 2 }));
    assert_eq!(text["output"], "line 99\nline 100\n", "{text}");
    let text = read(&mut client, &proc_id, json!({ "from_line": 99 }));
    assert_eq!(text["output"], "line 99\nline 100\n", "{text}");
    assert_eq!(text["total_lines"], 100);
}

#[test]
fn one_stream_can_be_read_alone() {
    let site = Site::new();
    let mut client = site.open();
    let script = "echo one; sleep 0.05; echo two >&2; sleep 0.05; echo three";
    let proc_id = client.ok("run", json!({ "command": script }))["proc_id"].clone();
    for (stream, text) in [("all", "one\ntwo\nthree\n"), ("stdout", "one\nthree\n"), ("stderr", "two\n")] {
        let got = read(&mut client, &proc_id, json!({ "cursor": 0, "stream": stream }));
        assert_eq!((&got["output"], &got["next_cursor"]), (&json!(text), &json!(14)), "{stream}: {got}");
    }
}

#[test]
fn chunks_carry_rising_numbers_and_lose_nothing() {
    let site = Site::new();
    let mut client = site.open();
    let script = "for i in $(seq 1 200); do echo out $i; echo err $i >&2; done";
    let proc_id = client.ok("run", json!({ "command": script }))["proc_id"].clone();
    let (mut cursor, mut seen, mut text) = (json!(0), Vec::new(), [String::new(), String::new()]);
    loop {
        let got = read(&mut client, &proc_id, json!({ "cursor": cursor, "format": "chunks", "max_bytes": 700 }));
        for chunk in got["chunks"].as_array().expect("chunks") {
            seen.push(chunk["seq"].as_u64().expect("a number"));
            let stream = usize::from(chunk["stream"] == "stderr");
            text[stream].push_str(chunk["data"].as_str().expect("text"));
        }
        cursor = got["next_cursor"].clone();
        if got["more"] == false {
            break;
        }
    }
    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "{seen:?}");
    for (stream, word) in text.iter().zip(["out", "err"]) {
        let expected: String = (1..=200).map(|number| format!("{word} {number}\n")).collect();
        assert!(*stream == expected, "{stream}");
    }
}

#[test]
fn terminal_codes_are_taken_out_when_asked() {
    let site = Site::new();
    let mut client = site.open();
    let argv = json!(["printf", "\\033[1;31mred\\033[0m \\033]0;title\\007plain\\033[K\\n"]);
    let proc_id = client.ok("run", json!({ "argv": argv }))["proc_id"].clone();
    let raw = read(&mut client, &proc_id, json!({ "cursor": 0 }));
    assert_eq!(raw["output"], "\u{1b}[1;31mred\u{1b}[0m \u{1b}]0;title\u{7}plain\u{1b}[K\n");
    let clean = read(&mut client, &proc_id, json!({ "cursor": 0, "strip_ansi": true }));
    assert_eq!((&clean["output"], &clean["next_cursor"]), (&json!("red plain\n"), &raw["next_cursor"]));
    let found = read(&mut client, &proc_id, json!({ "cursor": 0, "strip_ansi": true, "until": "red plain" }));
    assert_eq!(found["matched"], "red plain", "a pattern sees what a person sees: {found}");
}

#[test]
fn readers_at_once_with_cursors_each_get_every_byte_once() {
    // BX-06: while it is being written, two readers at once, in pieces of different sizes.
    let site = Site::new();
    let mut client = site.open();
    let proc_id = start(&mut client, "for i in $(seq 1 20000); do echo $i; done");
    let expected: String = (1..=20_000).map(|number| format!("{number}\n")).collect();
    let mut readers = [(700, 0_u64, String::new()), (9000, 0, String::new()), (13, 108_000, String::new())];
    let mut open = true;
    while open {
        let calls: Vec<u64> = readers
            .iter()
            .map(|(piece, cursor, _)| {
                let arguments = json!({ "proc_id": proc_id, "cursor": cursor, "max_bytes": piece, "timeout_ms": 2000 });
                client.begin("proc_read", arguments)
            })
            .collect();
        open = false;
        for (call, (_, cursor, text)) in calls.into_iter().zip(&mut readers) {
            let got = client.finish("proc_read", call);
            if got.get("error").is_some() {
                // The third begins far ahead, where nothing may be yet.
                assert_eq!((*cursor, &got["error"]["code"]), (108_000, &json!("INVALID_ARGUMENT")), "{got}");
                open = true;
                continue;
            }
            text.push_str(got["output"].as_str().expect("text"));
            *cursor = got["next_cursor"].as_u64().expect("a number");
            open |= got["more"] == true || got["state"] == "running";
        }
    }
    assert!(readers[0].2 == expected && readers[1].2 == expected);
    assert!(readers[2].2 == expected[108_000..]);
}

#[test]
fn readers_at_once_without_cursors_share_the_output_between_them() {
    let site = Site::new();
    let mut client = site.open();
    let proc_id = start(&mut client, "for i in $(seq 1 5000); do echo $i; done");
    let mut lines: Vec<u32> = Vec::new();
    let mut rest = String::new();
    let mut open = true;
    while open {
        let calls: Vec<u64> =
            (0..4).map(|_| client.begin("proc_read", json!({ "proc_id": proc_id, "timeout_ms": 1000 }))).collect();
        let mut pieces: Vec<(u64, String)> = Vec::new();
        open = false;
        for call in calls {
            let got = client.finish("proc_read", call);
            let text = got["output"].as_str().expect("text").to_owned();
            pieces.push((got["next_cursor"].as_u64().expect("a number"), text));
            open |= got["more"] == true || got["state"] == "running";
        }
        // Each piece says where it ends, so their order is known.
        pieces.sort();
        rest.extend(pieces.into_iter().map(|(_, text)| text));
        if let Some(end) = rest.rfind('\n') {
            let tail = rest.split_off(end + 1);
            lines.extend(rest.lines().map(|line| line.parse::<u32>().expect("a number")));
            rest = tail;
        }
    }
    assert!(lines == (1..=5000).collect::<Vec<_>>(), "{} lines", lines.len());
}
