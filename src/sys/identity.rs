//! Who a process is: ids and capabilities.

use super::{Errno, Result, check};

/// Sets all group ids. Child-safe.
pub fn set_group(gid: u32) -> Result<()> {
    // SAFETY: only integers are passed. The raw call changes this thread, the only one there is.
    check(unsafe { libc::syscall(libc::SYS_setresgid, gid, gid, gid) }).map(drop)
}

/// Sets all user ids. Child-safe.
pub fn set_user(uid: u32) -> Result<()> {
    // SAFETY: as above.
    check(unsafe { libc::syscall(libc::SYS_setresuid, uid, uid, uid) }).map(drop)
}

/// Forgets supplementary groups. Child-safe.
pub fn clear_groups() -> Result<()> {
    let none: *const libc::gid_t = std::ptr::null();
    // SAFETY: a count of 0 reads no memory.
    check(unsafe { libc::syscall(libc::SYS_setgroups, 0, none) }).map(drop)
}

/// Empties the bounding set, so that no exec can ever bring a capability back. Child-safe.
pub fn drop_bounding() -> Result<()> {
    // The kernel answers EINVAL for the first number past its last capability.
    for capability in 0..64u64 {
        match super::process::prctl(libc::PR_CAPBSET_DROP, capability, 0) {
            Err(Errno::EINVAL) => return Ok(()),
            other => other?,
        }
    }
    Ok(())
}

/// Empties the effective, permitted, inheritable and (with them) ambient sets. Child-safe.
pub fn drop_capabilities() -> Result<()> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    const VERSION_3: u32 = 0x2008_0522;
    let header = Header { version: VERSION_3, pid: 0 };
    let none = [0u32; 6];
    // SAFETY: version 3 reads a header and two triples of 32-bit words.
    check(unsafe { libc::syscall(libc::SYS_capset, std::ptr::from_ref(&header), none.as_ptr()) }).map(drop)
}
