//! Host paths and cell paths are two types, so that one is never used for the other.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::{CString, OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A path as the operator sees it. Only the launcher opens one, and only while it makes a cell.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPath(PathBuf);

/// A path as a program inside a cell sees it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellPath(PathBuf);

/// A path on the wire: text, or bytes where it is none. File names are bytes, and an agent may choose any.
#[derive(Deserialize)]
#[serde(untagged)]
enum Spelled {
    Text(String),
    Bytes(Vec<u8>),
}

macro_rules! path_type {
    ($name:ident) => {
        impl $name {
            pub fn new(path: impl Into<PathBuf>) -> Self {
                Self(path.into())
            }

            pub fn as_path(&self) -> &Path {
                &self.0
            }

            /// For the kernel. A path with a NUL cannot exist and becomes one that never does.
            pub fn to_c(&self) -> CString {
                to_c(self.0.as_os_str())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self.0.to_str() {
                    Some(text) => serializer.serialize_str(text),
                    None => self.0.as_os_str().as_bytes().serialize(serializer),
                }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Ok(Self(match Spelled::deserialize(deserializer)? {
                    Spelled::Text(text) => text.into(),
                    Spelled::Bytes(bytes) => OsString::from_vec(bytes).into(),
                }))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.display().fmt(f)
            }
        }
    };
}

path_type!(HostPath);
path_type!(CellPath);

impl HostPath {
    /// Roots appear inside the cell at their own path.
    pub fn in_cell(&self) -> CellPath {
        CellPath(self.0.clone())
    }
}

fn to_c(text: &OsStr) -> CString {
    CString::new(text.as_bytes()).unwrap_or_default()
}
