//! Paths as bytes, and as a client sees them.

use crate::worker::names::spell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A path to show, in a spelling that file operations take: as it is, or as a `file://` URI where it is not UTF-8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    pub text: String,
}

impl Shown {
    /// `absolute` names the same as `path`, from the root on.
    pub fn new(path: &[u8], absolute: impl FnOnce() -> Vec<u8>) -> Shown {
        match std::str::from_utf8(path) {
            Ok(text) => Shown { text: text.into() },
            Err(_) => Shown { text: spell(as_path(&absolute())) },
        }
    }

    pub fn bytes(&self) -> usize {
        self.text.len()
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
