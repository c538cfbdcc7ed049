//! Loading a compiled syscall filter.

use super::{Result, check};

/// One BPF instruction, laid out as the kernel's `struct sock_filter`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    pub code: u16,
    pub jt: u8,
    pub jf: u8,
    pub k: u32,
}

/// Puts this process and all it will start under the filter, for good. Needs no_new_privs. Child-safe.
pub fn install(program: &[Instruction]) -> Result<()> {
    #[repr(C)]
    struct Program {
        len: u16,
        filter: *const Instruction,
    }
    const SECCOMP_SET_MODE_FILTER: libc::c_uint = 1;
    let program = Program { len: program.len() as u16, filter: program.as_ptr() };
    // SAFETY: the program outlives the call and its true length is passed; the kernel verifies it.
    let done = unsafe { libc::syscall(libc::SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, std::ptr::from_ref(&program)) };
    check(done).map(drop)
}
