//! Puts one entry into the text of a configuration and leaves every other byte as it is.
//!
//! How that is done is in [`super::json`] and [`super::tables`]. Here it is proved: the new text is parsed again, and
//! unless it says the same as the old one plus our entry it is not used.

use super::clients::{Facts, Format};
use super::{json, tables};
use crate::policy::parse_toml;
use serde_json::{Map, Value};

/// The entry to be: its name and its keys.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    pub servers: &'a str,
    pub name: &'a str,
    pub fields: &'a [(&'a str, Value)],
}

#[derive(Debug, PartialEq, Eq)]
pub enum Edit {
    /// It says so already; keys that people added to our entry are theirs.
    Already,
    Added(String),
    /// Another entry had this name.
    Replaced(String),
}

/// The text of a file that holds nothing but our entry.
pub fn fresh(facts: &Facts, wanted: Wanted<'_>) -> String {
    match facts.format {
        Format::Json => json::fresh(wanted),
        Format::Toml => tables::table(wanted),
    }
}

/// The text with our entry in it, or why it cannot be put there.
pub fn edit(facts: &Facts, text: &str, wanted: Wanted<'_>) -> Result<Edit, String> {
    let before = parse(facts.format, text)?;
    let found = before.get(wanted.servers).and_then(|servers| servers.get(wanted.name));
    if found.is_some_and(|found| says(found, wanted.fields)) {
        return Ok(Edit::Already);
    }
    let after = match facts.format {
        Format::Json => json::put(text, wanted)?,
        Format::Toml => tables::put(text, wanted)?,
    };
    prove(facts.format, &before, &after, wanted)?;
    Ok(if found.is_some() { Edit::Replaced(after) } else { Edit::Added(after) })
}

/// Both formats as one kind of value, so that they can be compared.
fn parse(format: Format, text: &str) -> Result<Value, String> {
    let parsed = match format {
        Format::Json if text.trim().is_empty() => Ok(Value::Object(Map::new())),
        Format::Json => serde_json::from_str(text).map_err(|error| format!("is not plain JSON: {error}")),
        Format::Toml => parse_toml(text).map_err(|error| format!("is not TOML: {error}")),
    };
    parsed.and_then(|value: Value| if value.is_object() { Ok(value) } else { Err("is not a JSON object".to_owned()) })
}

fn says(found: &Value, fields: &[(&str, Value)]) -> bool {
    fields.iter().all(|(key, value)| found.get(key) == Some(value))
}

fn prove(format: Format, before: &Value, after: &str, wanted: Wanted<'_>) -> Result<(), String> {
    let after = parse(format, after).map_err(|_| "is written in a way that this does not edit".to_owned())?;
    let ours = after.get(wanted.servers).and_then(|servers| servers.get(wanted.name)).and_then(Value::as_object);
    let exact = ours.is_some_and(|ours| ours.len() == wanted.fields.len());
    let whole = exact && says(&after[wanted.servers][wanted.name], wanted.fields);
    if whole && others(before, wanted) == others(&after, wanted) {
        return Ok(());
    }
    Err(format!("holds `{}` in a way that this does not edit", wanted.servers))
}

/// Everything but our entry, and but a place for servers that holds none.
fn others(whole: &Value, wanted: Wanted<'_>) -> Value {
    let mut rest = whole.clone();
    if let Some(servers) = rest.get_mut(wanted.servers).and_then(Value::as_object_mut) {
        servers.remove(wanted.name);
        if servers.is_empty()
            && let Some(rest) = rest.as_object_mut()
        {
            rest.remove(wanted.servers);
        }
    }
    rest
}
