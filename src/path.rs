//! Host paths and cell paths are two types, so that one is never used for the other.

use serde::{Deserialize, Serialize};
use std::ffi::{CString, OsStr};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A path as the operator sees it. Only the launcher opens one, and only while it makes a cell.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HostPath(PathBuf);

/// A path as a program inside a cell sees it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CellPath(PathBuf);

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
