//! Every process's own `/proc`: fresh, read-only, parts of it covered. Child-safe throughout.

use crate::sys::mount::{self, Depth};
use crate::sys::{Errno, descriptor};
use crate::wire::Stage;
use std::ffi::CString;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, OwnedFd};

/// An entry of `/proc` to be covered in every process.
#[derive(Debug)]
pub struct ProcMask {
    pub path: CString,
    pub kind: MaskKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaskKind {
    File,
    Directory,
}

/// A fresh `/proc` over the empty one, and its masks. Child-safe: runs in every process.
///
/// Descriptors are left open on purpose; the seal closes all of them at once.
pub fn replace_proc(masks: &[ProcMask]) -> Result<OwnedFd, (Stage, Errno)> {
    let make = || {
        let proc = fresh_proc()?;
        // Over the empty one: taking that away first would wait for RCU at every start.
        let target = ManuallyDrop::new(descriptor::open(c"/proc", libc::O_PATH | libc::O_DIRECTORY)?);
        mount::move_mount(proc.as_fd(), target.as_fd())?;
        Ok(proc)
    };
    let proc = make().map_err(|errno| (Stage::MountProc, errno))?;
    cover(masks).map_err(|errno| (Stage::MaskProc, errno))?;
    Ok(proc)
}

/// A `/proc` of this process's PID namespace. Read-only as a whole: `/proc/sys` with it, whoever the host takes us for.
pub fn fresh_proc() -> Result<OwnedFd, Errno> {
    let fs = mount::fsopen(c"proc")?;
    mount::fsconfig_create(fs.as_fd())?;
    mount::fsmount(fs.as_fd(), mount::ATTR_NOSUID | mount::ATTR_NODEV | mount::ATTR_NOEXEC | mount::ATTR_RDONLY)
}

/// Files by `/dev/null`, directories by an empty one.
fn cover(masks: &[ProcMask]) -> Result<(), Errno> {
    let nothing = ManuallyDrop::new(descriptor::open(c"/dev/null", libc::O_PATH)?);
    let empty = ManuallyDrop::new(descriptor::open(c"/mnt", libc::O_PATH)?);
    for mask in masks {
        let target = match descriptor::open(&mask.path, libc::O_PATH | libc::O_NOFOLLOW) {
            Err(Errno::ENOENT) => continue,
            target => ManuallyDrop::new(target?),
        };
        let source = match mask.kind {
            MaskKind::File => &nothing,
            MaskKind::Directory => &empty,
        };
        let source = ManuallyDrop::new(mount::open_tree(source.as_fd(), Depth::Single)?);
        mount::move_mount(source.as_fd(), target.as_fd())?;
    }
    Ok(())
}
