//! Parameters into requests, and answers held to the schemas that were published for them.

use super::ending::{Codes, Shown};
use super::words::{Encoding, MOST_INPUT};
use super::{Operation, process, read, run, send, start, table};
use crate::broker::answer::{
    Chunk, Content, End, Excerpt, Heard, Line, Ran, Reason, Screen, Sent, Started, Stream, Usage,
};
use crate::broker::capture::Highlight;
use crate::broker::refused::{Code, Refused};
use crate::broker::request::{Filter, Form, Span, Target};
use crate::mcp::schema;
use crate::plan::command::Words;
use crate::policy::{Surface, Tools};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::time::{Duration, UNIX_EPOCH};

const TOOLS: Tools = Tools { surface: Surface::Verbs, files: true, processes: true, repl: true, system: true };

fn params<T: DeserializeOwned>(given: Value) -> T {
    serde_json::from_value(given).unwrap()
}

fn run_request(given: Value) -> Result<crate::broker::request::Run, Refused> {
    params::<run::Params>(given).request(&TOOLS)
}

fn says<T: std::fmt::Debug>(asked: Result<T, Refused>, words: &str) {
    let refused = asked.expect_err(words);
    assert_eq!(refused.code, Code::InvalidArgument);
    assert!(refused.message.contains(words), "{}\n  instead of {words}", refused.message);
}

#[test]
fn a_command_is_exactly_one_of_two_things() {
    says(run_request(json!({})), "exactly one of `command` and `argv` must be given; neither is");
    says(run_request(json!({ "command": "a", "argv": ["a"] })), "both of them are");
    says(run_request(json!({ "argv": [] })), "`argv` is empty");
    says(run_request(json!({ "argv": [""] })), "`argv` is empty");
    says(run_request(json!({ "argv": ["a", "b\0"] })), "`argv` contains a NUL byte");
    says(run_request(json!({ "command": "a\0" })), "`command` contains a NUL byte");
    says(run_request(json!({ "command": "a", "cwd": "\0" })), "`cwd` contains a NUL byte");
    says(run_request(json!({ "command": "a", "env": { "A=B": "" } })), "`env` has the name `A=B`");
    says(run_request(json!({ "command": "a", "env": { "": "" } })), "a name is not empty");
    says(run_request(json!({ "command": "a", "env": { "A": "\0" } })), "`env.A` contains a NUL byte");
    let asked = run_request(json!({ "argv": ["ls", "-l", ""] })).unwrap();
    assert!(matches!(asked.command.words, Words::Argv(words) if words == ["ls", "-l", ""]));
}

#[test]
fn run_yields_by_default_on_request_and_never_without_processes_to_go_on_as() {
    let after = |given| run_request(given).unwrap().yield_after;
    assert_eq!(after(json!({ "command": "a" })), Duration::from_secs(45));
    assert_eq!(after(json!({ "command": "a", "yield_ms": 0 })), Duration::ZERO);
    assert_eq!(after(json!({ "command": "a", "yield_ms": 700, "background": false })), Duration::from_millis(700));
    assert_eq!(after(json!({ "command": "a", "yield_ms": 700, "background": true })), Duration::ZERO);
    let without = Tools { repl: false, ..TOOLS };
    let asked = params::<run::Params>(json!({ "command": "a" })).request(&without).unwrap();
    assert!(asked.yield_after > Duration::from_millis(86_400_000));
}

#[test]
fn input_is_exact_and_bounded() {
    let stdin = |text: &str, encoding: &str| {
        run_request(json!({ "command": "a", "stdin": text, "stdin_encoding": encoding })).map(|asked| asked.stdin)
    };
    assert_eq!(stdin("AAH/", "base64").unwrap(), [0, 1, 255]);
    assert_eq!(stdin("AAH/", "utf8").unwrap(), b"AAH/");
    says(stdin("AAH", "base64"), "`stdin` is not base64");
    says(stdin("?", "base64"), "accepted is the standard alphabet with padding");
    let most = BASE64_STANDARD.encode(vec![0; MOST_INPUT]);
    assert_eq!(stdin(&most, "base64").unwrap().len(), MOST_INPUT);
    says(stdin(&"x".repeat(MOST_INPUT + 1), "utf8"), "`stdin` has 1048577 bytes; at most 1048576");

    let send = |given: Value| params::<send::Params>(given).request();
    assert_eq!(send(json!({ "proc_id": "a", "input": "1+1" })).unwrap().input, b"1+1\n");
    assert_eq!(send(json!({ "proc_id": "a", "input": "", "newline": false })).unwrap().input, b"");
    let ended = send(json!({ "proc_id": "a", "eof": true })).unwrap();
    assert!(ended.eof && ended.input.is_empty());
    says(send(json!({ "proc_id": "a" })), "`input` is missing");
}

#[test]
fn patterns_see_bytes_and_lines_and_are_refused_when_they_grow() {
    let until = |pattern: &str| {
        params::<read::Params>(json!({ "proc_id": "a", "until": pattern })).request().map(|asked| asked.until.unwrap())
    };
    assert!(until(r"\0").unwrap().is_match(b"a\0b"));
    assert!(until("^>>> $").unwrap().is_match(b"x\n>>> "));
    assert!(until(r"(?-u:\xff)").unwrap().is_match(b"\xff"));
    says(until("("), "`until` is no regular expression: unclosed group");
    says(until("((((a{100}){100}){100}){100})"), "`until` is no regular expression");
}

#[test]
fn a_read_takes_one_kind_of_place() {
    let read = |given: Value| {
        let mut given = given;
        given["proc_id"] = "a".into();
        params::<read::Params>(given).request()
    };
    assert_eq!(read(json!({})).unwrap().span, Span::Next);
    assert_eq!(read(json!({ "cursor": 5 })).unwrap().span, Span::Next);
    assert_eq!(read(json!({ "tail_lines": 3 })).unwrap().span, Span::TailLines(3));
    assert_eq!(read(json!({ "from_line": 3 })).unwrap().span, Span::Lines { from: 3, count: 10_000 });
    assert_eq!(read(json!({ "lines": 3 })).unwrap().span, Span::Lines { from: 1, count: 3 });
    for given in [
        json!({ "cursor": 1, "tail_lines": 1 }),
        json!({ "cursor": 1, "lines": 1 }),
        json!({ "tail_lines": 1, "from_line": 1 }),
    ] {
        says(read(given), "exclude each other");
    }
    let asked = read(json!({ "stream": "stderr", "format": "screen", "quiet_ms": 5 })).unwrap();
    assert_eq!((asked.stream, asked.form), (Filter::Stderr, Form::Screen));
    assert_eq!((asked.timeout, asked.quiet), (Duration::from_secs(1), Some(Duration::from_millis(5))));
}

#[test]
fn stopping_takes_one_target_and_signals_by_either_name() {
    let stop = |given: Value| params::<process::StopParams>(given).request();
    let asked = stop(json!({ "proc_id": "a" })).unwrap();
    assert!(matches!(asked.target, Target::Process(_)));
    assert_eq!((asked.signal, asked.grace), (libc::SIGTERM, Duration::from_secs(2)));
    for name in ["HUP", "SIGHUP"] {
        assert_eq!(stop(json!({ "session": "s", "signal": name })).unwrap().signal, libc::SIGHUP);
    }
    says(stop(json!({})), "exactly one of `proc_id` and `session`");
    says(stop(json!({ "proc_id": "a", "session": "s" })), "exactly one of `proc_id` and `session`");
}

#[test]
fn a_terminal_has_a_size_and_pipes_have_none() {
    let start = |given: Value| params::<start::Params>(given).request();
    let size = start(json!({ "command": "a", "pty": true, "cols": 80 })).unwrap().terminal.unwrap();
    assert_eq!((size.rows, size.cols), (40, 80));
    assert!(start(json!({ "command": "a" })).unwrap().terminal.is_none());
    says(start(json!({ "command": "a", "rows": 5 })), "only with `pty` true");
}

/// Whether a value is what its schema says, and the schema says everything that is there.
fn conforms(value: &Value, schema: &Value, place: &str) {
    let kind = schema.get("type").and_then(Value::as_str);
    let fits = match kind {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("boolean") => value.is_boolean(),
        _ => kind.is_none(),
    };
    assert!(fits, "{place} is {value}, not {kind:?}");
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        assert!(value.get(name.as_str().unwrap()).is_some(), "{place} lacks {name}");
    }
    if let (Some(properties), Some(object)) = (schema.get("properties"), value.as_object()) {
        for (name, inner) in object {
            let schema = properties.get(name).unwrap_or_else(|| panic!("{place}.{name} is not in the schema"));
            conforms(inner, schema, &format!("{place}.{name}"));
        }
    }
    if let (Some(items), Some(list)) = (schema.get("items"), value.as_array()) {
        list.iter().for_each(|entry| conforms(entry, items, &format!("{place}[]")));
    }
}

fn shown<O: Operation>(answer: &O::Answer) -> Value
where
    O::Answer: Serialize,
{
    let value = serde_json::to_value(answer).unwrap();
    conforms(&value, &Value::Object(schema::output::<O::Answer>()), O::FACTS.name);
    value
}

fn end(reason: Reason, exit_code: Option<i32>, signal: Option<i32>) -> End {
    End { reason, exit_code, signal, usage: usage() }
}

fn usage() -> Usage {
    Usage { cpu: Duration::from_micros(1999), max_rss_kib: 5 }
}

fn ran(end: Option<End>, stdout: &[u8], omitted: u64) -> Ran {
    let tail = if omitted > 0 { b"tail\n".to_vec() } else { Vec::new() };
    let total = stdout.len() as u64 + omitted + tail.len() as u64;
    Ran {
        proc_id: "p".into(),
        end,
        stdout: Excerpt { head: stdout.to_vec(), tail, omitted, total },
        stderr: Excerpt::default(),
        highlights: vec![Highlight { line: 3, text: "error: x".into() }],
        duration: Duration::from_millis(12),
        cwd: "/w".into(),
        usage: usage(),
        dropped_bytes: 0,
    }
}

#[test]
fn a_run_says_how_it_ended_once_it_has() {
    let answer = |ran: &Ran, encoding| run::Answer::of(ran, Shown::new(encoding, Codes::Kept));
    let ended = answer(&ran(Some(end(Reason::Exit, Some(0), None)), b"hi\n", 0), None);
    assert_eq!(<run::Run as Operation>::summary(&ended), "exit 0 in 12 ms, 3 bytes of output");
    assert_eq!(
        shown::<run::Run>(&ended),
        json!({
            "proc_id": "p", "state": "exited", "exit_code": 0, "reason": "exit", "stdout": "hi\n", "stderr": "",
            "stdout_bytes": 3, "stderr_bytes": 0, "truncated": false, "duration_ms": 12, "cwd": "/w",
            "highlights": [{ "line": 3, "text": "error: x" }], "usage": { "cpu_ms": 1, "max_rss_kb": 5 },
        })
    );
    let running = answer(&ran(None, b"\xff\xfe", 0), None);
    assert_eq!(<run::Run as Operation>::summary(&running), "p is running after 12 ms, 2 bytes of output");
    let running = shown::<run::Run>(&running);
    assert_eq!((running.get("reason"), running.get("exit_code")), (None, None));
    assert_eq!((&running["state"], &running["invalid_utf8"]), (&json!("running"), &json!(2)));
    let killed = answer(&ran(Some(end(Reason::Memory, None, Some(libc::SIGKILL))), b"head\n", 2000), None);
    assert_eq!(<run::Run as Operation>::summary(&killed), "SIGKILL (memory) in 12 ms, 2.0 kB of output");
    let killed = shown::<run::Run>(&killed);
    assert_eq!((&killed["signal"], &killed["truncated"]), (&json!("SIGKILL"), &json!(true)));
    let text = killed["stdout"].as_str().unwrap();
    assert!(text.starts_with("head\n[") && text.ends_with("]\ntail\n"), "{text}");
    let cut = answer(&ran(None, b"\xff", 9), Some(Encoding::Base64));
    assert_eq!(shown::<run::Run>(&cut)["stdout"], "/w==", "of two pieces only the first");
}

fn heard(content: Content) -> Heard {
    Heard {
        content,
        end: Some(end(Reason::Stopped, None, Some(libc::SIGTERM))),
        next_cursor: 9,
        more: true,
        total_bytes: 9,
        total_lines: 1,
        paused: false,
        dropped_bytes: 0,
        matched: Some("m".into()),
    }
}

#[test]
fn every_form_of_a_read_keeps_to_its_schema() {
    let at = UNIX_EPOCH;
    let line = Line { number: 1, stream: Stream::Stderr, at, text: b"\x1b[31mred".to_vec() };
    let chunk = Chunk { seq: 0, stream: Stream::Stdout, at, data: b"\xff".to_vec() };
    let screen = Screen { rows: 2, cols: 3, lines: vec!["a".into()], cursor: (1, 2), title: "t".into() };
    let answer = |content: Content, encoding, codes| {
        shown::<read::Read>(&read::Answer::of(Some(heard(content)), Shown::new(encoding, codes)))
    };
    let text = answer(Content::Text(b"a\xff".to_vec()), None, Codes::Kept);
    assert_eq!((&text["output"], &text["invalid_utf8"]), (&json!("a\u{fffd}"), &json!(1)));
    assert_eq!((&text["reason"], &text["signal"]), (&json!("stopped"), &json!("SIGTERM")));
    let lines = answer(Content::Lines(vec![line]), None, Codes::Stripped);
    let shown_line = json!({ "number": 1, "stream": "stderr", "ts": "1970-01-01T00:00:00.000Z", "text": "red" });
    assert_eq!(lines["lines"], json!([shown_line]));
    assert_eq!(lines.get("output"), None);
    let chunks = answer(Content::Chunks(vec![chunk]), Some(Encoding::Base64), Codes::Kept);
    assert_eq!((&chunks["chunks"][0]["data"], chunks.get("invalid_utf8")), (&json!("/w=="), None));
    let seen = answer(Content::Screen(screen), None, Codes::Kept);
    assert_eq!((&seen["screen"], &seen["screen_cursor"]), (&json!("a"), &json!({ "row": 1, "col": 2 })));
    assert_eq!(seen["screen_title"], "t");
    let nobody = shown::<read::Read>(&read::Answer::of(None, Shown::new(None, Codes::Kept)));
    assert_eq!(nobody["state"], "no_such_process");
}

#[test]
fn what_is_started_and_sent_keeps_to_its_schema() {
    let started = Started {
        proc_id: "p".into(),
        pid: 7,
        first_output: b">>> ".to_vec(),
        next_cursor: 4,
        matched: None,
        end: None,
    };
    let started = shown::<start::Start>(&start::Answer::of(started));
    assert_eq!((&started["state"], &started["first_output"]), (&json!("running"), &json!(">>> ")));
    let mut sent = Sent { bytes_written: 4, acknowledged: true, heard: None };
    let quiet = shown::<send::Send>(&send::Answer::of(&sent, Shown::new(None, Codes::Kept)));
    assert_eq!(quiet, json!({ "acknowledged": true, "bytes_written": 4 }));
    sent.heard = Some(heard(Content::Text(b"2\n".to_vec())));
    let answered = shown::<send::Send>(&send::Answer::of(&sent, Shown::new(None, Codes::Kept)));
    assert_eq!((&answered["output"], &answered["matched"]), (&json!("2\n"), &json!("m")));
}

#[test]
fn every_operation_has_a_place_of_its_own() {
    let rows = table();
    for (at, row) in rows.iter().enumerate() {
        let same = |other: &super::Row| {
            other.facts.name == row.facts.name
                || (other.facts.family == row.facts.family && other.facts.action == row.facts.action)
        };
        assert!(!rows[..at].iter().any(same), "{}", row.facts.name);
        assert_eq!(row.input["additionalProperties"], false, "{} takes any name", row.facts.name);
    }
}
