//! What a model is given: names, descriptions, schemas. Small, portable, honest, and the same in both eras.

use crate::site::Site;
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub const FAMILIES: &str = "[tools]\nsurface = \"families\"";

fn tools(site: &Site) -> Vec<Value> {
    site.open().learn()["tools"].as_array().expect("tools").clone()
}

fn names(tools: &[Value]) -> BTreeSet<String> {
    tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
}

/// The verbs of processes, sessions and the system, as the design lists them.
const PROCESSES: &[&str] = &["run"];
const REPL: &[&str] = &[
    "proc_start",
    "proc_send",
    "proc_read",
    "proc_signal",
    "proc_resize",
    "proc_stop",
    "proc_list",
    "proc_remove",
    "session_open",
    "session_list",
    "session_close",
];
const SYSTEM: &[&str] = &["config_get", "config_set", "health"];

#[test]
fn every_operation_is_a_tool_of_its_own() {
    let found = names(&tools(&Site::new()));
    for name in [PROCESSES, REPL, SYSTEM].concat() {
        assert!(found.contains(name), "{name} is missing in {found:?}");
    }
}

#[test]
fn families_gather_them_under_a_few_names() {
    let found = tools(&Site::with(FAMILIES));
    let expected = ["run", "process", "session", "config"];
    for name in expected {
        assert!(names(&found).contains(name), "{name} is missing in {:?}", names(&found));
    }
    assert!(found.len() <= 7, "{:?}", names(&found));
    let process = found.iter().find(|tool| tool["name"] == "process").expect("process");
    let actions = process["inputSchema"]["properties"]["action"]["enum"].clone();
    assert_eq!(actions, json!(["start", "send", "read", "signal", "resize", "stop", "list", "remove"]));
}

/// Keywords that some client does not understand, and where a schema uses one.
fn unportable(at: &str, schema: &Value, found: &mut Vec<String>) {
    let banned = [
        "$ref",
        "$defs",
        "definitions",
        "oneOf",
        "anyOf",
        "allOf",
        "not",
        "if",
        "patternProperties",
        "const",
        "nullable",
    ];
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields {
                let is_keyword = !at.ends_with(".properties");
                if is_keyword && (banned.contains(&key.as_str()) || (key == "type" && !value.is_string())) {
                    found.push(format!("{at}: `{key}`: {value}"));
                }
                if is_keyword && key == "format" {
                    found.push(format!("{at}: a format: {value}"));
                }
                unportable(&format!("{at}.{key}"), value, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| unportable(at, item, found)),
        _ => {}
    }
}

#[test]
fn schemas_are_flat_and_portable() {
    for policy in ["", FAMILIES] {
        let mut found = Vec::new();
        for tool in tools(&Site::with(policy)) {
            let name = tool["name"].as_str().expect("a name");
            let plain = name.len() <= 40
                && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
            assert!(plain, "{name}");
            for side in ["inputSchema", "outputSchema"] {
                assert_eq!(tool[side]["type"], "object", "{name}: {side}");
                unportable(&format!("{name}.{side}"), &tool[side], &mut found);
            }
        }
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}

/// What a client hands to a model, as compact JSON.
fn given_bytes(tools: &[Value]) -> usize {
    let given: Vec<Value> = tools
        .iter()
        .map(|tool| {
            let (about, schema) = (&tool["description"], &tool["inputSchema"]);
            json!({ "name": tool["name"], "description": about, "input_schema": schema })
        })
        .collect();
    serde_json::to_string(&given).expect("JSON").len()
}

#[test]
fn a_model_is_given_few_bytes() {
    let (verbs, families) = (given_bytes(&tools(&Site::new())), given_bytes(&tools(&Site::with(FAMILIES))));
    println!("{verbs} bytes as verbs, {families} as families");
    assert!(verbs <= 14_000 && families <= 8_000, "{verbs} bytes as verbs, {families} as families");
}

#[test]
fn descriptions_are_two_sentences_at_most() {
    for policy in ["", FAMILIES] {
        for tool in tools(&Site::with(policy)) {
            let text = tool["description"].as_str().expect("a description");
            let sentences = text.split_inclusive(['.', '!', '?']).filter(|part| part.ends_with(['.', '!', '?']));
            let ends = sentences.count() - text.matches("e.g.").count() * 2;
            assert!((1..=2).contains(&ends) && text.len() <= 400, "{}: {text}", tool["name"]);
        }
    }
}

#[test]
fn annotations_are_honest() {
    let read_only = ["proc_read", "proc_list", "session_list", "config_get", "health"];
    let destructive = ["run", "proc_start", "proc_send", "proc_signal", "proc_stop", "proc_remove", "session_close"];
    for tool in tools(&Site::new()) {
        let name = tool["name"].as_str().expect("a name");
        let hints = &tool["annotations"];
        for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
            assert!(hints[hint].is_boolean(), "{name}: {hint}: {hints}");
        }
        if [PROCESSES, REPL, SYSTEM].concat().contains(&name) {
            assert_eq!(hints["readOnlyHint"], read_only.contains(&name), "{name}: {hints}");
            assert_eq!(hints["destructiveHint"], destructive.contains(&name), "{name}: {hints}");
        }
    }
}

#[test]
fn a_feature_that_is_off_is_not_listed_and_says_so() {
    for (key, off) in [("repl", REPL), ("system", SYSTEM), ("processes", &[PROCESSES, REPL].concat()[..])] {
        let site = Site::with(&format!("[tools]\n{key} = false"));
        let mut client = site.open();
        let listed = names(client.learn()["tools"].as_array().expect("tools"));
        for name in off {
            assert!(!listed.contains(*name), "{key}: {name}");
            let (code, message) = client.refused(name, json!({}));
            assert!(code == "FEATURE_DISABLED" && message.contains(key), "{key}: {name}: {code}: {message}");
        }
        for name in [PROCESSES, REPL, SYSTEM].concat().iter().filter(|name| !off.contains(name)) {
            assert!(listed.contains(*name), "control: {key}: {name}");
        }
    }
}

#[test]
fn a_feature_that_is_off_is_off_in_families_too() {
    let site = Site::with(&format!("{FAMILIES}\nrepl = false"));
    let mut client = site.open();
    let listed = names(client.learn()["tools"].as_array().expect("tools"));
    assert!(!listed.contains("process") && !listed.contains("session") && listed.contains("run"), "{listed:?}");
    assert_eq!(client.refused("process", json!({ "action": "list" })).0, "FEATURE_DISABLED");
}

#[test]
fn a_tool_that_does_not_exist_is_an_error_of_the_protocol() {
    let site = Site::new();
    let mut client = site.open();
    let answer = client.request("tools/call", json!({ "name": "proc_strat", "arguments": {} }));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains("proc_strat")), "{answer}");
    let answer = client.request("no/such/method", json!({}));
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
}

#[test]
fn families_do_what_verbs_do() {
    let site = Site::with(FAMILIES);
    let mut client = site.open();
    assert_eq!(client.ok("run", json!({ "argv": ["echo", "x"] }))["stdout"], "x\n");
    let started = client.ok("process", json!({ "action": "start", "argv": ["cat"], "initial_read_timeout_ms": 0 }));
    let proc_id = &started["proc_id"];
    let ask = json!({ "action": "send", "proc_id": proc_id, "input": "hello", "wait_ms": 10_000, "until": "\n" });
    assert_eq!(client.ok("process", ask)["output"], "hello\n");
    assert_eq!(client.ok("process", json!({ "action": "list" }))["processes"].as_array().map(Vec::len), Some(2));
    client.ok("session", json!({ "action": "open", "session": "room" }));
    assert_eq!(client.ok("process", json!({ "action": "stop", "proc_id": proc_id }))["state"], "exited");
    let (code, message) = client.refused("process", json!({ "action": "strat" }));
    assert!(code == "INVALID_ARGUMENT" && message.contains("start"), "{code}: {message}");
    let (code, message) = client.refused("process", json!({ "action": "resize", "proc_id": proc_id, "input": "x" }));
    assert!(code == "INVALID_ARGUMENT" && message.contains("input"), "{code}: {message}");
    let (code, message) = client.refused("process", json!({ "proc_id": proc_id }));
    assert!(code == "INVALID_ARGUMENT" && message.contains("action"), "{code}: {message}");
}

#[test]
fn both_eras_serve_the_same() {
    let site = Site::new();
    let (mut old, mut new) = (site.open(), site.open_modern());
    assert_eq!(old.learn()["tools"], new.learn()["tools"]);
    for client in [&mut old, &mut new] {
        let started = client.ok("proc_start", json!({ "argv": ["cat"], "initial_read_timeout_ms": 0 }));
        let ask = json!({ "proc_id": started["proc_id"], "input": "hello", "wait_ms": 10_000, "until": "\n" });
        assert_eq!(client.ok("proc_send", ask)["output"], "hello\n");
        assert_eq!(client.refused("run", json!({})).0, "INVALID_ARGUMENT");
    }
}

#[test]
fn the_first_answer_teaches_the_terminal() {
    let site = Site::new();
    for (mut client, era) in [(site.open_silent(), "handshake"), (site.open_modern(), "modern")] {
        let hello = client.greet();
        let text = hello["instructions"].as_str().unwrap_or_else(|| panic!("{era}: {hello}"));
        assert!((5..=14).contains(&text.lines().count()) && text.contains("proc_"), "{era}: {text}");
    }
}

#[test]
fn every_version_before_is_greeted_in_its_own() {
    let site = Site::new();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = site.open_silent();
        let who = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": who });
        let answer = client.request("initialize", params);
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        client.notify("notifications/initialized", json!({}));
        client.learn();
        assert_eq!(client.ok("run", json!({ "argv": ["echo", "x"] }))["stdout"], "x\n", "{version}");
    }
}

#[test]
fn a_reply_says_everything_once() {
    let site = Site::new();
    let mut client = site.open();
    let call = client.begin("run", json!({ "argv": ["seq", "1", "2000"] }));
    let response = client.response(call);
    let result = &response["result"];
    let text = result["content"][0]["text"].as_str().expect("text");
    assert!(text.len() < 300 && !text.contains("1000\n1001"), "output is not sent twice: {text}");
    assert!(result["structuredContent"]["stdout"].as_str().is_some_and(|text| text.contains("1000\n1001")));
    assert!(result["_meta"]["stockade/call_id"].is_string(), "{}", result["_meta"]);
    assert!(result["_meta"]["stockade/duration_ms"].is_number(), "{}", result["_meta"]);
}
