//! Hidden paths of a cell that lives long: what covers them is looked after in every process.
//!
//! A mount goes with the name it lies on: when someone on the host replaces a hidden file by another of the same name, as
//! editors do, the new one lies bare. So each process covers it again before it is sealed, and one that waited looks
//! once more before it becomes its command. Child-safe throughout.

use crate::sys::mount::{self, Depth};
use crate::sys::{Errno, descriptor};
use nix::sys::stat::SFlag;
use std::ffi::CString;
use std::mem::ManuallyDrop;
use std::os::fd::AsFd;

/// Paths that are covered by something on the device of the cell's own root.
#[derive(Debug)]
pub struct Hidden {
    pub paths: Vec<CString>,
    pub device: u64,
}

impl Hidden {
    /// Covers what lies bare: files by `/dev/null`, directories by an empty one.
    ///
    /// Descriptors are left open on purpose; the seal closes all of them at once.
    pub fn cover_again(&self) -> Result<(), Errno> {
        for path in &self.paths {
            let Some(found) = mount::bare(path, self.device)? else { continue };
            let is_directory = found.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFDIR.bits();
            let source = if is_directory { c"/mnt" } else { c"/dev/null" };
            let source = ManuallyDrop::new(descriptor::open(source, libc::O_PATH)?);
            let source = ManuallyDrop::new(mount::open_tree(source.as_fd(), Depth::Single)?);
            let target = ManuallyDrop::new(descriptor::open(path, libc::O_PATH | libc::O_NOFOLLOW)?);
            mount::move_mount(source.as_fd(), target.as_fd())?;
        }
        Ok(())
    }

    /// Whether everything is still covered.
    pub fn look(&self) -> Result<(), Errno> {
        for path in &self.paths {
            if mount::bare(path, self.device)?.is_some() {
                return Err(Errno::ESTALE);
            }
        }
        Ok(())
    }
}
