//! Questions to the kernel that change nothing: each call is made so that it cannot succeed.
//!
//! A call with impossible flags answers EINVAL when it exists and may be made, ENOSYS when the
//! kernel lacks it, and EPERM when a seccomp filter (a container's) stands in front of it. That
//! tells the three apart without a fork. What the answers mean is decided in `host`.
#![expect(unsafe_code, reason = "raw system calls that no safe wrapper offers")]

use std::io;
use std::ptr;

/// The Landlock ABI, or 0. The `landlock` crate keeps this number private.
pub fn landlock_abi() -> u32 {
    const LANDLOCK_CREATE_RULESET_VERSION: libc::c_ulong = 1;
    let null = ptr::null::<libc::c_void>();
    // SAFETY: with this flag the kernel wants a null pointer and a zero size, and returns a number.
    let abi =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, null, 0usize, LANDLOCK_CREATE_RULESET_VERSION) };
    u32::try_from(abi).unwrap_or(0)
}

/// Whether a seccomp filter may return `action`; false also when there are no filters at all.
pub fn seccomp_action_available(action: u32) -> bool {
    const SECCOMP_GET_ACTION_AVAIL: libc::c_ulong = 2;
    // SAFETY: the kernel reads four bytes through the pointer, which outlives the call.
    let answer = unsafe { libc::syscall(libc::SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0usize, &raw const action) };
    answer == 0
}

/// The errno of `unshare(CLONE_NEWUSER)` with a flag that does not exist.
pub fn unshare_user_answer() -> i32 {
    const NO_SUCH_FLAG: libc::c_int = 1;
    // SAFETY: no memory is passed; the unknown flag makes the kernel refuse before it acts.
    let answer = unsafe { libc::unshare(libc::CLONE_NEWUSER | NO_SUCH_FLAG) };
    errno_of(i64::from(answer))
}

/// The errno of `open_tree` with flags that do not exist: the mount API of Linux 5.2.
pub fn open_tree_answer() -> i32 {
    // SAFETY: the path is a valid C string; unknown flags are refused before anything is opened.
    let answer = unsafe { libc::syscall(libc::SYS_open_tree, -1, c"".as_ptr(), u32::MAX) };
    errno_of(answer)
}

/// The errno of `mount_setattr` with flags that do not exist: Linux 5.12.
pub fn mount_setattr_answer() -> i32 {
    let null = ptr::null::<libc::c_void>();
    // SAFETY: unknown flags are refused before the null attribute of size zero is looked at.
    let answer = unsafe { libc::syscall(libc::SYS_mount_setattr, -1, c"".as_ptr(), u32::MAX, null, 0usize) };
    errno_of(answer)
}

fn errno_of(answer: i64) -> i32 {
    if answer >= 0 { 0 } else { io::Error::last_os_error().raw_os_error().unwrap_or(0) }
}
