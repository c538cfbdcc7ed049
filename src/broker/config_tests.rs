//! What is shown of a policy in force, and what of it may be changed.

use super::*;
use crate::broker::refused::Code;
use crate::policy::Overrides;
use serde_json::json;
use std::sync::atomic::{AtomicU32, Ordering};

fn policy() -> Policy {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let name = format!("config-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
    let workspace = std::env::temp_dir().join(name);
    std::fs::create_dir(&workspace).expect("a directory");
    let overrides = Overrides { env: vec!["GH_TOKEN=abc".into(), "A.B=c".into()], ..Overrides::default() };
    let mut policy = Policy::load(Some("default"), Some(&workspace), &overrides).expect("a shipped policy");
    std::fs::remove_dir(&workspace).expect("an own directory");
    policy.tools.repl = false;
    policy
}

#[test]
fn a_policy_is_shown_with_the_names_and_spellings_of_its_file() {
    let policy = policy();
    for (key, expected) in [
        ("limits.memory", json!("2G")),
        ("limits.cpus", json!(2.0)),
        ("limits.wall_time", json!("10m")),
        ("limits.processes", json!(256)),
        ("limits.output_overflow", json!("drop-oldest")),
        ("retention.max_bytes", json!("1G")),
        ("processes", json!({ "per_session": 4, "total": 32, "keep_finished": "1h" })),
        ("limits.cpu_time", Value::Null),
        ("tools.repl", json!(false)),
        ("environment.set.A.B", json!("c")),
        ("environment.set.GH_TOKEN", json!("<redacted>")),
        ("agent", json!("default")),
    ] {
        assert_eq!(get(&policy, Some(key)), Ok(expected), "{key}");
    }
    let tree = get(&policy, None).expect("all of it");
    assert_eq!(tree["limits"]["idle_time"], "30m");
    assert!(!tree.to_string().contains("abc"), "{tree}");
}

#[test]
fn every_key_of_the_schema_can_be_asked_for() {
    let policy = policy();
    let keys = policy::keys();
    assert!(keys.len() > 40, "{keys:?}");
    for key in keys {
        get(&policy, Some(&key)).unwrap_or_else(|refused| panic!("{refused}"));
    }
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest() {
    let policy = policy();
    for (key, near) in [
        ("limits.memry", Some("limits.memory")),
        ("memory", Some("limits.memory")),
        ("limit", Some("limits")),
        ("banana", None),
        ("", None),
        ("limits.memory.x", Some("limits.memory")),
    ] {
        let refused = get(&policy, Some(key)).expect_err(key);
        assert_eq!(refused.code, Code::InvalidArgument);
        assert_eq!(refused.details.get("nearest").and_then(Value::as_str), near, "{refused}");
    }
}

#[test]
fn a_tighter_value_is_taken_and_can_be_taken_back() {
    let file = policy();
    let mut policy = file.clone();
    for (key, value, expected) in [
        ("limits.wall_time", json!("90s"), json!("90s")),
        ("limits.wall_time", json!("10m"), json!("10m")),
        ("limits.max_wall_time", json!("5m"), json!("5m")),
        ("limits.wall_time", json!("5m"), json!("5m")),
        ("limits.idle_time", json!("100ms"), json!("100ms")),
        ("limits.output_bytes", json!("1M"), json!("1M")),
        ("limits.inline_bytes", json!(4096), json!("4K")),
        ("processes.per_session", json!(1), json!(1)),
        ("processes.total", json!(32), json!(32)),
        ("processes.keep_finished", json!("0s"), json!("0s")),
        ("tools.files", json!(false), json!(false)),
        ("tools.files", json!(true), json!(true)),
        ("tools.repl", json!(false), json!(false)),
    ] {
        assert_eq!(set(&mut policy, &file, key, &value), Ok(expected), "{key} {value}");
    }
    assert_eq!(policy.limits.inline_bytes, Bytes(4096));
}

#[test]
fn a_lowered_bound_takes_the_wall_time_with_it() {
    let file = policy();
    let mut policy = file.clone();
    set(&mut policy, &file, "limits.max_wall_time", &json!("1m")).expect("tighter");
    assert_eq!(policy.limits.wall_time, Duration::from_secs(60));
}

#[test]
fn what_is_looser_misspelled_or_not_settable_is_refused_and_changes_nothing() {
    let file = policy();
    let mut policy = file.clone();
    for (key, value, says) in [
        ("limits.wall_time", json!("11m"), "accepted: 1ms to 10m"),
        ("limits.wall_time", json!(90), "`90s` is seconds"),
        ("limits.wall_time", json!("90"), "`90s` is seconds"),
        ("limits.wall_time", json!("0s"), "accepted: 1ms to"),
        ("limits.wall_time", json!(true), "a duration such as"),
        ("limits.wall_time", json!("5M"), "write `5m`"),
        ("limits.inline_bytes", json!("1M"), "accepted: 256 to 16K"),
        ("limits.inline_bytes", json!("10s"), "write a size"),
        ("limits.inline_bytes", json!(1.5), "smaller unit"),
        ("limits.inline_bytes", json!("1"), "accepted: 256 to"),
        ("processes.total", json!(0), "accepted: 1 to 32"),
        ("processes.total", json!(33), "accepted: 1 to 32"),
        ("processes.total", json!("4"), "accepted: 1 to 32"),
        ("processes.total", json!(4_294_967_297_u64), "accepted: 1 to 32"),
        ("tools.repl", json!(true), "accepted: `false`, as"),
        ("tools.files", json!("false"), "accepted: `true` or `false`"),
        ("limits.memory", json!("1G"), "built into the cell"),
        ("retention.artifacts", json!("1h"), "operator's to decide"),
        ("tools.surface", json!("verbs"), "can be set: `limits.wall_time`"),
        ("limits.wall_tim", json!("1m"), "did you mean `limits.wall_time`?"),
        ("limits", json!({}), "one of its keys"),
    ] {
        let refused = set(&mut policy, &file, key, &value).expect_err(key);
        assert_eq!(refused.code, Code::InvalidArgument, "{key}");
        assert!(refused.message.contains(says), "{key} {value}: {refused}");
    }
    assert_eq!(policy, file);
}

#[test]
fn the_wall_time_stays_below_a_bound_that_was_lowered() {
    let file = policy();
    let mut policy = file.clone();
    set(&mut policy, &file, "limits.max_wall_time", &json!("1m")).expect("tighter");
    let refused = set(&mut policy, &file, "limits.wall_time", &json!("2m")).expect_err("past the bound in force");
    assert!(refused.message.contains("`limits.max_wall_time`, which is 1m now"), "{refused}");
}
