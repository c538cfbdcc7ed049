//! An agent of its own with its servers, and the operator beside them.

use crate::ends::{SOON, eventually, wait_for};
use crate::support::{Outcome, Scratch, is_root, stockade};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

#[derive(Debug)]
pub struct Desk {
    pub workspace: Scratch,
    beside: Scratch,
    pub agent: String,
    policy: PathBuf,
    /// `XDG_STATE_HOME`.
    home: PathBuf,
}

impl Desk {
    pub fn new() -> Self {
        Self::with("", "state")
    }

    /// A policy that extends `default` with this text, and the name of the state directory.
    pub fn with(text: &str, home: &str) -> Self {
        let (workspace, beside) = (Scratch::new(), Scratch::new());
        let agent = beside.path().file_name().expect("a name").to_string_lossy().into_owned();
        let policy = beside.file("policy.toml", &format!("extends = \"default\"\nagent = \"{agent}\"\n{text}"));
        fs::set_permissions(&policy, fs::Permissions::from_mode(0o600)).expect("a mode");
        let home = beside.directory(home);
        Desk { workspace, beside, agent, policy, home }
    }

    /// Where this agent's state lies.
    pub fn state(&self) -> PathBuf {
        let top = if is_root() { Path::new("/var/lib") } else { &self.home };
        top.join("stockade").join(&self.agent)
    }

    /// The directories of its brokers.
    pub fn brokers(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.state()).into_iter().flatten().flatten().map(|entry| entry.path());
        entries
            .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("broker-")))
            .collect()
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(stockade());
        command.args(words).current_dir(self.workspace.path()).env("XDG_STATE_HOME", &self.home);
        command.stdin(Stdio::null());
        command
    }

    /// What `XDG_STATE_HOME` is to be.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// One word of the operator's.
    pub fn say(&self, words: &[&str]) -> Outcome {
        Outcome::new(&self.command(words).output().expect("stockade starts"))
    }

    /// `ps --json`, this agent's brokers only.
    pub fn ps(&self, words: &[&str]) -> Vec<Value> {
        let outcome = self.say(&[&["ps", "--json"], words].concat());
        assert_eq!(outcome.code, 0, "{outcome:?}");
        let report: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
        let all = report["brokers"].as_array().expect("a list").clone();
        all.into_iter().filter(|broker| broker["agent"] == self.agent.as_str()).collect()
    }

    pub fn serve(&self) -> Server {
        let mut command = self.command(&["serve", "--policy"]);
        command.arg(&self.policy).arg("--workspace").arg(self.workspace.path());
        let log = fs::File::create(self.beside.path().join("server.log")).expect("a log");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().expect("stockade starts");
        let (input, output) = (child.stdin.take(), child.stdout.take().map(BufReader::new));
        let mut server = Server { child, input, output: output.expect("a pipe"), next: 0 };
        let who = json!({ "name": "test", "version": "1" });
        server.ask("initialize", &json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": who }));
        server.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        server
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(self.state()));
    }
}

/// A broker with its client.
#[derive(Debug)]
pub struct Server {
    pub child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Server {
    fn write(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("the server is served");
        writeln!(input, "{message}").expect("the server reads");
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        self.write(&json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params }));
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("the server answers") > 0, "the server hung up");
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if message["id"] == self.next {
                return message;
            }
        }
    }

    /// The result of a tool, error or not.
    pub fn try_call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }))["result"].take()
    }

    pub fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let mut result = self.try_call(tool, arguments);
        assert_ne!(result["isError"], true, "{tool} {arguments}: {result}");
        result["structuredContent"].take()
    }

    /// Starts a shell line and returns its proc_id.
    pub fn start(&mut self, command: &str) -> String {
        self.start_with(&json!({ "command": command, "initial_read_timeout_ms": 0 }))
    }

    pub fn start_with(&mut self, arguments: &Value) -> String {
        let started = self.call("proc_start", arguments);
        started["proc_id"].as_str().unwrap_or_else(|| panic!("no proc_id: {started}")).to_owned()
    }

    /// Waits for this text in a process's output.
    pub fn until(&mut self, proc_id: &str, text: &str) {
        let (mut all, mut cursor) = (String::new(), json!(0));
        while !all.contains(text) {
            let asked = json!({ "proc_id": proc_id, "cursor": cursor, "max_bytes": 262_144, "timeout_ms": 10000, "quiet_ms": 50 });
            let mut heard = self.call("proc_read", &asked);
            assert!(heard["next_cursor"] != cursor, "no `{text}` in {} bytes", all.len());
            cursor = heard["next_cursor"].take();
            all.push_str(heard["output"].as_str().unwrap_or_default());
        }
    }

    /// As a machine that loses power would.
    pub fn kill(&mut self) {
        self.child.kill().expect("a child");
        self.child.wait().expect("a child");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A client that goes away ends its server.
        drop(self.input.take());
        if !std::thread::panicking() {
            wait_for(&mut self.child, SOON * 5);
        } else {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

/// A child that is waited for.
pub fn ends(child: &mut Child) -> i32 {
    wait_for(child, SOON * 5).code().unwrap_or(-1)
}

/// Waits until the operator sees something.
pub fn soon(what: &str, holds: impl FnMut() -> bool) {
    eventually(what, SOON * 5, holds);
}
