//! A plain MCP client for tests: newline JSON over the pipes of a `stockade serve`, in both eras of the protocol.
//!
//! It has no thread of its own. Bytes move only while a test waits for something, so a client that stops reading is
//! one that is not asked. Every structured content is held against the tool's output schema.

use crate::ends::wait_for;
use crate::schema;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Longer than any answer takes, even on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The newest version that begins with a handshake.
pub const HANDSHAKE: &str = "2025-11-25";
/// The version without one.
pub const MODERN: &str = "2026-07-28";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// `initialize`, then `notifications/initialized`.
    Handshake,
    /// Every request says in `_meta` who speaks and how.
    Modern,
}

#[derive(Debug)]
pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: Option<ChildStdout>,
    /// Bytes of a line that has not ended.
    partial: Vec<u8>,
    /// Messages that nobody has asked for yet.
    heard: VecDeque<Value>,
    next_id: u64,
    era: Era,
    schemas: BTreeMap<String, Value>,
    log: PathBuf,
}

impl Client {
    /// Starts the server and says nothing.
    pub fn start(mut command: Command, log: PathBuf, era: Era) -> Self {
        let errors = File::create(&log).expect("a log");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors);
        Self::of(command.spawn().expect("stockade starts"), log, era)
    }

    /// A client of a server that was started by hand, with its stdin and stdout piped.
    pub fn of(mut child: Child, log: PathBuf, era: Era) -> Self {
        let (input, output) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        for end in [input.as_fd(), output.as_fd()] {
            fcntl(end, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).expect("a pipe");
        }
        let (partial, heard, schemas) = (Vec::new(), VecDeque::new(), BTreeMap::new());
        Client { child, input: Some(input), output: Some(output), partial, heard, next_id: 1, era, schemas, log }
    }

    /// Starts the server, greets it and learns its tools.
    pub fn open(command: Command, log: PathBuf, era: Era) -> Self {
        let mut client = Self::start(command, log, era);
        client.greet();
        client.learn();
        client
    }

    /// The first words; what the server answers them with.
    pub fn greet(&mut self) -> Value {
        if self.era == Era::Modern {
            return self.request("server/discover", json!({}))["result"].take();
        }
        let who = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": who });
        let answer = self.request("initialize", params)["result"].take();
        self.notify("notifications/initialized", json!({}));
        answer
    }

    /// Fetches the tool list, and the output schemas in it for later.
    pub fn learn(&mut self) -> Value {
        let list = self.request("tools/list", json!({}))["result"].take();
        for tool in list["tools"].as_array().unwrap_or(&Vec::new()) {
            let name = tool["name"].as_str().expect("a name").to_owned();
            self.schemas.insert(name, tool["outputSchema"].clone());
        }
        list
    }

    /// Calls a tool: its structured content, or the error as JSON.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.begin(tool, arguments);
        self.finish(tool, id)
    }

    /// Calls a tool that must do as it is told.
    pub fn ok(&mut self, tool: &str, arguments: Value) -> Value {
        let shown = arguments.to_string();
        let answer = self.call(tool, arguments);
        assert!(answer.get("error").is_none(), "{tool} {shown:.300}: {answer}");
        answer
    }

    /// Calls a tool that must refuse: the code and the message.
    pub fn refused(&mut self, tool: &str, arguments: Value) -> (String, String) {
        let shown = arguments.to_string();
        let answer = self.call(tool, arguments);
        let word = |key: &str| answer["error"][key].as_str().map(str::to_owned);
        let (Some(code), Some(message)) = (word("code"), word("message")) else {
            panic!("{tool} {shown:.300} was not refused: {answer:.600}");
        };
        (code, message)
    }

    /// Sends a call without waiting for its answer.
    pub fn begin(&mut self, tool: &str, arguments: Value) -> u64 {
        self.begin_request("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// The same, and asks for progress under its own id.
    pub fn begin_with_progress(&mut self, tool: &str, arguments: Value) -> u64 {
        let meta = json!({ "progressToken": self.next_id });
        self.begin_request("tools/call", json!({ "name": tool, "arguments": arguments, "_meta": meta }))
    }

    /// Waits for the answer to a call.
    pub fn finish(&mut self, tool: &str, id: u64) -> Value {
        let response = self.response(id);
        self.content(tool, &response)
    }

    /// What a response says of a tool's call: its structured content, or the error as JSON.
    pub fn content(&self, tool: &str, response: &Value) -> Value {
        let result = &response["result"];
        assert!(result.is_object(), "{tool}: an error of the protocol: {response:.600}");
        let blocks = result["content"].as_array().expect("content");
        if result["isError"] == true {
            assert_eq!((blocks.len(), result.get("structuredContent")), (1, None), "{response}");
            let text = blocks[0]["text"].as_str().expect("text");
            let error: Value = serde_json::from_str(text).expect("an error is JSON");
            assert!(error["error"]["details"].is_object(), "{error}");
            return error;
        }
        let content = result["structuredContent"].clone();
        if let Some(schema) = self.schemas.get(tool) {
            let wrong = schema::violations(schema, &content);
            assert!(wrong.is_empty(), "{tool} answers against its own schema: {wrong:?}\n{content:.2000}");
        }
        content
    }

    /// Sends a request and waits for the whole response.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin_request(method, params);
        self.response(id)
    }

    pub fn begin_request(&mut self, method: &str, mut params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        if self.era == Era::Modern {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
            params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({ "name": "test", "version": "1" });
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// Waits for the response with this id, whatever else comes first.
    pub fn response(&mut self, id: u64) -> Value {
        self.wait_for_message(&format!("the answer to request {id}"), |message| is_response(message, &json!(id)))
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.say(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Takes a request back.
    pub fn cancel(&mut self, id: u64) {
        self.notify("notifications/cancelled", json!({ "requestId": id, "reason": "changed my mind" }));
    }

    /// Sends one message.
    pub fn say(&mut self, message: &Value) {
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        self.raw(&line);
    }

    /// Sends bytes as they are, and takes in whatever comes meanwhile.
    pub fn raw(&mut self, mut bytes: &[u8]) {
        let deadline = Instant::now() + PATIENCE;
        while !bytes.is_empty() {
            assert!(Instant::now() < deadline, "the server stopped reading: {}", self.log());
            let sent = self.exchange(bytes, Take::All, deadline).expect("the server reads");
            bytes = &bytes[sent..];
        }
    }

    /// Sends bytes without taking anything in; gives back how many went before the server stopped reading for so long.
    pub fn raw_deaf(&mut self, bytes: &[u8], silence: Duration) -> usize {
        let mut sent = 0;
        while sent < bytes.len() {
            match self.exchange(&bytes[sent..], Take::Nothing, Instant::now() + silence) {
                Ok(0) | Err(_) => break,
                Ok(count) => sent += count,
            }
        }
        sent
    }

    /// Waits for the first message that fits; the others are kept for later.
    pub fn wait_for_message(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let found = self.message_within(PATIENCE, fits);
        found.unwrap_or_else(|| panic!("{what} never came; heard: {:?}\n{}", self.heard, self.log()))
    }

    /// The same, and `None` when the time is over or the server has hung up.
    pub fn message_within(&mut self, within: Duration, fits: impl Fn(&Value) -> bool) -> Option<Value> {
        let deadline = Instant::now() + within;
        let mut looked_at = 0;
        loop {
            if let Some(at) = self.heard.iter().skip(looked_at).position(&fits) {
                return self.heard.remove(looked_at + at);
            }
            looked_at = self.heard.len();
            if Instant::now() >= deadline || self.output.is_none() {
                return None;
            }
            self.exchange(&[], Take::All, deadline).ok();
        }
    }

    /// What has been heard and not asked for, in order.
    pub fn take_heard(&mut self) -> Vec<Value> {
        self.heard.drain(..).collect()
    }

    /// Waits for one of the two directions, once; how many bytes went out.
    fn exchange(&mut self, bytes: &[u8], take: Take, deadline: Instant) -> Result<usize, ErrorKind> {
        let mut waits = Vec::new();
        if let (Some(output), Take::All) = (&self.output, take) {
            waits.push(PollFd::new(output.as_fd(), PollFlags::POLLIN));
        }
        if let (Some(input), false) = (&self.input, bytes.is_empty()) {
            waits.push(PollFd::new(input.as_fd(), PollFlags::POLLOUT));
        }
        let left = deadline.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
        match poll(&mut waits, PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => panic!("poll: {error}"),
        }
        if take == Take::All {
            self.listen();
        }
        let Some(input) = &mut self.input else { return Err(ErrorKind::BrokenPipe) };
        match input.write(bytes) {
            Ok(sent) => Ok(sent),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(0),
            Err(error) => Err(error.kind()),
        }
    }

    /// Takes in what is there.
    fn listen(&mut self) {
        let mut buffer = [0; 64 << 10];
        let Some(output) = &mut self.output else { return };
        match output.read(&mut buffer) {
            Ok(0) => self.output = None,
            Ok(count) => {
                self.partial.extend_from_slice(&buffer[..count]);
                // Only what is new can hold the end of a line.
                let new = self.partial.len() - count;
                if let Some(end) = self.partial[new..].iter().rposition(|byte| *byte == b'\n') {
                    let rest = self.partial.split_off(new + end + 1);
                    let lines = std::mem::replace(&mut self.partial, rest);
                    self.heard.extend(lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(parse));
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => panic!("reading the server: {error}"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Take {
    All,
    Nothing,
}

/// The server's side as a process.
impl Client {
    /// The broker's PID.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends the server's input.
    pub fn hang_up(&mut self) {
        self.input = None;
    }

    /// Closes our end of the server's output: its next write fails.
    pub fn stop_listening(&mut self) {
        self.output = None;
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).expect("the server is there");
    }

    /// SIGKILL, and waits until it is dead.
    pub fn kill(&mut self) {
        self.child.kill().expect("the server is there");
        self.child.wait().expect("the server is dead");
    }

    /// Waits for the server's end.
    pub fn wait(&mut self, within: Duration) -> ExitStatus {
        wait_for(&mut self.child, within)
    }

    /// A figure of `/proc/PID/status` in kB: `VmRSS`, `VmHWM`.
    pub fn memory_kb(&self, figure: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("the server is there");
        let line = status.lines().find_map(|line| line.strip_prefix(figure)?.strip_prefix(':')).expect("a figure");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }

    /// What the server said on stderr.
    pub fn log(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        format!("stderr: {}", String::from_utf8_lossy(&text))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Whether a message is the answer to this id.
pub fn is_response(message: &Value, id: &Value) -> bool {
    message.get("method").is_none() && message.get("id") == Some(id)
}

fn parse(line: &[u8]) -> Value {
    serde_json::from_slice(line).unwrap_or_else(|error| {
        let shown = String::from_utf8_lossy(&line[..line.len().min(400)]).into_owned();
        panic!("a line on stdout that is no JSON ({error}): {shown:?}")
    })
}
