//! A client of the server under measurement: writes a line, reads a line.

use crate::shell::{About, Result};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// One server. Dropping it ends it.
#[derive(Debug)]
pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    requests: u64,
}

impl Client {
    /// `stockade serve`, greeted.
    pub fn connect(policy: &Path, workspace: &Path) -> Result<Client> {
        let program = std::env::var_os("STOCKADE_BIN").ok_or("STOCKADE_BIN is not set")?;
        let mut command = Command::new(program);
        command.arg("serve").arg("--policy").arg(policy).arg("--workspace").arg(workspace);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().about("stockade")?;
        let (input, output) = (child.stdin.take(), child.stdout.take().ok_or("no pipe")?);
        let mut client = Client { child, input, output: BufReader::new(output), requests: 0 };
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "bench", "version": "1" } });
        client.request("initialize", &hello)?;
        client.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(client)
    }

    /// A call that must not fail.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        let mut result = self.request("tools/call", &json!({ "name": tool, "arguments": arguments }))?;
        match result["isError"] == true {
            true => Err(format!("`{tool}` failed: {}", result["content"])),
            false => Ok(result["structuredContent"].take()),
        }
    }

    fn request(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.requests += 1;
        let id = self.requests;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line).about("stockade")? == 0 {
                return Err("the server has gone away".into());
            }
            let mut message: Value = serde_json::from_str(&line).about("an answer")?;
            if message["id"] == id {
                return match message["error"].take() {
                    Value::Null => Ok(message["result"].take()),
                    error => Err(error.to_string()),
                };
            }
        }
    }

    fn write(&mut self, message: &Value) -> Result {
        let input = self.input.as_mut().ok_or("the input is closed")?;
        input.write_all(format!("{message}\n").as_bytes()).about("stockade")
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // End of file is how a client leaves.
        drop(self.input.take());
        let _ = self.child.wait();
    }
}
