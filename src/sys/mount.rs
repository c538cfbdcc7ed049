//! The descriptor-based mount API (open_tree(2), move_mount(2), fsopen(2), mount_setattr(2)).
//!
//! Descriptors instead of paths: what was opened is what is mounted, whatever is renamed meanwhile.

use super::{Errno, Result, check};
use nix::sys::stat::{FileStat, SFlag, lstat};
use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

pub const ATTR_RDONLY: u64 = 0x1;
pub const ATTR_NOSUID: u64 = 0x2;
pub const ATTR_NODEV: u64 = 0x4;
pub const ATTR_NOEXEC: u64 = 0x8;
const ATTR_IDMAP: u64 = 0x0010_0000;

const AT_RECURSIVE: libc::c_int = 0x8000;
const OPEN_TREE_CLONE: libc::c_int = 1;
const MOVE_MOUNT_F_EMPTY_PATH: libc::c_uint = 0x4;
const MOVE_MOUNT_T_EMPTY_PATH: libc::c_uint = 0x40;
const FSOPEN_CLOEXEC: libc::c_uint = 1;
const FSMOUNT_CLOEXEC: libc::c_uint = 1;
const FSCONFIG_SET_FLAG: libc::c_uint = 0;
const FSCONFIG_SET_STRING: libc::c_uint = 1;
const FSCONFIG_CMD_CREATE: libc::c_uint = 6;

/// Whether submounts come along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    Recursive,
    Single,
}

/// What lies bare at a path that was covered by something on `device` or by the null device; `None` while it is covered,
/// or when nothing is there. Child-safe.
pub fn bare(path: &CStr, device: u64) -> Result<Option<FileStat>> {
    match lstat(path) {
        Ok(found) if found.st_dev == device => Ok(None),
        Ok(found) if found.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFCHR.bits() => Ok(None),
        Ok(found) => Ok(Some(found)),
        // Nothing is there, or cannot be reached.
        Err(Errno::ENOENT | Errno::ENOTDIR | Errno::EACCES) => Ok(None),
        Err(errno) => Err(errno),
    }
}

fn owned(returned: libc::c_long) -> Result<OwnedFd> {
    let fd = check(returned)?;
    // SAFETY: the kernel just returned this descriptor and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}

/// A detached copy of the mount tree at the descriptor. Child-safe.
pub fn open_tree(at: BorrowedFd<'_>, depth: Depth) -> Result<OwnedFd> {
    let recursive = if depth == Depth::Recursive { AT_RECURSIVE } else { 0 };
    let flags = OPEN_TREE_CLONE | libc::O_CLOEXEC | libc::AT_EMPTY_PATH | recursive;
    // SAFETY: the path is a NUL-terminated literal; no memory is written.
    owned(unsafe { libc::syscall(libc::SYS_open_tree, at.as_raw_fd(), c"".as_ptr(), flags) })
}

/// Attaches a detached mount to the place the second descriptor names. Child-safe.
pub fn move_mount(mount: BorrowedFd<'_>, to: BorrowedFd<'_>) -> Result<()> {
    let flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH;
    // SAFETY: both paths are empty literals.
    let done = unsafe {
        libc::syscall(libc::SYS_move_mount, mount.as_raw_fd(), c"".as_ptr(), to.as_raw_fd(), c"".as_ptr(), flags)
    };
    check(done).map(drop)
}

/// Begins a new filesystem of the given type. Child-safe.
pub fn fsopen(kind: &CStr) -> Result<OwnedFd> {
    // SAFETY: `kind` is NUL-terminated.
    owned(unsafe { libc::syscall(libc::SYS_fsopen, kind.as_ptr(), FSOPEN_CLOEXEC) })
}

/// Sets one `key=value` option. Child-safe.
pub fn fsconfig_string(fs: BorrowedFd<'_>, key: &CStr, value: &CStr) -> Result<()> {
    // SAFETY: key and value are NUL-terminated and only read.
    let done = unsafe {
        libc::syscall(libc::SYS_fsconfig, fs.as_raw_fd(), FSCONFIG_SET_STRING, key.as_ptr(), value.as_ptr(), 0)
    };
    check(done).map(drop)
}

/// Sets one option without a value. Child-safe.
pub fn fsconfig_flag(fs: BorrowedFd<'_>, key: &CStr) -> Result<()> {
    let none: *const libc::c_char = std::ptr::null();
    // SAFETY: key is NUL-terminated; a flag takes no value.
    let done = unsafe { libc::syscall(libc::SYS_fsconfig, fs.as_raw_fd(), FSCONFIG_SET_FLAG, key.as_ptr(), none, 0) };
    check(done).map(drop)
}

/// Creates the superblock from the options set so far. Child-safe.
pub fn fsconfig_create(fs: BorrowedFd<'_>) -> Result<()> {
    let none: *const libc::c_char = std::ptr::null();
    // SAFETY: the command takes neither key nor value.
    let done = unsafe { libc::syscall(libc::SYS_fsconfig, fs.as_raw_fd(), FSCONFIG_CMD_CREATE, none, none, 0) };
    check(done).map(drop)
}

/// A detached mount of the created filesystem. Child-safe.
pub fn fsmount(fs: BorrowedFd<'_>, attributes: u64) -> Result<OwnedFd> {
    // SAFETY: only integers are passed.
    owned(unsafe { libc::syscall(libc::SYS_fsmount, fs.as_raw_fd(), FSMOUNT_CLOEXEC, attributes) })
}

#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    userns: u64,
}

/// Sets attributes and makes the mount private. Child-safe.
pub fn set_attributes(mount: BorrowedFd<'_>, set: u64, clear: u64, depth: Depth) -> Result<()> {
    let attr = MountAttr { set, clear, propagation: libc::MS_PRIVATE, userns: 0 };
    mount_setattr(mount, &attr, depth)
}

/// Maps the ids of the mount through a user namespace (idmapped mounts, since 5.12).
pub fn set_idmap(mount: BorrowedFd<'_>, userns: BorrowedFd<'_>, depth: Depth) -> Result<()> {
    let attr = MountAttr { set: ATTR_IDMAP, clear: 0, propagation: 0, userns: userns.as_raw_fd() as u64 };
    mount_setattr(mount, &attr, depth)
}

fn mount_setattr(mount: BorrowedFd<'_>, attr: &MountAttr, depth: Depth) -> Result<()> {
    let recursive = if depth == Depth::Recursive { AT_RECURSIVE } else { 0 };
    // SAFETY: `attr` outlives the call and its true size is passed.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | recursive,
            std::ptr::from_ref(attr),
            size_of::<MountAttr>(),
        )
    };
    check(done).map(drop)
}

/// Makes every mount of this namespace private, so that nothing travels to or from the host. Child-safe.
pub fn make_all_private() -> Result<()> {
    // SAFETY: null source, type and data are what MS_PRIVATE asks for.
    let done = unsafe {
        libc::mount(
            std::ptr::null(),
            c"/".as_ptr(),
            std::ptr::null(),
            libc::MS_REC | libc::MS_PRIVATE,
            std::ptr::null(),
        )
    };
    check(libc::c_long::from(done)).map(drop)
}

/// `pivot_root(".", ".")`: the current directory becomes the root, the old root lies on top of it. Child-safe.
pub fn pivot_root_here() -> Result<()> {
    // SAFETY: both paths are literals.
    check(unsafe { libc::syscall(libc::SYS_pivot_root, c".".as_ptr(), c".".as_ptr()) }).map(drop)
}

/// Lazily detaches the topmost mount at the path. Child-safe.
pub fn detach(path: &CStr) -> Result<()> {
    // SAFETY: `path` is NUL-terminated.
    check(libc::c_long::from(unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) })).map(drop)
}

/// How far openat2(2) may wander.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolve {
    /// The path is taken literally: no symbolic link on the way, so nobody can have swapped one in.
    NoSymlinks,
    /// Links are followed but never leave the directory, which acts as `/`; no link at all is followed out of it.
    InRootNoSymlinks,
    /// Links are followed; `/proc` magic links are not.
    Follow,
}

/// Opens a path as a handle (O_PATH). Child-safe.
pub fn open_handle(at: BorrowedFd<'_>, path: &CStr, resolve: Resolve) -> Result<OwnedFd> {
    const RESOLVE_NO_MAGICLINKS: u64 = 0x02;
    const RESOLVE_NO_SYMLINKS: u64 = 0x04;
    const RESOLVE_IN_ROOT: u64 = 0x10;
    #[repr(C)]
    struct OpenHow {
        flags: u64,
        mode: u64,
        resolve: u64,
    }
    let resolve = match resolve {
        Resolve::NoSymlinks => RESOLVE_NO_SYMLINKS,
        Resolve::InRootNoSymlinks => RESOLVE_NO_SYMLINKS | RESOLVE_IN_ROOT,
        Resolve::Follow => RESOLVE_NO_MAGICLINKS,
    };
    let how = OpenHow { flags: (libc::O_PATH | libc::O_CLOEXEC) as u64, mode: 0, resolve };
    loop {
        // SAFETY: `path` is NUL-terminated and `how` outlives the call with its true size.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_openat2,
                at.as_raw_fd(),
                path.as_ptr(),
                std::ptr::from_ref(&how),
                size_of::<OpenHow>(),
            )
        };
        match owned(fd) {
            // openat2(2): a concurrent rename made the walk uncertain; the kernel asks to try again.
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            other => return other,
        }
    }
}
