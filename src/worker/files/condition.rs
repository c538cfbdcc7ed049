//! `if_sha256`: a change only of the content its writer last saw.

use super::change::Old;
use super::open;
use crate::sys::Errno;
use crate::worker::failure::{Code, Failure, Result};
use crate::worker::names::Named;

/// Holds a file to the hash its writer last saw.
pub fn only_if(expected: Option<&str>, old: Old<'_>, path: &Named) -> Result<()> {
    let Some(expected) = expected else {
        return Ok(());
    };
    let conflict = |actual: Option<String>, words: &str| {
        let message = format!("`{path}` {words}; read it again and decide anew");
        Failure::new(Code::Conflict, message).with("actual_sha256", actual).with("expected_sha256", expected)
    };
    match old {
        Old::Absent => Err(conflict(None, "does not exist, so it cannot have the hash in `if_sha256`")),
        Old::Unreadable => Err(Failure::errno(Errno::EACCES, path)),
        Old::Large(size) => {
            let message = format!("`{path}` has {size} bytes, more than `max_file_bytes`; its hash is not taken");
            Err(Failure::new(Code::TooLarge, message).with("size", size))
        }
        Old::Content(bytes) => match open::sha256(bytes) {
            actual if actual.eq_ignore_ascii_case(expected) => Ok(()),
            actual => Err(conflict(Some(actual), "is not what `if_sha256` says: it was changed")),
        },
    }
}

pub fn check_hash(expected: Option<&str>) -> Result<()> {
    match expected {
        Some(text) if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            Err(Failure::invalid("`if_sha256` is not a SHA-256 hash; 64 hexadecimal digits are accepted"))
        }
        _ => Ok(()),
    }
}
