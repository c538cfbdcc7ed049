//! Bounds and types in the published schemas: each is enforced, whatever the tool.

use crate::bad_input::{Scene, everything, scene};
use crate::site::Site;
use serde_json::{Map, Value, json};

/// Arguments that a tool takes, so that one of them can be spoilt.
fn good_arguments(scene: &Scene) -> Map<String, Value> {
    let nobody = "p_0000000000000000";
    let table = json!({
        "run": { "argv": ["true"] },
        "proc_start": { "argv": ["true"], "initial_read_timeout_ms": 0 },
        "proc_send": { "proc_id": scene.running, "input": "x" },
        "proc_read": { "proc_id": scene.running, "timeout_ms": 0 },
        "proc_signal": { "proc_id": nobody, "signal": "CONT" },
        "proc_resize": { "proc_id": scene.in_terminal, "rows": 40, "cols": 120 },
        "proc_stop": { "proc_id": nobody },
        "proc_list": {},
        "proc_remove": { "proc_id": nobody },
        "session_open": { "session": "other" },
        "session_list": {},
        "session_close": { "session": "nowhere", "processes": "stop" },
        "config_get": {},
        "config_set": { "key": "limits.inline_bytes", "value": "4K" },
        "health": {},
    });
    table.as_object().expect("a table").clone()
}

/// Values that break the bounds or the type which a schema states.
fn breaking(schema: &Value) -> Vec<Value> {
    let mut values = Vec::new();
    match schema["type"].as_str() {
        Some("integer") => {
            assert!(schema["minimum"].is_i64(), "an integer without a bound: {schema}");
            values.extend(schema["minimum"].as_i64().map(|least| json!(least - 1)));
            values.extend(schema["maximum"].as_i64().map(|most| json!(most + 1)));
            values.extend([json!("7"), json!(1.5), json!([1])]);
        }
        Some("string") => {
            values.extend([json!(5), json!(["x"]), json!({ "x": "y" }), json!(true)]);
            values.extend(schema["enum"].as_array().map(|_| json!("none of these")));
            values.extend(schema["maxLength"].as_u64().map(|most| json!("x".repeat(most as usize + 1))));
            values.extend(schema["minLength"].as_u64().filter(|least| *least > 0).map(|_| json!("")));
        }
        Some("boolean") => values.extend([json!("true"), json!(1), json!([])]),
        Some("array") => {
            values.extend([json!("x"), json!({ "0": "x" }), json!([5])]);
            values.extend(schema["maxItems"].as_u64().map(|most| json!(vec!["x"; most as usize + 1])));
            values.extend(schema["minItems"].as_u64().filter(|least| *least > 0).map(|_| json!([])));
        }
        Some("object") => values.extend([json!("x"), json!([["a", "b"]]), json!(5)]),
        _ => {}
    }
    values
}

#[test]
fn every_bound_and_type_that_a_schema_states_is_enforced() {
    let site = Site::new();
    let mut scene = scene(&site);
    let good = good_arguments(&scene);
    let tools = scene.client.learn()["tools"].take();
    let before = everything(&mut scene.client);
    let (mut wrong, mut tried) = (Vec::new(), 0);
    for tool in tools.as_array().expect("tools") {
        let name = tool["name"].as_str().expect("a name");
        let Some(arguments) = good.get(name) else { continue };
        for (parameter, schema) in tool["inputSchema"]["properties"].as_object().unwrap_or(&Map::new()) {
            for value in breaking(schema) {
                let mut arguments = arguments.clone();
                arguments[parameter] = value.clone();
                let answer = scene.client.call(name, arguments);
                let message = answer["error"]["message"].as_str().unwrap_or_default();
                if answer["error"]["code"] != "INVALID_ARGUMENT" || !message.contains(parameter.as_str()) {
                    wrong.push(format!("{name}: `{parameter}` = {value:.60} came to {answer:.300}"));
                }
                tried += 1;
            }
        }
        let mut arguments = arguments.clone();
        arguments["never_heard_of"] = json!(1);
        let answer = scene.client.call(name, arguments);
        if answer["error"]["code"] != "INVALID_ARGUMENT" {
            wrong.push(format!("{name} takes an unknown parameter: {answer:.300}"));
        }
    }
    assert_eq!(everything(&mut scene.client), before, "nothing changed");
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(tried > 150, "{tried}");
}
