//! Why a search was not made: the worker's own failures, and what the kernel says about where a search begins.

pub use crate::worker::failure::{Code, Failure};

use nix::errno::Errno;

impl Failure {
    /// What the kernel said about the path a search was to begin at.
    pub fn opening(path: &str, errno: Errno) -> Self {
        let failure = match errno {
            Errno::ENOENT | Errno::ENOTDIR => Failure::new(Code::NotFound, format!("`{path}` does not exist")),
            Errno::EACCES | Errno::EPERM => {
                Failure::new(Code::PathNotAllowed, format!("`{path}` may not be read inside the cell"))
            }
            Errno::ENAMETOOLONG => Failure::invalid("`path` has a name longer than the file system takes (255 bytes)"),
            Errno::ELOOP => Failure::invalid(format!("`{path}` goes through too many symbolic links")),
            _ => Failure::new(Code::IoError, format!("`{path}` cannot be opened: {}", errno.desc())),
        };
        failure.with("errno", format!("{errno:?}"))
    }
}
