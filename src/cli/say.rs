//! `error:` and `hint:` on stderr, one clear line each.

use super::REFUSED;
use crate::broker::fault::Trouble;
use crate::host::system::Unsearchable;
use crate::plan::refusal::Refusal;
use std::fmt::Display;

/// There is no such process or broker.
const NOT_FOUND: u8 = 1;

/// Something to tell the operator before giving up.
#[derive(Debug)]
pub struct Complaint {
    message: String,
    hint: Option<String>,
    code: u8,
}

impl Complaint {
    pub fn new(message: impl Display) -> Self {
        Complaint { message: message.to_string(), hint: None, code: REFUSED }
    }

    /// What was asked for is not there.
    pub fn not_found(message: impl Display) -> Self {
        Complaint { code: NOT_FOUND, ..Complaint::new(message) }
    }

    pub fn hint(self, hint: impl Display) -> Self {
        Complaint { hint: Some(hint.to_string()), ..self }
    }

    /// What we exit with.
    pub fn code(&self) -> u8 {
        self.code
    }

    pub fn print(&self) {
        eprintln!("error: {}", printable(&self.message));
        if let Some(hint) = &self.hint {
            for line in hint.lines() {
                eprintln!("hint: {}", printable(line));
            }
        }
    }
}

impl From<Refusal> for Complaint {
    fn from(refusal: Refusal) -> Self {
        Complaint::new(&refusal).hint(refusal.hint())
    }
}

impl From<Trouble> for Complaint {
    fn from(trouble: Trouble) -> Self {
        Complaint { hint: trouble.hint(), ..Complaint::new(&trouble) }
    }
}

impl From<Unsearchable> for Complaint {
    fn from(unsearchable: Unsearchable) -> Self {
        Refusal::from(unsearchable).into()
    }
}

impl From<std::io::Error> for Complaint {
    fn from(error: std::io::Error) -> Self {
        Complaint::new(error)
    }
}

impl From<crate::policy::Error> for Complaint {
    fn from(error: crate::policy::Error) -> Self {
        // A policy error carries its own place, text and hint.
        let text = error.to_string();
        Complaint::new(text.strip_prefix("error: ").unwrap_or(&text).trim_end())
    }
}

/// The text without what a terminal would obey: names come from agents. Line breaks stay.
pub fn printable(text: &str) -> String {
    let one = |c: char| if c.is_control() && c != '\n' { c.escape_default().collect() } else { c.to_string() };
    text.chars().map(one).collect()
}
