//! Faults while walls are being made, on the launcher's side of the wire.

use crate::sys::Errno;
use crate::wire::{Fault, Stage};

pub type Result<T> = std::result::Result<T, Fault>;

/// Names the stage and the place where a system call failed.
pub trait At<T> {
    fn at(self, step: Stage, at: impl ToString) -> Result<T>;
}

impl<T> At<T> for std::result::Result<T, Errno> {
    fn at(self, step: Stage, at: impl ToString) -> Result<T> {
        self.map_err(|errno| Fault { step, errno: errno as i32, at: at.to_string() })
    }
}

impl<T> At<T> for std::io::Result<T> {
    fn at(self, step: Stage, at: impl ToString) -> Result<T> {
        self.map_err(|error| Fault { step, errno: error.raw_os_error().unwrap_or(libc::EIO), at: at.to_string() })
    }
}
