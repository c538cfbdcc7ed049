//! A client with bad manners against the real rmcp service loop, over a socket pair and over pipes.

use super::connection;
use super::framing::LONGEST_LINE;
use super::outbox::Outbox;
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ServerHandler, model};
use serde_json::{Value, json};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;
use tokio::task::JoinHandle;

/// `echo` answers at once, `big` with a megabyte, `wait` when it is cancelled.
struct Fake {
    canceled: Arc<AtomicUsize>,
}

impl ServerHandler for Fake {
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let text = match &*request.name {
            "big" => "x".repeat(1 << 20),
            "wait" => {
                context.ct.cancelled().await;
                self.canceled.fetch_add(1, Ordering::Relaxed);
                String::new()
            }
            name => name.to_owned(),
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }

    fn get_info(&self) -> model::ServerConfig {
        model::ServerConfig::new(model::ServerCapabilities::builder().enable_tools().build())
    }
}

struct Client<R, W> {
    reader: BufReader<R>,
    writer: W,
    serving: JoinHandle<io::Result<()>>,
    canceled: Arc<AtomicUsize>,
}

fn serve(stdin: OwnedFd, stdout: OwnedFd) -> (JoinHandle<io::Result<()>>, Arc<AtomicUsize>) {
    let canceled = Arc::new(AtomicUsize::new(0));
    let fake = Fake { canceled: canceled.clone() };
    let (outbox, queue) = Outbox::new();
    let serving = tokio::spawn(connection::serve(fake, (Arc::new(outbox), queue), stdin, stdout));
    (serving, canceled)
}

type SocketClient = Client<tokio::net::unix::OwnedReadHalf, tokio::net::unix::OwnedWriteHalf>;

fn over_socket() -> SocketClient {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (serving, canceled) = serve(theirs.try_clone().unwrap().into(), theirs.into());
    ours.set_nonblocking(true).unwrap();
    let (reader, writer) = tokio::net::UnixStream::from_std(ours).unwrap().into_split();
    Client { reader: BufReader::new(reader), writer, serving, canceled }
}

fn over_pipes() -> Client<pipe::Receiver, pipe::Sender> {
    let (stdin, requests) = nix::unistd::pipe().unwrap();
    let (replies, stdout) = nix::unistd::pipe().unwrap();
    let (serving, canceled) = serve(stdin, stdout);
    let reader = BufReader::new(pipe::Receiver::from_owned_fd(replies).unwrap());
    let writer = pipe::Sender::from_owned_fd(requests).unwrap();
    Client { reader, writer, serving, canceled }
}

fn request(id: impl Into<Value>, method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params }).to_string()
}

fn initialize(id: &str, version: &str) -> String {
    let client = json!({ "name": "test", "version": "1" });
    request(id, "initialize", json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client }))
}

fn stateless() -> Value {
    json!({ "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    }})
}

impl<R: tokio::io::AsyncRead + Unpin, W: tokio::io::AsyncWrite + Unpin> Client<R, W> {
    async fn send(&mut self, line: impl AsRef<[u8]>) {
        self.writer.write_all(line.as_ref()).await.unwrap();
        self.writer.write_all(b"\n").await.unwrap();
    }

    async fn reply(&mut self) -> Value {
        let mut line = String::new();
        let read = tokio::time::timeout(Duration::from_secs(20), self.reader.read_line(&mut line));
        assert_ne!(read.await.expect("no reply").unwrap(), 0, "the server closed the connection");
        serde_json::from_str(&line).unwrap()
    }

    /// What is answered before a ping that is sent now.
    async fn replies(&mut self) -> Vec<Value> {
        self.send(request("alive", "ping", json!({}))).await;
        let mut replies = Vec::new();
        loop {
            match self.reply().await {
                reply if reply["id"] == "alive" => {
                    assert_eq!(reply["result"], json!({}));
                    return replies;
                }
                reply => replies.push(reply),
            }
        }
    }

    async fn initialized(mut self) -> Self {
        self.send(initialize("first", "2025-11-25")).await;
        assert_eq!(self.reply().await["result"]["protocolVersion"], "2025-11-25");
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        self
    }
}

/// One error per line sent, and the server lives on.
async fn check(rows: &[(&str, &[u8], i32, Value)]) {
    let mut client = over_socket().initialized().await;
    for (name, sent, code, id) in rows {
        client.send(sent).await;
        let replies = client.replies().await;
        let [reply] = &replies[..] else { panic!("{name}: {replies:?}") };
        assert_eq!(reply["error"]["code"], *code, "{name}: {reply}");
        assert_eq!(&reply["id"], id, "{name}: {reply}");
        assert!(reply.as_object().unwrap().contains_key("id"), "{name}");
    }
}

#[tokio::test]
async fn what_is_not_json_is_a_parse_error() {
    let deep = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}"#, "[".repeat(200_000));
    let nested = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"x","arguments":{}1{}}}}}"#,
        r#"{"a":"#.repeat(100_000),
        "}".repeat(100_000)
    );
    let arrays = "[".repeat(200_000);
    check(&[
        ("truncated", br#"{"jsonrpc":"2.0","id":1,"method":"ping""#, -32700, Value::Null),
        ("plain text", b"hello there", -32700, Value::Null),
        ("content length", b"Content-Length: 52\r", -32700, Value::Null),
        ("invalid UTF-8", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xff\"}", -32700, Value::Null),
        ("NUL before", b"\0{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", -32700, Value::Null),
        ("NUL after", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\0", -32700, Value::Null),
        ("two on a line", br#"{"jsonrpc":"2.0","id":1,"method":"ping"}{}"#, -32700, Value::Null),
        (
            "lone surrogate",
            br#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x","arguments":{"a":"\ud800"}}}"#,
            -32700,
            json!(5),
        ),
        ("200 000 arrays", arrays.as_bytes(), -32700, Value::Null),
        ("unfinished depth", deep.as_bytes(), -32700, Value::Null),
        ("100 000 objects", nested.as_bytes(), -32700, json!(7)),
    ])
    .await;
}

#[tokio::test]
async fn json_that_is_no_request_is_an_invalid_request() {
    check(&[
        ("number", b"5", -32600, Value::Null),
        ("null", b"null", -32600, Value::Null),
        ("empty object", b"{}", -32600, Value::Null),
        ("empty batch", b"[]", -32600, Value::Null),
        ("batch of numbers", b"[1,2,3]", -32600, Value::Null),
        ("batch", br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600, Value::Null),
        ("no version", br#"{"id":1,"method":"ping"}"#, -32600, json!(1)),
        ("wrong version", br#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600, json!(1)),
        ("no method", br#"{"jsonrpc":"2.0","id":1}"#, -32600, json!(1)),
        ("method is a number", br#"{"jsonrpc":"2.0","id":1,"method":5}"#, -32600, json!(1)),
        ("method and result", br#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#, -32600, json!(1)),
        ("id null", br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600, Value::Null),
        ("id float", br#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600, Value::Null),
        ("id 1.0", br#"{"jsonrpc":"2.0","id":1.0,"method":"ping"}"#, -32600, Value::Null),
        ("id 2^70", br#"{"jsonrpc":"2.0","id":1180591620717411303424,"method":"ping"}"#, -32600, Value::Null),
        ("id object", br#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600, Value::Null),
        ("id twice", br#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, -32600, Value::Null),
        ("method twice", br#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"x"}"#, -32600, json!(1)),
        (
            "name twice",
            br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}"#,
            -32600,
            json!(1),
        ),
        (
            "argument twice",
            br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":{"y":1,"y":2}}}}"#,
            -32600,
            json!(1),
        ),
        ("initialize again", initialize("again", "2024-11-05").as_bytes(), -32600, json!("again")),
    ])
    .await;
}

#[tokio::test]
async fn bad_parameters_and_methods_have_their_own_codes() {
    let long = "9".repeat(100_000);
    let digits = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"a","arguments":{{"timeout_ms":{long}}}}}}}"#
    );
    check(&[
        ("params null", br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}"#, -32602, json!(1)),
        ("no params", br#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#, -32602, json!(1)),
        ("params array", br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}"#, -32602, json!(1)),
        ("no name", br#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{}}"#, -32602, json!("a")),
        (
            "arguments text",
            br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":"b"}}"#,
            -32602,
            json!(1),
        ),
        ("meta", br#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":1}}"#, -32602, json!(1)),
        (
            "1e999999",
            br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"t":1e999999}}}"#,
            -32602,
            json!(1),
        ),
        ("100 kB of digits", digits.as_bytes(), -32602, json!(1)),
        ("unknown method", br#"{"jsonrpc":"2.0","id":1,"method":"tools/burn"}"#, -32601, json!(1)),
        ("not served", br#"{"jsonrpc":"2.0","id":1,"method":"resources/list"}"#, -32601, json!(1)),
    ])
    .await;
}

#[tokio::test]
async fn what_nobody_waits_for_is_ignored() {
    let mut client = over_socket().initialized().await;
    for line in [
        "",
        " \t\r",
        r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":99,"error":{"code":1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":12345}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/unheard_of","params":[1]}"#,
    ] {
        client.send(line).await;
        assert_eq!(client.replies().await, Vec::<Value>::new(), "{line}");
    }
}

#[tokio::test]
async fn ids_come_back_exactly() {
    let mut client = over_socket().initialized().await;
    let ids = [json!(0), json!(-1), json!(i64::MAX), json!(""), json!("1"), json!("é\u{0}"), json!("x".repeat(10_000))];
    for id in ids {
        client.send(request(id.clone(), "ping", json!({}))).await;
        assert_eq!(client.reply().await, json!({ "jsonrpc": "2.0", "id": id, "result": {} }));
    }
}

#[tokio::test]
async fn a_byte_order_mark_crlf_and_a_pause_inside_a_line_do_no_harm() {
    let mut client = over_pipes().initialized().await;
    client.send(b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r").await;
    assert_eq!(client.reply().await["id"], 1);
    let line = request(2, "tools/call", json!({ "name": "echo" }));
    for byte in line.bytes() {
        client.writer.write_all(&[byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    client.send("").await;
    assert_eq!(client.reply().await["result"]["content"][0]["text"], "echo");
}

#[tokio::test]
async fn a_line_beyond_the_cap_is_refused_and_the_next_one_served() {
    let mut client = over_pipes().initialized().await;
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..LONGEST_LINE / piece.len() * 4 {
        client.writer.write_all(&piece).await.unwrap();
    }
    let refused = client.reply().await;
    assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(-32600), &Value::Null));
    client.send("").await;
    assert_eq!(client.replies().await, Vec::<Value>::new());
    let arguments = json!({ "a": "x".repeat(1 << 20) });
    client.send(request(3, "tools/call", json!({ "name": "echo", "arguments": arguments }))).await;
    assert_eq!(client.reply().await["id"], 3);
}

#[tokio::test]
async fn every_era_finds_its_way_in() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = over_socket();
        client.send(request(1, "tools/list", json!({}))).await;
        assert_eq!(client.reply().await["error"]["code"], -32600);
        client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        assert_eq!(client.replies().await, Vec::<Value>::new());
        client.send(initialize("i", version)).await;
        assert_eq!(client.reply().await["result"]["protocolVersion"], version);
        client.send(request(2, "tools/list", json!({}))).await;
        let listed = client.reply().await;
        assert_eq!(listed["result"]["tools"], json!([]));
        assert_eq!(listed["result"].get("resultType"), None);
    }
    let mut client = over_socket();
    client.send(initialize("i", "2026-07-28")).await;
    assert_eq!(client.reply().await["result"]["protocolVersion"], "2025-11-25");
}

#[tokio::test]
async fn a_client_without_sessions_needs_no_initialize() {
    let mut client = over_socket();
    client.send(request(1, "server/discover", stateless())).await;
    let versions = client.reply().await["result"]["supportedVersions"].clone();
    assert_eq!(versions.as_array().unwrap().last().unwrap(), "2026-07-28");
    client.send(request(2, "tools/list", stateless())).await;
    assert_eq!(client.reply().await["result"]["resultType"], "complete");
    let mut call = stateless();
    call["name"] = "echo".into();
    client.send(request(3, "tools/call", call)).await;
    assert_eq!(client.reply().await["result"]["content"][0]["text"], "echo");
    client.send(request(4, "tools/list", json!({}))).await;
    assert_eq!(client.reply().await["error"]["code"], -32600);
    let mut unknown = stateless();
    unknown["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2099-01-01".into();
    client.send(request(5, "tools/list", unknown)).await;
    assert_eq!(client.reply().await["error"]["code"], -32022);
    client.send(initialize("late", "2025-06-18")).await;
    assert_eq!(client.reply().await["result"]["protocolVersion"], "2025-06-18");
}

#[tokio::test]
async fn ten_thousand_pipelined_pings_get_one_answer_each() {
    let mut client = over_socket().initialized().await;
    let mut lines = String::new();
    for id in 0..10_000 {
        lines += &request(id, "ping", json!({}));
        lines.push('\n');
    }
    let Client { mut reader, mut writer, .. } = client;
    let sending = tokio::spawn(async move {
        writer.write_all(lines.as_bytes()).await.unwrap();
        writer
    });
    let mut seen = vec![0; 10_000];
    for _ in 0..10_000 {
        let mut line = String::new();
        reader.read_line(&mut line).await.unwrap();
        let reply: Value = serde_json::from_str(&line).unwrap();
        seen[usize::try_from(reply["id"].as_u64().unwrap()).unwrap()] += 1;
    }
    assert!(seen.iter().all(|count| *count == 1));
    drop(sending.await.unwrap());
}

#[tokio::test]
async fn an_id_in_flight_is_refused_and_free_again_after_a_cancellation() {
    let mut client = over_socket().initialized().await;
    let wait = request(7, "tools/call", json!({ "name": "wait" }));
    for _ in 0..50 {
        client.send(&wait).await;
    }
    let replies = client.replies().await;
    assert_eq!(replies.len(), 49);
    assert!(replies.iter().all(|reply| reply["id"] == 7 && reply["error"]["code"] == -32600));
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
    client.send(cancel).await;
    client.send(request(7, "tools/call", json!({ "name": "echo" }))).await;
    let reply = client.reply().await;
    assert_eq!((&reply["id"], &reply["result"]["content"][0]["text"]), (&json!(7), &json!("echo")));
    assert_eq!(client.canceled.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_client_that_does_not_read_is_not_read_and_then_gets_everything() {
    let mut client = over_socket().initialized().await;
    let filler = json!({ "a": "x".repeat(50_000) });
    let mut sent = 0;
    // The server stops reading once its budget is full, so that sending stalls.
    loop {
        let line = request(sent, "tools/call", json!({ "name": "big", "arguments": filler })) + "\n";
        let sending = client.writer.write_all(line.as_bytes());
        match tokio::time::timeout(Duration::from_millis(500), sending).await {
            Ok(done) => done.unwrap(),
            Err(_) => break,
        }
        sent += 1;
        assert!(sent < 1000, "the server keeps on reading");
    }
    for _ in 0..sent {
        assert!(
            client.reply().await["result"]["content"][0]["text"].as_str().is_some_and(|text| text.len() == 1 << 20)
        );
    }
}

#[tokio::test]
async fn serving_ends_promptly_when_the_client_sends_no_more() {
    let mut client = over_pipes().initialized().await;
    client.send(request(1, "tools/call", json!({ "name": "wait" }))).await;
    client.writer.write_all(request(2, "ping", json!({})).as_bytes()).await.unwrap();
    let start = Instant::now();
    drop(client.writer);
    let mut last = String::new();
    client.reader.read_line(&mut last).await.unwrap();
    assert!(last.contains("\"id\":2"), "the last line without a newline is served: {last}");
    client.serving.await.unwrap().unwrap();
    assert!(start.elapsed() < Duration::from_secs(2));
    while client.canceled.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn serving_ends_at_once_when_nobody_reads_any_more() {
    let mut client = over_pipes().initialized().await;
    client.send(request(1, "tools/call", json!({ "name": "wait" }))).await;
    drop(client.reader);
    let start = Instant::now();
    client.serving.await.unwrap().unwrap();
    assert!(start.elapsed() < Duration::from_millis(500));
    let client = over_pipes();
    drop((client.reader, client.writer));
    client.serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn files_can_stand_in_for_a_client() {
    let dir = std::env::temp_dir().join(format!("stockade-mcp-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (requests, replies) = (dir.join("requests"), dir.join("replies"));
    std::fs::write(&requests, format!("{}\n{}\n", initialize("i", "2025-06-18"), request(2, "ping", json!({}))))
        .unwrap();
    let stdout = std::fs::File::create(&replies).unwrap();
    let (serving, _) = serve(std::fs::File::open(&requests).unwrap().into(), stdout.into());
    serving.await.unwrap().unwrap();
    let text = std::fs::read_to_string(&replies).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    assert_eq!(text.lines().count(), 2, "{text}");
    let null = || std::fs::File::options().read(true).write(true).open("/dev/null").unwrap().into();
    serve(null(), null()).0.await.unwrap().unwrap();
}
