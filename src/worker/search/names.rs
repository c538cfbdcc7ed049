//! Paths as bytes, and as a client sees them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A path to show. Every path has exactly one such pair, and each pair names one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    pub text: String,
    /// Only for a path that is not UTF-8.
    pub base64: Option<String>,
}

impl Shown {
    pub fn new(path: &[u8]) -> Shown {
        if let Ok(text) = std::str::from_utf8(path) {
            return Shown { text: text.into(), base64: None };
        }
        let mut text = String::with_capacity(path.len() + 8);
        for chunk in path.utf8_chunks() {
            text.push_str(&chunk.valid().replace('\\', "\\\\"));
            for byte in chunk.invalid() {
                // Writing to a string cannot fail.
                let _ = write!(text, "\\x{byte:02x}");
            }
        }
        Shown { text, base64: Some(STANDARD.encode(path)) }
    }

    pub fn bytes(&self) -> usize {
        self.text.len() + self.base64.as_ref().map_or(0, String::len)
    }
}

pub fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// `directory/name`, where an empty directory stands for nothing.
pub fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(directory.len() + 1 + name.len());
    path.extend_from_slice(directory);
    if !path.is_empty() && !path.ends_with(b"/") && !name.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}
