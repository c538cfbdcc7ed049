//! Arguments that break a rule, and what they are told.

use super::check::Rules;
use super::operation::table;
use super::schema::Object;
use crate::broker::refused::Code;
use serde_json::{Value, json};

fn check(tool: &str, given: &Value) -> Result<Object, String> {
    let row = table().into_iter().find(|row| row.facts.name == tool).unwrap();
    Rules::read(&row.input).check(given.as_object().unwrap().clone()).map_err(|refused| {
        assert_eq!(refused.code, Code::InvalidArgument);
        refused.message
    })
}

#[test]
fn every_broken_rule_is_named_with_what_is_accepted() {
    let long = "x".repeat(262_145);
    for (tool, given, says) in [
        ("run", json!({ "command": 5 }), "`command` is 5; it must be a string of 0 to 262144 characters"),
        ("run", json!({ "command": long }), "`command` is a string of 262145 characters; it must be a string of 0 to"),
        ("run", json!({ "argv": "ls" }), "`argv` is \"ls\"; it must be a list of at most 4096, each a string"),
        ("run", json!({ "argv": ["ls", 5] }), "`argv` is [\"ls\",5]; it must be a list"),
        ("run", json!({ "argv": vec!["x"; 4097] }), "`argv` is a list of 4097; it must be a list of at most 4096"),
        ("run", json!({ "timeout_ms": 0 }), "`timeout_ms` is 0; it must be an integer from 1 to 86400000"),
        ("run", json!({ "timeout_ms": 86_400_001 }), "`timeout_ms` is 86400001; it must be"),
        ("run", json!({ "timeout_ms": -1 }), "`timeout_ms` is -1; it must be"),
        ("run", json!({ "timeout_ms": "1e3" }), "`timeout_ms` is \"1e3\"; it must be an integer"),
        ("run", json!({ "timeout_ms": 1.5 }), "`timeout_ms` is 1.5; it must be an integer"),
        ("run", json!({ "timeout_ms": 1e300 }), "`timeout_ms` is 1e+300; it must be an integer"),
        ("run", json!({ "timeout_ms": u64::MAX }), "`timeout_ms` is 18446744073709551615; it must be"),
        ("run", json!({ "timeout_ms": true }), "`timeout_ms` is true; it must be an integer"),
        ("run", json!({ "timeout_ms": [] }), "`timeout_ms` is []; it must be an integer"),
        ("run", json!({ "yield_ms": 55_001 }), "`yield_ms` is 55001; it must be an integer from 0 to 55000"),
        ("run", json!({ "max_output_bytes": 262_145 }), "from 0 to 262144"),
        ("run", json!({ "background": "yes" }), "`background` is \"yes\"; it must be true or false"),
        ("run", json!({ "encoding": "latin1" }), "`encoding` is \"latin1\"; it must be one of utf8, base64"),
        ("run", json!({ "env": { "A": 1 } }), "`env` is {\"A\":1}; it must be an object of at most 1024"),
        ("run", json!({ "session": "a b" }), "`session` is \"a b\"; it must be a string that matches"),
        ("run", json!({ "session": "" }), "`session` is \"\"; it must be a string that matches"),
        ("run", json!({ "description": "x".repeat(201) }), "`description` is a string of 201 characters"),
        ("run", json!({ "timeout": 5 }), "there is no parameter `timeout`; the nearest is `timeout_ms`"),
        ("run", json!({ "elephant": 5 }), "there is no parameter `elephant`; accepted are `argv`, `background`"),
        ("session_list", json!({ "x": 5 }), "there is no parameter `x`; none is taken"),
        ("proc_start", json!({ "rows": 501 }), "`rows` is 501; it must be an integer from 1 to 500"),
        ("proc_start", json!({ "cols": 0 }), "`cols` is 0; it must be an integer from 1 to 1000"),
        ("proc_start", json!({ "initial_read_timeout_ms": 5001 }), "from 0 to 5000"),
        ("proc_start", json!({ "buffer_lines": 0 }), "from 1 to 1000000"),
        ("proc_send", json!({ "input": "x" }), "`proc_id` is missing; it must be a string"),
        ("proc_send", json!({ "proc_id": null, "input": "x" }), "`proc_id` is missing"),
        ("proc_send", json!({ "proc_id": "a", "wait_ms": 55_001 }), "from 0 to 55000"),
        ("proc_read", json!({ "proc_id": "a", "timeout_ms": 10_001 }), "from 0 to 10000"),
        ("proc_read", json!({ "proc_id": "a", "cursor": -1 }), "from 0 to 9007199254740992"),
        ("proc_read", json!({ "proc_id": "a", "max_bytes": 0 }), "from 1 to 262144"),
        ("proc_read", json!({ "proc_id": "a", "tail_lines": 10_001 }), "from 1 to 10000"),
        ("proc_read", json!({ "proc_id": "a", "from_line": 0 }), "an integer from 1 on"),
        ("proc_read", json!({ "proc_id": "a", "stream": "both" }), "one of all, stdout, stderr"),
        ("proc_signal", json!({ "proc_id": "a", "signal": "WINCH" }), "a string that matches"),
        ("proc_stop", json!({ "proc_id": "a", "grace_ms": 60_001 }), "from 0 to 60000"),
        ("session_close", json!({ "session": "a" }), "`processes` is missing; it must be one of stop, keep"),
        ("config_set", json!({ "key": "limits.memory" }), "`value` is missing; it must be any JSON value"),
    ] {
        let message = check(tool, &given).expect_err(&given.to_string());
        assert!(message.contains(says), "{message}\n  instead of {says}");
    }
}

#[test]
fn what_fits_is_passed_on_as_it_is_meant() {
    for (tool, given, meant) in [
        ("run", json!({ "timeout_ms": 5.0 }), json!({ "timeout_ms": 5 })),
        ("run", json!({ "timeout_ms": 86_400_000, "yield_ms": 0 }), json!({ "timeout_ms": 86_400_000, "yield_ms": 0 })),
        ("run", json!({ "command": "é", "cwd": null }), json!({ "command": "é" })),
        ("run", json!({ "command": "x".repeat(262_144) }), json!({ "command": "x".repeat(262_144) })),
        ("run", json!({ "env": { "A": "1" } }), json!({ "env": { "A": "1" } })),
        ("proc_signal", json!({ "proc_id": "a", "signal": "SIGINT" }), json!({ "proc_id": "a", "signal": "SIGINT" })),
        ("config_set", json!({ "key": "a", "value": null }), json!({ "key": "a", "value": null })),
    ] {
        assert_eq!(Value::Object(check(tool, &given).unwrap()), meant);
    }
}
