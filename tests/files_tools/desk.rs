//! A server with a workspace, and short ways to call its tools.

use crate::support::{Scratch, is_root, stockade};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

pub struct Desk {
    /// The roots lie in it; the workspace is `work`.
    pub ground: Scratch,
    pub agent: String,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    requests: u64,
}

impl Desk {
    pub fn open() -> Desk {
        Desk::with("", |_| {})
    }

    /// A policy that extends `default`; `{ground}` stands for the directory above the workspace, which `prepare` fills.
    pub fn with(policy: &str, prepare: impl FnOnce(&Scratch)) -> Desk {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let agent = format!("desk-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let ground = Scratch::new();
        ground.directory("work");
        prepare(&ground);
        let text = policy.replace("{ground}", &ground.path().display().to_string());
        let policy = ground.file("policy.toml", &format!("extends = \"default\"\nagent = \"{agent}\"\n{text}"));
        fs::set_permissions(&policy, fs::Permissions::from_mode(0o600)).expect("a mode");
        let mut command = Command::new(stockade());
        command.arg("serve").arg("--policy").arg(&policy).arg("--workspace").arg(ground.path().join("work"));
        command.env("XDG_STATE_HOME", ground.path().join("state"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("stockade starts");
        let input = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut desk = Desk { ground, agent, child, input, output, requests: 0 };
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "desk", "version": "1" } });
        desk.request("initialize", &hello);
        desk.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        desk
    }

    pub fn work(&self, name: &str) -> PathBuf {
        self.ground.path().join("work").join(name)
    }

    /// Where the broker keeps its state.
    pub fn state(&self) -> PathBuf {
        let base = if is_root() { "/var/lib/stockade".into() } else { self.ground.path().join("state/stockade") };
        base.join(&self.agent)
    }

    /// A call that must succeed.
    #[expect(clippy::needless_pass_by_value, reason = "calls read better with the `json!` in them")]
    pub fn ok(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, &arguments);
        assert_ne!(result["isError"], true, "{tool} {arguments}: {}", result["content"]);
        result["structuredContent"].clone()
    }

    /// A call that must be refused: its code and message.
    #[expect(clippy::needless_pass_by_value, reason = "calls read better with the `json!` in them")]
    pub fn refused(&mut self, tool: &str, arguments: Value) -> (String, String) {
        let result = self.call(tool, &arguments);
        assert_eq!(result["isError"], true, "{tool} {arguments} was done: {}", result["structuredContent"]);
        refusal(&result)
    }

    pub fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.request("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    /// Asks without waiting; `hear` gets the answer.
    pub fn begin(&mut self, tool: &str, arguments: &Value) -> u64 {
        self.requests += 1;
        let params = json!({ "name": tool, "arguments": arguments });
        let (id, method) = (self.requests, "tools/call");
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    pub fn hear(&mut self, id: u64) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).expect("a line"), 0, "the server has gone away");
            let mut message: Value = serde_json::from_str(&line).expect("JSON");
            if message["id"] == id {
                assert_eq!(message["error"], Value::Null, "a protocol error");
                return message["result"].take();
            }
        }
    }

    pub fn shell(&mut self, command: &str) -> Value {
        self.ok("run", json!({ "command": command }))
    }

    /// The workers of this server alone.
    pub fn workers(&self) -> Vec<i32> {
        below(self.child.id() as i32)
            .into_iter()
            .filter(|pid| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "stockade-work\n"))
            .collect()
    }

    pub fn kill_worker(&self) {
        for pid in self.workers() {
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL);
        }
    }

    /// Kills the broker itself.
    pub fn kill(&mut self) {
        self.child.kill().expect("a signal");
        self.child.wait().expect("its end");
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.requests += 1;
        let id = self.requests;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        self.hear(id)
    }

    fn say(&mut self, message: &Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).expect("the server reads");
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if is_root() {
            let _ = fs::remove_dir_all(self.state());
        }
    }
}

/// Code and message of a result that is an error.
pub fn refusal(result: &Value) -> (String, String) {
    let text = result["content"][0]["text"].as_str().expect("text");
    let error: Value = serde_json::from_str(text).expect("JSON");
    let word = |name: &str| error["error"][name].as_str().expect("a word").to_owned();
    (word("code"), word("message"))
}

/// All descendants of a process.
fn below(pid: i32) -> Vec<i32> {
    let mut found = Vec::new();
    let mut next = vec![pid];
    while let Some(pid) = next.pop() {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        let children: Vec<i32> = children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
        found.extend(&children);
        next.extend(children);
    }
    found
}
