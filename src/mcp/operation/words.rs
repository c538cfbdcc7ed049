//! Parameters as written into what the broker takes: texts, bytes, patterns, signals, times.

use crate::broker::refused::Refused;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use nix::sys::signal::Signal;
use regex::bytes::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;

/// Bound on compiled patterns. A pattern is at most 1 kB, but repetitions multiply.
const PATTERN_BYTES: usize = 1 << 20;

/// Bound on what is written to a process in one call.
pub const MOST_INPUT: usize = 1 << 20;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Encoding {
    #[default]
    Utf8,
    Base64,
}

pub fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// The bytes a text stands for.
pub fn decoded(name: &str, text: String, encoding: Encoding) -> Result<Vec<u8>, Refused> {
    match encoding {
        Encoding::Utf8 => Ok(text.into_bytes()),
        Encoding::Base64 => BASE64_STANDARD.decode(text.as_bytes()).map_err(|error| {
            let message = format!("`{name}` is not base64 ({error}); accepted is the standard alphabet with padding");
            Refused::invalid(message).with("parameter", name)
        }),
    }
}

/// The same for what is written to a process.
pub fn bytes(name: &str, text: String, encoding: Encoding) -> Result<Vec<u8>, Refused> {
    let bytes = decoded(name, text, encoding)?;
    if bytes.len() > MOST_INPUT {
        let message = format!("`{name}` has {} bytes; at most {MOST_INPUT} are accepted", bytes.len());
        return Err(Refused::invalid(message).with("parameter", name));
    }
    Ok(bytes)
}

/// `until`: over bytes, `^` and `$` at lines, `\0` for NUL.
pub fn until(pattern: Option<String>) -> Result<Option<Regex>, Refused> {
    let Some(pattern) = pattern else { return Ok(None) };
    let built = RegexBuilder::new(&pattern)
        .multi_line(true)
        .octal(true)
        .size_limit(PATTERN_BYTES)
        .dfa_size_limit(PATTERN_BYTES)
        .build();
    match built {
        Ok(pattern) => Ok(Some(pattern)),
        Err(error) => {
            let said = error.to_string();
            let last = said.lines().last().unwrap_or_default().trim_start_matches("error: ");
            let message = format!("`until` is no regular expression: {last}; accepted is the syntax of Rust's regex");
            Err(Refused::invalid(message).with("parameter", "until"))
        }
    }
}

/// `TERM` or `SIGTERM`, of those the schema lists.
pub fn signal(name: &str) -> Result<i32, Refused> {
    let full = if name.starts_with("SIG") { name.to_owned() } else { format!("SIG{name}") };
    let signal: Result<Signal, _> = full.parse();
    signal.map(|signal| signal as i32).map_err(|_| {
        let message = format!("`signal` is {name}; accepted are INT TERM HUP KILL QUIT STOP CONT USR1 USR2");
        Refused::invalid(message).with("parameter", "signal")
    })
}

/// A NUL ends every word the kernel is given.
pub fn without_nul(name: &str, text: &str) -> Result<(), Refused> {
    match text.contains('\0') {
        false => Ok(()),
        true => {
            let message = format!("`{name}` contains a NUL byte, which no program can be given");
            Err(Refused::invalid(message).with("parameter", name))
        }
    }
}
