//! A resolved policy as JSON, for whoever asks at run time: the names and the spellings of the file.
//!
//! It goes by way of the TOML that [`super::show`] prints, so that there is one spelling of every value. Unlike the
//! TOML it is not for the operator alone: values whose names `redact` covers are left out.

use serde_json::Value;

use super::{Policy, glob, schema};

/// Stands for a value that must not be shown.
pub const REDACTED: &str = "<redacted>";

impl Policy {
    pub fn as_json(&self) -> Value {
        let mut tree: Value = toml::from_str(&self.to_toml()).expect("a policy that is shown is TOML");
        if let Some(set) = tree["environment"].get_mut("set").and_then(Value::as_object_mut) {
            for (name, value) in set {
                if self.environment.redact.iter().any(|pattern| glob::matches(pattern, name)) {
                    *value = REDACTED.into();
                }
            }
        }
        tree
    }
}

/// Every key a policy file may have (`limits`, `limits.memory`), also those a policy leaves out.
pub fn keys() -> Vec<String> {
    let schema = schema();
    let mut keys = Vec::new();
    for (name, entry) in schema["properties"].as_object().into_iter().flatten() {
        if name == "extends" {
            continue;
        }
        keys.push(name.clone());
        let section = entry["$ref"].as_str().and_then(|place| schema.pointer(place.trim_start_matches('#')));
        let fields = section.and_then(|section| section["properties"].as_object());
        keys.extend(fields.into_iter().flatten().map(|(field, _)| format!("{name}.{field}")));
    }
    keys
}
