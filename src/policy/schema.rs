//! The JSON Schema of policy files, for editors and for `stockade policy schema`.

use serde_json::Value;

use super::file::File;

pub fn schema() -> Value {
    let mut schema = schemars::schema_for!(File).to_value();
    drop_null(&mut schema);
    schema["title"] = "stockade policy".into();
    schema
}

/// A key may be left out, but TOML has no null to give it.
fn drop_null(schema: &mut Value) {
    if let Some(kinds) = schema.get_mut("type").and_then(Value::as_array_mut) {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_slice() {
            schema["type"] = only.clone();
        }
    }
    for choice in ["anyOf", "enum"] {
        if let Some(choices) = schema.get_mut(choice).and_then(Value::as_array_mut) {
            choices.retain(|choice| !choice.is_null() && choice["type"] != "null");
        }
    }
    match schema {
        Value::Object(fields) => fields.values_mut().for_each(drop_null),
        Value::Array(entries) => entries.iter_mut().for_each(drop_null),
        _ => {}
    }
}
