//! The text of one policy file, and the parser's complaints about it in our words.
//!
//! The only place that calls the TOML parser. How the text is read from disk is in
//! [`super::load`].

use std::ops::Range;
use std::path::PathBuf;

use super::error::{Error, Place, nearest, one_of};
use super::file::File;
use super::schema::schema;

/// One file of an `extends` chain.
#[derive(Debug)]
pub(super) struct Source {
    /// What errors call it: the path as given, or the shipped name.
    pub name: String,
    /// Canonical; `None` for a shipped policy.
    pub path: Option<PathBuf>,
    pub text: String,
}

impl Source {
    pub fn parse(&self) -> Result<File, Error> {
        toml::from_str(&self.text).map_err(|error| self.complaint(&error))
    }

    pub fn error(&self, span: &Range<usize>, message: impl Into<String>) -> Error {
        Error { place: Place::in_text(&self.name, &self.text, span), message: message.into(), hint: None }
    }

    fn complaint(&self, error: &toml::de::Error) -> Error {
        let span = error.span().unwrap_or(0..0);
        let message = error.message();
        if let Some(rest) = message.strip_prefix("unknown field ") {
            let at = self.error(&span, format!("unknown key `{}`", quoted(rest).next().unwrap_or_default()));
            return at.hint(key_hint(rest));
        }
        if let Some(rest) = message.strip_prefix("unknown variant ") {
            let mut words = quoted(rest);
            let at = self.error(&span, format!("unknown word `{}`", words.next().unwrap_or_default()));
            return at.hint(format!("accepted here: {}", one_of(words)));
        }
        self.error(&span, plain(message)).hint(type_hint(message))
    }
}

/// Any TOML document as a plain value, for whoever must read a file that is no policy; the error is one line.
pub fn parse_toml(text: &str) -> Result<serde_json::Value, String> {
    toml::from_str(text).map_err(|error| plain(error.message()))
}

/// The words in backticks. A key with a backtick in it only spoils its own message.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn key_hint(rest: &str) -> String {
    let mut words = quoted(rest);
    let key = words.next().unwrap_or_default();
    let accepted: Vec<&str> = words.collect();
    let list = one_of(accepted.iter().copied());
    if let Some(near) = nearest(key, accepted.iter().copied()) {
        return format!("did you mean `{near}`? accepted here: {list}");
    }
    match section_of(key) {
        Some(section) => format!("`{key}` belongs in `[{section}]`; accepted here: {list}"),
        None => format!("accepted here: {list}"),
    }
}

/// The section that has this key, when a key stands under the wrong heading.
fn section_of(key: &str) -> Option<String> {
    let schema = schema();
    let sections = schema["$defs"].as_object()?;
    let has_key = |section: &serde_json::Value| section["properties"].get(key).is_some();
    let name = sections.iter().find(|(_, section)| has_key(section))?.0.to_lowercase();
    schema["properties"].get(&name).is_some().then_some(name)
}

/// serde speaks of Rust's types; an operator knows TOML's.
fn plain(message: &str) -> String {
    let first = message.lines().next().unwrap_or_default();
    match first.split_once(", expected struct ") {
        Some((found, section)) => format!("{found}, expected the section `[{}]`", section.to_lowercase()),
        None => first
            .replace("expected f64", "expected a number")
            .replace("expected a sequence", "expected a list")
            .replace("expected a map", "expected a table"),
    }
}

fn type_hint(message: &str) -> &'static str {
    let expected = message.split_once("expected ").map_or("", |(_, expected)| expected);
    match expected {
        "a boolean" => "write `true` or `false`, without quotes",
        "a sequence" => "write a list, also for one entry: `[\"…\"]`",
        "a string" => "write it in quotes",
        "a whole number" => "write digits only, without quotes",
        "f64" => "write a number without quotes, such as `2` or `0.5`",
        "a number with its unit in quotes" => "write a size as `\"512M\"`, a duration as `\"10s\"`",
        _ if message.contains("shell") => "write `\"/bin/bash\"`, or `false`",
        _ if message.starts_with("duplicate key") => "each key and each section may stand once; remove one of the two",
        _ => "a policy is TOML: `key = value`, under a `[section]` on a line of its own",
    }
}
