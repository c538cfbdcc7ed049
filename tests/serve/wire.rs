//! The wire: whatever comes in, the server answers as the protocol says and goes on. One row per attack.

use crate::mcp::{Client, is_response};
use crate::server::PATIENCE;
use crate::site::Site;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// What must come of some bytes, before the ping behind them is answered.
#[derive(Debug, Clone, Copy)]
enum Fate {
    /// Nothing at all is said.
    Silence,
    /// One error with this code.
    Error(i64),
    /// One error, whichever; or one tool error. Never a success.
    Refusal,
    /// So many errors.
    Errors(usize),
    /// An answer under the very id that was sent, or an error.
    EchoOrError,
}

use Fate::{EchoOrError, Error, Errors, Refusal, Silence};

/// However hard a line is to read.
const LONG: Duration = Duration::from_secs(10);

pub const PARSE: i64 = -32700;
pub const REQUEST: i64 = -32600;
const PARAMS: i64 = -32602;

fn line(text: &str) -> Vec<u8> {
    format!("{text}\n").into_bytes()
}

/// A request under the id `"it"`.
fn request(method: &str, params: &str) -> Vec<u8> {
    line(&format!(r#"{{"jsonrpc":"2.0","id":"it","method":"{method}","params":{params}}}"#))
}

fn notification(method: &str, params: &str) -> Vec<u8> {
    line(&format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#))
}

/// A call of `run` with this text as its arguments.
pub fn run(arguments: &str) -> Vec<u8> {
    request("tools/call", &format!(r#"{{"name":"run","arguments":{arguments}}}"#))
}

/// A ping with this text as its id.
pub fn ping(id: &str) -> Vec<u8> {
    line(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#))
}

fn nested(open: &str, close: &str, inside: &str, depth: usize) -> String {
    [&open.repeat(depth), inside, &close.repeat(depth)].concat()
}

/// Number, what is sent, and what must come of it.
type Row = (&'static str, Vec<u8>, Fate);

/// What is no JSON, or hardly.
fn syntax() -> Vec<Row> {
    let pad = "x".repeat(1 << 20);
    let it = ping("\"it\"");
    vec![
        ("BR-01", line(r#"{"jsonrpc":"2.0","id":1,"method":"pi"#), Error(PARSE)),
        ("BR-02 text", line("hello, server"), Error(PARSE)),
        ("BR-02 empty", line(""), Silence),
        ("BR-02 blank", line("  \t "), Silence),
        ("BR-03", request("ping", &format!(r#"{{"_meta":{{"pad":"{pad}"}}}}"#)), EchoOrError),
        ("BR-05", run_with_bytes(b"{\"argv\":[\"echo\",\"\xff\xfe\"]}"), Error(PARSE)),
        ("BR-06 before", [b"\0\0", &it[..]].concat(), Error(PARSE)),
        ("BR-06 after", [&it[..it.len() - 1], b"\0\n"].concat(), Error(PARSE)),
        ("BR-07", run(r#"{"argv":["echo","\ud800"]}"#), Refusal),
        ("BR-07 cwd", run(r#"{"argv":["pwd"],"cwd":"/tmp/\udfff"}"#), Refusal),
        ("BR-08", line(&nested("[", "]", "", 200_000)), Refusal),
        ("BR-08 open", line(&"[".repeat(200_000)), Refusal),
        ("BR-09", run(&nested("{\"a\":", "}", "1", 100_000)), Refusal),
        ("BR-15 BOM", [b"\xef\xbb\xbf", &it[..]].concat(), EchoOrError),
        ("BR-15 CRLF", [&it[..it.len() - 1], b"\r\n"].concat(), EchoOrError),
        ("BR-16", [b"Content-Length: 46\r\n\r\n".to_vec(), ping("\"after\"")].concat(), Errors(1)),
    ]
}

/// JSON that is no request, or not the one it seems.
fn requests() -> Vec<Row> {
    let mut rows = Vec::new();
    for id in ["null", "1.5", "1180591620717411303424", "{\"a\":1}", "[1]", "true"] {
        rows.push(("BR-10", ping(id), EchoOrError));
    }
    rows.push(("BR-10 long", ping(&format!("\"{}\"", "i".repeat(10_000))), EchoOrError));
    for batch in ["[]", "[1,2,3]", r#"[{"jsonrpc":"2.0","id":"it","method":"ping"}]"#] {
        rows.push(("BR-11", line(batch), Error(REQUEST)));
    }
    for text in ["5", "\"text\"", "null", "true", "{}", r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#] {
        rows.push(("BR-12", line(text), Error(REQUEST)));
    }
    rows.push(("BR-12 no method", line(r#"{"jsonrpc":"2.0","id":1}"#), Error(REQUEST)));
    rows.push(("BR-12 method 5", line(r#"{"jsonrpc":"2.0","id":1,"method":5}"#), Error(REQUEST)));
    for params in ["null", "[]", "{}", r#"{"name":5}"#, r#"{"name":"run","arguments":[]}"#] {
        rows.push(("BR-13", request("tools/call", params), Error(PARAMS)));
    }
    rows.push(("BR-13 no params", line(r#"{"jsonrpc":"2.0","id":"it","method":"tools/call"}"#), Error(PARAMS)));
    let hello = r#"{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"again","version":"1"}}"#;
    rows.push(("BR-18", request("initialize", hello), EchoOrError));
    rows
}

/// What nobody asked for.
fn unasked() -> Vec<Row> {
    let mut rows = Vec::new();
    for id in ["424242", "\"x\"", "null", "1.5"] {
        let params = format!(r#"{{"requestId":{id}}}"#);
        rows.push(("BR-17", notification("notifications/cancelled", &params), Silence));
    }
    rows.push(("BR-17 none", notification("notifications/cancelled", "{}"), Silence));
    rows.push(("BR-17 unknown", notification("notifications/never-heard-of", "{}"), Silence));
    rows.push(("BR-19", line(r#"{"jsonrpc":"2.0","id":77,"result":{}}"#), Silence));
    rows.push(("BR-19 error", line(r#"{"jsonrpc":"2.0","id":78,"error":{"code":1,"message":"no"}}"#), Silence));
    rows
}

/// Numbers and names by the thousand.
fn heaps() -> Vec<Row> {
    let mut rows = Vec::new();
    let digits = "9".repeat(100_000);
    for number in ["1e999999", "-1e999999", &digits, &format!("-{digits}"), "1e3000"] {
        rows.push(("BR-20", run(&format!(r#"{{"argv":["echo","ran"],"timeout_ms":{number}}}"#)), Refusal));
        rows.push(("BR-20", run(&format!(r#"{{"argv":["echo","ran"],"max_output_bytes":{number}}}"#)), Refusal));
    }
    let keys: Vec<String> = (0..200_000).map(|key| format!("\"k{key}\":{key}")).collect();
    let keys = format!("{{{}}}", keys.join(","));
    rows.push(("BR-21", run(&keys), Refusal));
    rows.push(("BR-21 ping", request("ping", &keys), EchoOrError));
    rows
}

fn run_with_bytes(arguments: &[u8]) -> Vec<u8> {
    let (before, after) = (&run("")[..run("").len() - 3], b"}}\n");
    [before, arguments, after].concat()
}

/// Sends the bytes with a ping behind them; everything that was said until both are answered.
fn said_about(client: &mut Client, bytes: &[u8], answers: usize) -> Vec<Value> {
    client.take_heard();
    client.raw(bytes);
    let ping = client.begin_request("ping", json!({}));
    client.response(ping);
    let mut said = client.take_heard();
    // Answers may overtake each other, but all come.
    let deadline = Instant::now() + PATIENCE;
    while said.len() < answers && Instant::now() < deadline {
        said.extend(client.message_within(deadline - Instant::now(), |_| true));
    }
    said
}

pub fn is_refusal(message: &Value) -> bool {
    message["error"]["code"].is_i64() || message["result"]["isError"] == true
}

fn judge(fate: Fate, sent: &[u8], said: &[Value]) -> bool {
    match fate {
        Silence => said.is_empty(),
        Error(code) => said.len() == 1 && said[0]["error"]["code"] == code,
        Refusal => said.len() == 1 && is_refusal(&said[0]),
        Errors(count) => said.iter().filter(|message| is_refusal(message)).count() == count,
        EchoOrError => {
            let echo = serde_json::from_slice::<Value>(sent.trim_ascii()).unwrap_or_default()["id"].clone();
            said.len() == 1 && (is_refusal(&said[0]) || is_response(&said[0], &echo) || said[0]["id"] == "it")
        }
    }
}

#[test]
fn malformed_input_is_answered_and_the_server_goes_on() {
    let site = Site::new();
    let mut client = site.open();
    let mut wrong = Vec::new();
    for (id, bytes, fate) in [syntax(), requests(), unasked(), heaps()].concat() {
        let expected = match fate {
            Silence => 0,
            Errors(count) => count + 1,
            _ => 1,
        };
        let begun = Instant::now();
        let said = said_about(&mut client, &bytes, expected);
        if !judge(fate, &bytes, &said) || begun.elapsed() > LONG {
            let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(120)]).into_owned();
            wrong.push(format!("{id}: {shown:?} came to {said:?}, which is no {fate:?}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    let ran = client.ok("run", json!({ "argv": ["echo", "alive"] }));
    assert_eq!(ran["stdout"], "alive\n", "control: the same server still works");
}

#[test]
fn a_key_that_is_said_twice_is_refused_or_the_last_one_counts_everywhere() {
    // BR-14: layers that differ in which one they take are a way around checks.
    let site = Site::new();
    let mut client = site.open();
    let call = |params: &str| request("tools/call", params);
    let (one, two) = (r#"{"argv":["echo","one"]}"#, r#"{"argv":["echo","two"]}"#);
    let good = String::from_utf8(run(two)).expect("text");
    let rows = [
        call(&format!(r#"{{"name":"run","arguments":{one},"arguments":{two}}}"#)),
        call(r#"{"name":"run","arguments":{"argv":["echo","one"],"argv":["echo","two"]}}"#),
        call(&format!(r#"{{"name":"health","name":"run","arguments":{two}}}"#)),
        good.replace("\"method\":", "\"method\":\"ping\",\"method\":").into_bytes(),
        good.replace("\"id\":", "\"id\":\"first\",\"id\":").into_bytes(),
    ];
    for row in rows {
        let said = said_about(&mut client, &row, 1);
        let shown = String::from_utf8_lossy(&row).into_owned();
        assert_eq!(said.len(), 1, "{shown}: {said:?}");
        let last = said[0]["result"]["structuredContent"]["stdout"] == "two\n" && said[0]["id"] == "it";
        assert!(is_refusal(&said[0]) || last, "{shown}: {said:?}");
    }
}

#[test]
fn before_the_handshake_nothing_else_is_served() {
    // BR-23.
    let site = Site::new();
    let mut client = site.open_silent();
    let early = client.request("tools/list", json!({}));
    assert!(early["error"]["code"].is_i64(), "{early}");
    let early = client.request("tools/call", json!({ "name": "run", "arguments": { "argv": ["true"] } }));
    assert!(early["error"]["code"].is_i64(), "{early}");
    assert!(client.greet()["serverInfo"]["name"].is_string());
    client.learn();
    assert_eq!(client.ok("run", json!({ "argv": ["true"] }))["exit_code"], 0);
}

#[test]
fn half_a_line_holds_nothing_up() {
    // BR-24: the answer to another call comes while the line is still open.
    let site = Site::new();
    let mut client = site.open();
    let other = client.begin("run", json!({ "argv": ["sleep", "0.3"] }));
    let whole = ping("\"it\"");
    let (half, rest) = whole.split_at(20);
    client.raw(half);
    assert_eq!(client.finish("run", other)["exit_code"], 0);
    assert!(client.take_heard().is_empty(), "half a line is no message");
    client.raw(rest);
    client.wait_for_message("the ping's answer", |message| is_response(message, &json!("it")));
}
