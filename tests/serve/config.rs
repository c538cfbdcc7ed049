//! `config_get` and `config_set`: the policy in force, and a tighter one; never a looser one.

use crate::site::Site;
use serde_json::{Value, json};

/// The value of one key, however the answer wraps it.
fn value(answer: &Value) -> Value {
    answer.get("value").unwrap_or(answer).clone()
}

#[test]
fn the_policy_in_force_can_be_read_whole_and_by_key() {
    let site = Site::with("[limits]\ninline_bytes = \"12K\"\n[processes]\nper_session = 3");
    let mut client = site.open();
    let all = client.ok("config_get", json!({})).to_string();
    for word in ["limits", "processes", "filesystem", "network"] {
        assert!(all.contains(word), "{word}: {all}");
    }
    let one = value(&client.ok("config_get", json!({ "key": "processes.per_session" })));
    assert_eq!(one, 3);
    let one = value(&client.ok("config_get", json!({ "key": "limits.inline_bytes" })));
    assert!([json!("12K"), json!(12 << 10)].contains(&one), "{one}");
    let (code, message) = client.refused("config_get", json!({ "key": "limits.memmory" }));
    assert!(["NOT_FOUND", "INVALID_ARGUMENT"].contains(&&*code) && message.contains("memory"), "{code}: {message}");
}

#[test]
fn a_tighter_value_is_in_force_at_once() {
    let site = Site::new();
    let mut client = site.open();
    let run = json!({ "command": "yes | head -c 100000" });
    let before = client.ok("run", run.clone())["stdout"].as_str().expect("text").len();
    client.ok("config_set", json!({ "key": "limits.inline_bytes", "value": "2K" }));
    let after = client.ok("run", run)["stdout"].as_str().expect("text").len();
    assert!(before > 8000 && after < 2300, "{before}, then {after}");
    client.ok("config_set", json!({ "key": "processes.per_session", "value": 1 }));
    client.ok("proc_start", json!({ "argv": ["sleep", "1000"], "initial_read_timeout_ms": 0 }));
    assert_eq!(client.refused("proc_start", json!({ "argv": ["true"] })).0, "PROC_LIMIT_EXCEEDED");
}

#[test]
fn a_looser_value_is_refused_and_changes_nothing() {
    let site = Site::new();
    let mut client = site.open();
    let before = client.ok("config_get", json!({}));
    for (key, loose) in [
        ("limits.inline_bytes", json!("1M")),
        ("limits.output_bytes", json!("1G")),
        ("limits.wall_time", json!("100h")),
        ("limits.max_wall_time", json!("100h")),
        ("limits.idle_time", json!("100h")),
        ("limits.memory", json!("100G")),
        ("processes.per_session", json!(1000)),
        ("processes.total", json!(1000)),
        ("filesystem.allowed_roots", json!(["/"])),
        ("filesystem.hidden", json!([])),
        ("commands.blocked", json!([])),
        ("commands.allowed", json!(["*"])),
        ("network.mode", json!("host")),
        ("enforcement.landlock", json!("if-available")),
        ("syscalls.allow", json!(["debug"])),
        ("identity.host_user", json!("root")),
        ("agent", json!("other")),
        ("no.such.key", json!(1)),
        ("limits.inline_bytes", json!("lots")),
        ("limits.inline_bytes", json!(-1)),
        ("limits.inline_bytes", json!(null)),
        ("limits.inline_bytes", json!("0")),
    ] {
        let answer = client.call("config_set", json!({ "key": key, "value": loose }));
        assert!(answer["error"]["message"].is_string(), "{key} = {loose}: {answer}");
        assert_eq!(client.ok("config_get", json!({})), before, "{key} = {loose}");
    }
    client.ok("config_set", json!({ "key": "limits.inline_bytes", "value": "4K" }));
    client.ok("config_set", json!({ "key": "limits.inline_bytes", "value": "8K" }));
    let (_, message) = client.refused("config_set", json!({ "key": "limits.inline_bytes", "value": "17K" }));
    assert!(message.contains("inline_bytes"), "the file's value stays the bound: {message}");
}

#[test]
fn what_one_client_tightens_does_not_outlive_it() {
    let site = Site::new();
    let mut client = site.open();
    client.ok("config_set", json!({ "key": "processes.per_session", "value": 1 }));
    drop(client);
    let mut client = site.open();
    assert_eq!(value(&client.ok("config_get", json!({ "key": "processes.per_session" }))), 4);
}

#[test]
fn health_says_what_is_enforced_and_how_full_it_is() {
    let site = Site::new();
    let mut client = site.open();
    client.ok("proc_start", json!({ "argv": ["sleep", "1000"], "initial_read_timeout_ms": 0 }));
    let health = client.ok("health", json!({}));
    assert_eq!(health["version"], env!("CARGO_PKG_VERSION"));
    assert!(health["uptime_s"].is_number() && health["limits"].is_object(), "{health}");
    for wall in ["namespaces", "landlock", "seccomp", "cgroups"] {
        assert!(health["enforcement"].get(wall).is_some(), "{wall}: {health}");
    }
    assert!(health["processes"].to_string().contains('1'), "{health}");
}
