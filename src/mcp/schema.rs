//! JSON schemas of parameters and results, made flat: every client can read them, and every byte is paid by an agent.
//!
//! What goes: `$ref` and `$defs`, `anyOf`, `["integer","null"]`, `format`, `title`, defaults of nothing. A parameter
//! that may be left out is one that is not `required`; null is no value of its own.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

pub type Object = Map<String, Value>;

pub fn input<T: JsonSchema>() -> Object {
    let mut schema = generate::<T>(SchemaSettings::draft2020_12());
    // Some clients insist on it, even where there are none.
    schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    schema
}

pub fn output<T: JsonSchema>() -> Object {
    let mut schema = generate::<T>(SchemaSettings::draft2020_12().for_serialize());
    schema.remove("additionalProperties");
    drop_bounds(&mut schema);
    schema
}

fn generate<T: JsonSchema>(mut settings: SchemaSettings) -> Object {
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    let Value::Object(mut schema) = schema else { return Map::new() };
    flatten(&mut schema);
    schema.remove("description");
    schema
}

fn flatten(schema: &mut Object) {
    for word in ["$schema", "title", "format"] {
        schema.remove(word);
    }
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
    if let Some(Value::Array(choices)) = schema.remove("anyOf") {
        let chosen = choices.into_iter().find(|choice| choice["type"] != "null");
        if let Some(Value::Object(chosen)) = chosen {
            schema.extend(chosen);
        }
    }
    if let Some(Value::Array(kinds)) = schema.get("type") {
        let kind = kinds.iter().find(|kind| *kind != "null").cloned();
        schema.insert("type".into(), kind.unwrap_or(Value::Null));
    }
    if let Some(Value::Array(choices)) = schema.get_mut("enum") {
        choices.retain(|choice| !choice.is_null());
    }
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ");
    }
    below(schema, flatten);
}

/// A result says what it is; how large its numbers can be helps nobody.
fn drop_bounds(schema: &mut Object) {
    for word in ["minimum", "maximum"] {
        schema.remove(word);
    }
    below(schema, drop_bounds);
}

/// The schemas inside a schema. The names of properties are not words of the schema language.
fn below(schema: &mut Object, visit: fn(&mut Object)) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.values_mut().for_each(|property| inside(property, visit));
    }
    for word in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get_mut(word).filter(|inner| **inner != Value::Bool(false)) {
            inside(inner, visit);
        }
    }
}

fn inside(inner: &mut Value, visit: fn(&mut Object)) {
    // `true` is the schema that takes anything.
    if *inner == Value::Bool(true) {
        *inner = Value::Object(Map::new());
    }
    if let Value::Object(inner) = inner {
        visit(inner);
    }
}
