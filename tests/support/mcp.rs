//! A plain MCP client for tests: newline JSON over the pipes of a `stockade serve`, in both eras of the protocol.
//!
//! Every structured content is held against the tool's output schema. How bytes move is in `server.rs`.

use crate::schema;
use crate::server::Server;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::process::{Child, Command};

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
    server: Server,
    next_id: u64,
    era: Era,
    schemas: BTreeMap<String, Value>,
}

impl Client {
    /// Starts the server and says nothing.
    pub fn start(command: Command, log: PathBuf, era: Era) -> Self {
        Client { server: Server::start(command, log), next_id: 1, era, schemas: BTreeMap::new() }
    }

    /// A client of a server that was started by hand, with its stdin and stdout piped.
    pub fn of(child: Child, log: PathBuf, era: Era) -> Self {
        Client { server: Server::of(child, log), next_id: 1, era, schemas: BTreeMap::new() }
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
        let mut params = json!({ "name": tool });
        params["arguments"] = arguments;
        self.begin_request("tools/call", params)
    }

    /// The same, and asks for progress under its own id.
    pub fn begin_with_progress(&mut self, tool: &str, arguments: Value) -> u64 {
        let mut params = json!({ "name": tool, "_meta": { "progressToken": self.next_id } });
        params["arguments"] = arguments;
        self.begin_request("tools/call", params)
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
        let mut message = json!({ "jsonrpc": "2.0", "id": id, "method": method });
        message["params"] = params;
        self.say(&message);
        id
    }

    /// Waits for the response with this id, whatever else comes first.
    pub fn response(&mut self, id: u64) -> Value {
        self.wait_for_message(&format!("the answer to request {id}"), |message| is_response(message, &json!(id)))
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        let mut message = json!({ "jsonrpc": "2.0", "method": method });
        message["params"] = params;
        self.say(&message);
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
}

impl Deref for Client {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl DerefMut for Client {
    fn deref_mut(&mut self) -> &mut Server {
        &mut self.server
    }
}

/// Whether a message is the answer to this id.
pub fn is_response(message: &Value, id: &Value) -> bool {
    message.get("method").is_none() && message.get("id") == Some(id)
}
