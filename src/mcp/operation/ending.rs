//! Parts of results that many operations share: how it ended, what it used, how its bytes look.

use super::words::Encoding;
use crate::broker::answer;
use crate::broker::render;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use nix::sys::signal::Signal;
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;

// There once the process has ended. No doc comment: it would land in the schemas it is flattened into.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Ending {
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
}

impl Ending {
    pub fn of(end: Option<&answer::End>) -> Self {
        let Some(end) = end else { return Ending::default() };
        Ending { exit_code: end.exit_code, signal: end.signal.map(signal_name), reason: Some(end.reason.name()) }
    }

    /// `exit 0`, `SIGKILL (memory)`, `running`.
    pub fn words(&self) -> String {
        let how = match (self.exit_code, &self.signal) {
            (Some(code), _) => format!("exit {code}"),
            (None, Some(signal)) => signal.clone(),
            (None, None) => return self.reason.unwrap_or("running").to_owned(),
        };
        match self.reason {
            None | Some("exit" | "signal") => how,
            Some(reason) => format!("{how} ({reason})"),
        }
    }
}

pub fn state(end: Option<&answer::End>) -> &'static str {
    if end.is_some() { answer::State::Exited.name() } else { answer::State::Running.name() }
}

fn signal_name(number: i32) -> String {
    let named = Signal::try_from(number).map(|signal| signal.as_str().to_owned());
    // Real-time signals have numbers only.
    named.unwrap_or_else(|_| format!("SIG{number}"))
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Usage {
    cpu_ms: u64,
    max_rss_kb: u64,
}

impl From<answer::Usage> for Usage {
    fn from(usage: answer::Usage) -> Self {
        Usage { cpu_ms: whole_millis(usage.cpu), max_rss_kb: usage.max_rss_kib }
    }
}

pub fn whole_millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// How bytes of output are shown, and how many had to be replaced on the way.
#[derive(Debug)]
pub struct Shown {
    encoding: Encoding,
    codes: Codes,
    invalid_utf8: usize,
}

/// Terminal codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codes {
    Kept,
    Stripped,
}

impl Codes {
    pub fn asked(strip_ansi: Option<bool>) -> Self {
        if strip_ansi == Some(true) { Codes::Stripped } else { Codes::Kept }
    }
}

impl Shown {
    pub fn new(encoding: Option<Encoding>, codes: Codes) -> Self {
        Shown { encoding: encoding.unwrap_or_default(), codes, invalid_utf8: 0 }
    }

    pub fn bytes(&mut self, bytes: &[u8]) -> String {
        let stripped;
        let bytes = match self.codes {
            Codes::Kept => bytes,
            Codes::Stripped => {
                stripped = render::strip_ansi(bytes).bytes;
                &stripped
            }
        };
        match self.encoding {
            Encoding::Utf8 => self.counted(render::text(bytes)),
            Encoding::Base64 => BASE64_STANDARD.encode(bytes),
        }
    }

    /// As base64 only the head: bytes from two places would pass for neighbours.
    pub fn excerpt(&mut self, excerpt: &answer::Excerpt) -> String {
        match self.encoding {
            Encoding::Utf8 => self.counted(render::excerpt_text(excerpt)),
            Encoding::Base64 if excerpt.omitted == 0 => {
                BASE64_STANDARD.encode([excerpt.head.as_slice(), &excerpt.tail].concat())
            }
            Encoding::Base64 => BASE64_STANDARD.encode(&excerpt.head),
        }
    }

    /// How many sequences were no UTF-8; `None`: all were.
    pub fn invalid_utf8(&self) -> Option<usize> {
        Some(self.invalid_utf8).filter(|count| *count > 0)
    }

    fn counted(&mut self, text: render::Text) -> String {
        self.invalid_utf8 += text.invalid_utf8;
        text.text
    }
}

/// `512 bytes`, `1.2 kB`, `3.4 MB`.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1000 => format!("{bytes} bytes"),
        1000..1_000_000 => format!("{}.{} kB", bytes / 1000, bytes % 1000 / 100),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}
