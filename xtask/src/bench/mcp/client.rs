//! A client of MCP servers: writes a line, reads a line. No SDK, so that what is measured is the server.

use crate::shell::{About, Result};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// How a server is started.
#[derive(Clone, Debug)]
pub struct Program {
    pub name: &'static str,
    pub words: Vec<OsString>,
}

impl Program {
    /// `stockade serve` with a policy of its own.
    pub fn stockade(program: &OsString, policy: &Path, workspace: &Path) -> Program {
        let words = [program.as_os_str(), "serve".as_ref(), "--policy".as_ref(), policy.as_ref()];
        let words = words.into_iter().chain(["--workspace".as_ref(), workspace.as_ref()]);
        Program { name: "stockade", words: words.map(OsString::from).collect() }
    }

    /// A server that has answered `initialize`.
    pub fn connect(&self) -> Result<Connection> {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().about(self.name)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = (input, output) else {
            return Err(format!("{} has no pipes", self.name));
        };
        let output = BufReader::new(output);
        let mut connection = Connection { name: self.name, child, input: Some(input), output, requests: 0 };
        connection.request(
            "initialize",
            &json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": { "name": "bench", "version": "1" },
            }),
        )?;
        connection.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(connection)
    }
}

/// One server and the pipes to it. Dropping it ends the server.
#[derive(Debug)]
pub struct Connection {
    name: &'static str,
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    requests: u64,
}

impl Connection {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks and waits for the answer's result.
    pub fn request(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.send(method, params)?;
        self.result()
    }

    /// Calls a tool that must not fail, and gives back its structured content.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        self.send_call(tool, arguments)?;
        let mut result = self.result()?;
        if result["isError"] == true {
            return Err(format!("{}: `{tool}` failed: {}", self.name, result["content"]));
        }
        Ok(result["structuredContent"].take())
    }

    /// Asks without waiting.
    pub fn send_call(&mut self, tool: &str, arguments: &Value) -> Result {
        self.send("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    /// The next answer, whichever it is, as it was written.
    pub fn answer(&mut self) -> Result<String> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.output.read_line(&mut line).about(self.name)? == 0 {
                return Err(format!("{} has gone away", self.name));
            }
            // What comes without a request has no id.
            if line.contains("\"id\":") && !line.contains("\"method\":") {
                return Ok(line);
            }
        }
    }

    /// In KiB, from the kernel's account of the server.
    pub fn memory(&self, field: &str) -> Result<f64> {
        let path = format!("/proc/{}/status", self.pid());
        let status = fs::read_to_string(&path).about(&path)?;
        let line = status.lines().find(|line| line.split(':').next() == Some(field));
        let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
        number.ok_or_else(|| format!("`{path}` has no {field}"))
    }

    fn send(&mut self, method: &str, params: &Value) -> Result {
        self.requests += 1;
        self.write(&json!({ "jsonrpc": "2.0", "id": self.requests, "method": method, "params": params }))
    }

    fn write(&mut self, message: &Value) -> Result {
        let mut line = message.to_string();
        line.push('\n');
        let input = self.input.as_mut().ok_or("the input is closed")?;
        input.write_all(line.as_bytes()).about(self.name)
    }

    fn result(&mut self) -> Result<Value> {
        let mut answer: Value = serde_json::from_str(&self.answer()?).about(self.name)?;
        match answer["error"].take() {
            Value::Null => Ok(answer["result"].take()),
            error => Err(format!("{}: {error}", self.name)),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // End of file is how a client leaves.
        drop(self.input.take());
        let _ = self.child.wait();
    }
}
