//! Landlock's three system calls, for use in a child where the landlock crate's allocations are out of place.

use super::{Result, check};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

const SYS_CREATE_RULESET: libc::c_long = 444;
const SYS_ADD_RULE: libc::c_long = 445;
const SYS_RESTRICT_SELF: libc::c_long = 446;
const RULE_PATH_BENEATH: libc::c_int = 1;
const RULE_NET_PORT: libc::c_int = 2;
const CREATE_RULESET_VERSION: u32 = 1;

/// The kernel's Landlock ABI; 0 when it has none.
pub fn abi() -> u32 {
    let none: *const libc::c_void = std::ptr::null();
    // SAFETY: asking for the version reads no memory.
    let version = unsafe { libc::syscall(SYS_CREATE_RULESET, none, 0, CREATE_RULESET_VERSION) };
    u32::try_from(version).unwrap_or(0)
}

/// What a ruleset takes charge of. The kernel accepts a shorter struct on an older ABI.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Handled {
    pub files: u64,
    pub network: u64,
    pub scoped: u64,
}

/// An empty ruleset: everything handled is denied. Child-safe.
pub fn create_ruleset(handled: &Handled, abi: u32) -> Result<OwnedFd> {
    let size = match abi {
        0..=3 => 8,
        4..=5 => 16,
        _ => size_of::<Handled>(),
    };
    // SAFETY: `handled` outlives the call and `size` is at most its true size.
    let fd = check(unsafe { libc::syscall(SYS_CREATE_RULESET, std::ptr::from_ref(handled), size, 0) })?;
    // SAFETY: the kernel just returned this descriptor and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Grants accesses at and below the opened path. Child-safe.
pub fn allow_path(ruleset: BorrowedFd<'_>, path: BorrowedFd<'_>, access: u64) -> Result<()> {
    #[repr(C, packed)]
    struct PathBeneath {
        access: u64,
        parent: i32,
    }
    let rule = PathBeneath { access, parent: path.as_raw_fd() };
    // SAFETY: the rule outlives the call and has the layout of its type.
    let done =
        unsafe { libc::syscall(SYS_ADD_RULE, ruleset.as_raw_fd(), RULE_PATH_BENEATH, std::ptr::from_ref(&rule), 0) };
    check(done).map(drop)
}

/// Grants accesses to a TCP port. Child-safe.
pub fn allow_port(ruleset: BorrowedFd<'_>, port: u16, access: u64) -> Result<()> {
    #[repr(C)]
    struct NetPort {
        access: u64,
        port: u64,
    }
    let rule = NetPort { access, port: u64::from(port) };
    // SAFETY: as above.
    let done = unsafe { libc::syscall(SYS_ADD_RULE, ruleset.as_raw_fd(), RULE_NET_PORT, std::ptr::from_ref(&rule), 0) };
    check(done).map(drop)
}

/// Puts this process and all it will start under the ruleset, for good. Child-safe.
pub fn restrict_self(ruleset: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: only integers are passed.
    check(unsafe { libc::syscall(SYS_RESTRICT_SELF, ruleset.as_raw_fd(), 0) }).map(drop)
}
