//! How a connection begins, goes on under load, and ends.

use super::{Client, initialize, over_pipes, over_socket, request, serve, stateless};
use crate::mcp::framing::LONGEST_LINE;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};

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
    let client = over_socket().initialized().await;
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

#[tokio::test]
async fn a_terminal_can_stand_in_for_a_client() {
    let pty = nix::pty::openpty(None, None).unwrap();
    let mut modes = nix::sys::termios::tcgetattr(&pty.slave).unwrap();
    nix::sys::termios::cfmakeraw(&mut modes);
    nix::sys::termios::tcsetattr(&pty.slave, nix::sys::termios::SetArg::TCSANOW, &modes).unwrap();
    let (serving, _) = serve(pty.slave.try_clone().unwrap(), pty.slave);
    let master = pty.master;
    nix::unistd::write(&master, (request(1, "ping", json!({})) + "\n").as_bytes()).unwrap();
    let reply = tokio::task::spawn_blocking(move || {
        let mut buffer = [0; 1000];
        let count = nix::unistd::read(&master, &mut buffer).unwrap();
        // Dropping the master hangs the terminal up.
        buffer[..count].to_vec()
    });
    let reply: Value = serde_json::from_slice(&reply.await.unwrap()).unwrap();
    assert_eq!(reply["id"], 1);
    serving.await.unwrap().unwrap();
}
