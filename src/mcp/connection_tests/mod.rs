//! A client of few words, and a server of fewer tools, for tests of a connection as a whole: the real rmcp service
//! loop over a socket pair, over pipes, over files.

mod flow;
mod malformed;

use super::connection;
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
use std::time::Duration;
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

fn request(id: impl Into<Value>, method: &str, params: impl Into<Value>) -> String {
    let params = params.into();
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
