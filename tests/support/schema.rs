//! JSON Schema as far as portable tool schemas go, and no further: an unknown keyword is a violation.
//!
//! Clients differ in what they understand of JSON Schema. What is understood here, all of them do.

use serde_json::{Map, Value};

/// Keywords that say nothing about whether a value is good.
const REMARKS: [&str; 5] = ["$schema", "title", "description", "default", "examples"];

/// Where a value breaks its schema, one line each.
pub fn violations(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(schema, value, "$", &mut found);
    found
}

fn check(schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    let Some(schema) = schema.as_object() else {
        found.push(format!("{at}: the schema is {schema}"));
        return;
    };
    for (keyword, rule) in schema {
        let holds = match keyword.as_str() {
            "type" => rule.as_str().is_some_and(|name| is_a(name, value)),
            "enum" => rule.as_array().is_some_and(|values| values.contains(value)),
            "const" => rule == value,
            "minimum" => number(value).is_none_or(|number| number >= rule.as_f64().unwrap_or(f64::NAN)),
            "maximum" => number(value).is_none_or(|number| number <= rule.as_f64().unwrap_or(f64::NAN)),
            "minLength" => length(value).is_none_or(|length| length >= rule.as_u64().unwrap_or(u64::MAX)),
            "maxLength" => length(value).is_none_or(|length| length <= rule.as_u64().unwrap_or(0)),
            "minItems" => items(value).is_none_or(|count| count >= rule.as_u64().unwrap_or(u64::MAX)),
            "maxItems" => items(value).is_none_or(|count| count <= rule.as_u64().unwrap_or(0)),
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(rule, item, &format!("{at}[{index}]"), found);
                }
                true
            }
            "properties" | "required" | "additionalProperties" => true,
            other if REMARKS.contains(&other) => true,
            other => {
                found.push(format!("{at}: `{other}` is no portable keyword"));
                true
            }
        };
        if !holds {
            found.push(format!("{at}: {value:.80} breaks `{keyword}: {rule}`"));
        }
    }
    if let Some(object) = value.as_object() {
        check_object(schema, object, at, found);
    }
}

fn check_object(schema: &Map<String, Value>, object: &Map<String, Value>, at: &str, found: &mut Vec<String>) {
    let none = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        if !name.as_str().is_some_and(|name| object.contains_key(name)) {
            found.push(format!("{at}: {name} is missing"));
        }
    }
    for (name, value) in object {
        let place = format!("{at}.{name}");
        match (properties.get(name), schema.get("additionalProperties")) {
            (Some(rule), _) => check(rule, value, &place, found),
            (None, Some(rule @ Value::Object(_))) => check(rule, value, &place, found),
            (None, Some(Value::Bool(true))) => {}
            // What no schema names is not part of the contract, even where JSON Schema would let it pass.
            (None, _) if properties.is_empty() && schema.get("type").is_none_or(|name| name == "object") => {}
            (None, _) => found.push(format!("{place}: is not in the schema")),
        }
    }
}

fn is_a(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        _ => false,
    }
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64()
}

fn length(value: &Value) -> Option<u64> {
    value.as_str().map(|text| text.chars().count() as u64)
}

fn items(value: &Value) -> Option<u64> {
    value.as_array().map(|items| items.len() as u64)
}
