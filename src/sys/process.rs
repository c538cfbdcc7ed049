//! Making processes: clone3(2) in its two shapes, namespaces, pidfds, the last calls before exec.

use super::{Errno, Result, check};
use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

#[cfg(not(target_arch = "x86_64"))]
compile_error!("stockade has its clone and its syscall table for x86_64 only");

const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// What clone3(2) should make.
#[derive(Debug, Default)]
pub struct CloneRequest {
    /// `CLONE_*` flags besides the ones that the other fields imply.
    pub flags: u64,
    pub exit_signal: u64,
    /// The cgroup v2 directory that the child starts in.
    pub cgroup: Option<RawFd>,
}

#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

impl CloneRequest {
    fn args(&self) -> CloneArgs {
        CloneArgs {
            flags: self.flags | self.cgroup.map_or(0, |_| CLONE_INTO_CGROUP),
            exit_signal: self.exit_signal,
            cgroup: self.cgroup.unwrap_or(0) as u64,
            ..CloneArgs::default()
        }
    }
}

/// Which side of a clone this is.
#[derive(Debug)]
pub enum Side {
    Parent { pid: i32, pidfd: OwnedFd },
    Child,
}

/// Copies this process, like fork(2), with a pidfd for the parent. Child-safe.
///
/// The caller must be single-threaded: the copy has only the calling thread.
pub fn clone_copy(request: &CloneRequest) -> Result<Side> {
    let mut pidfd: libc::c_int = -1;
    let mut args = request.args();
    args.flags |= libc::CLONE_PIDFD as u64;
    args.pidfd = std::ptr::from_mut(&mut pidfd) as u64;
    // SAFETY: without CLONE_VM the child works on a copy of this stack; `args` outlives the call.
    let pid = check(unsafe { libc::syscall(libc::SYS_clone3, std::ptr::from_ref(&args), size_of::<CloneArgs>()) })?;
    if pid == 0 {
        return Ok(Side::Child);
    }
    // SAFETY: CLONE_PIDFD stored a new descriptor that nobody else owns.
    Ok(Side::Parent { pid: pid as i32, pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) } })
}

/// A stack for a child that shares our memory; kept from call to call.
#[derive(Debug)]
pub struct Stack(Vec<u128>);

impl Stack {
    /// 64 KiB: the borrowed child calls setns, write and clone3, nothing deep.
    pub fn new() -> Self {
        Stack(vec![0; 4096])
    }
}

impl Default for Stack {
    fn default() -> Self {
        Self::new()
    }
}

/// Runs `body` in a child that borrows our memory and descriptors while we stand still, like vfork(2).
/// Returns the child's pid once `body` has returned there and the child has ended. Child-safe.
pub fn clone_borrowing<F: FnMut()>(request: &CloneRequest, stack: &mut Stack, body: &mut F) -> Result<i32> {
    let mut args = request.args();
    args.flags |= (libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES) as u64;
    args.stack = stack.0.as_mut_ptr() as u64;
    args.stack_size = size_of_val(stack.0.as_slice()) as u64;
    let returned: i64;
    // SAFETY: the child gets a stack of its own and never returns from `enter`; the parent is suspended by
    // CLONE_VFORK until then, so `body`, `args` and the stack stay alive and unshared. The child enters with
    // an aligned stack; only the registers named here are used.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            in("r12") std::ptr::from_mut(body),
            in("r13") enter::<F> as extern "C" fn(*mut F) -> !,
            inlateout("rax") libc::SYS_clone3 => returned,
            in("rdi") std::ptr::from_ref(&args),
            in("rsi") size_of::<CloneArgs>(),
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    if returned < 0 { Err(Errno::from_raw(-returned as i32)) } else { Ok(returned as i32) }
}

/// As [`clone_borrowing`], by the old call, which a sealed process's own filter still allows. Child-safe.
pub fn clone_borrowing_sealed<F: FnMut()>(stack: &mut Stack, body: &mut F) -> Result<i32> {
    let flags = (libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD) as u64;
    let top = stack.0.as_mut_ptr_range().end;
    let returned: i64;
    // SAFETY: as in `clone_borrowing`; the stack grows down from its aligned end. Descriptors are not shared.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            in("r12") std::ptr::from_mut(body),
            in("r13") enter::<F> as extern "C" fn(*mut F) -> !,
            inlateout("rax") libc::SYS_clone => returned,
            in("rdi") flags,
            in("rsi") top,
            in("rdx") 0,
            in("r10") 0,
            in("r8") 0,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    if returned < 0 { Err(Errno::from_raw(-returned as i32)) } else { Ok(returned as i32) }
}

/// Where a borrowing child begins and ends.
extern "C" fn enter<F: FnMut()>(body: *mut F) -> ! {
    // SAFETY: the parent is suspended and lent us its exclusive reference.
    unsafe { (*body)() };
    exit(0)
}

/// Joins the namespace that the descriptor stands for. Child-safe.
pub fn setns(namespace: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: only integers are passed.
    check(libc::c_long::from(unsafe { libc::setns(namespace.as_raw_fd(), 0) })).map(drop)
}

/// Ends this process at once: no destructor, no buffer flushed. Child-safe.
pub fn exit(code: i32) -> ! {
    // SAFETY: _exit never returns and touches no memory.
    unsafe { libc::_exit(code) }
}

/// The two arrays that execve(2) takes, written into memory that the caller mapped for them.
#[derive(Debug)]
pub struct Vectors {
    argv: *const *const libc::c_char,
    envp: *const *const libc::c_char,
}

/// Writes `arguments` and then `variables` pointers, each array with its null, into `table`. Child-safe.
pub fn vectors(
    table: &mut [u8],
    arguments: usize,
    variables: usize,
    mut next: impl FnMut() -> *const libc::c_char,
) -> Vectors {
    let slots = arguments + variables + 2;
    assert!(table.len() >= slots * size_of::<*const u8>());
    let first = table.as_mut_ptr().cast::<*const libc::c_char>();
    // SAFETY: the assertion keeps every write inside the table; unaligned writes are meant.
    unsafe {
        for slot in 0..slots {
            let ends = slot == arguments || slot == slots - 1;
            first.add(slot).write_unaligned(if ends { std::ptr::null() } else { next() });
        }
        Vectors { argv: first, envp: first.add(arguments + 1) }
    }
}

impl Vectors {
    /// Returns only on failure. Child-safe.
    pub fn exec(&self, path: &CStr) -> Errno {
        // SAFETY: both arrays were built null-terminated over NUL-terminated strings by `vectors`.
        unsafe { libc::execve(path.as_ptr(), self.argv, self.envp) };
        Errno::last()
    }
}

/// Sends a signal through a pidfd: never to a recycled pid.
pub fn pidfd_signal(pidfd: BorrowedFd<'_>, signal: i32) -> Result<()> {
    let none: *const libc::siginfo_t = std::ptr::null();
    // SAFETY: a null siginfo asks for the default one.
    check(unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), signal, none, 0) }).map(drop)
}

/// Reaps the child behind a pidfd if it is dead.
pub fn reap(pidfd: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: zeroed siginfo is a valid value for the kernel to overwrite.
    let done = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        libc::waitid(libc::P_PIDFD, pidfd.as_raw_fd() as u32, &mut info, libc::WEXITED | libc::__WALL)
    };
    check(libc::c_long::from(done)).map(drop)
}

/// Waits for the child with this pid and forgets how it ended. Child-safe.
pub fn reap_pid(pid: i32) -> Result<()> {
    // SAFETY: a null status is allowed.
    check(libc::c_long::from(unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::__WALL) })).map(drop)
}

/// How a child ended, and what it and the descendants it waited for used.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    pub pid: i32,
    /// The raw wait status.
    pub status: i32,
}

/// Reaps one dead child, if there is one. Child-safe.
pub fn reap_any() -> Result<Option<Ended>> {
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    let pid = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG | libc::__WALL) };
    match check(libc::c_long::from(pid))? {
        0 => Ok(None),
        _ => Ok(Some(Ended { pid, status })),
    }
}

/// CPU time in microseconds and largest resident set in KiB of all children reaped so far. Child-safe.
pub fn children_usage() -> (u64, u64) {
    // SAFETY: zeroed rusage is valid and overwritten by the kernel.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    let micros = |t: libc::timeval| t.tv_sec as u64 * 1_000_000 + t.tv_usec as u64;
    (micros(usage.ru_utime) + micros(usage.ru_stime), usage.ru_maxrss as u64)
}

/// kill(2). Child-safe.
pub fn kill(pid: i32, signal: i32) -> Result<()> {
    // SAFETY: only integers are passed.
    check(libc::c_long::from(unsafe { libc::kill(pid, signal) })).map(drop)
}

/// One prctl(2) with up to two integer arguments. Child-safe.
pub fn prctl(option: i32, first: u64, second: u64) -> Result<()> {
    // SAFETY: every option used by this program takes integers only.
    check(libc::c_long::from(unsafe { libc::prctl(option, first, second, 0, 0) })).map(drop)
}

/// Sets soft and hard limit, never above what the hard limit is now. Child-safe.
pub fn limit(resource: u32, value: u64) -> Result<()> {
    let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `now` outlives both calls.
    unsafe {
        check(libc::c_long::from(libc::getrlimit(resource, &mut now)))?;
        let value = value.min(now.rlim_max);
        now = libc::rlimit { rlim_cur: value, rlim_max: value };
        check(libc::c_long::from(libc::setrlimit(resource, &now))).map(drop)
    }
}

/// A new session without a terminal. Child-safe.
pub fn setsid() -> Result<()> {
    // SAFETY: no arguments.
    check(libc::c_long::from(unsafe { libc::setsid() })).map(drop)
}

/// Sets the file mode mask. Child-safe.
pub fn umask(mask: u32) {
    // SAFETY: always succeeds.
    unsafe { libc::umask(mask) };
}

/// chdir(2). Child-safe.
pub fn chdir(path: &CStr) -> Result<()> {
    // SAFETY: `path` is NUL-terminated.
    check(libc::c_long::from(unsafe { libc::chdir(path.as_ptr()) })).map(drop)
}

/// The kernel's own word on the current directory; begins with `(unreachable)` outside the root. Child-safe.
pub fn getcwd(buffer: &mut [u8]) -> Result<usize> {
    // SAFETY: the buffer's true length is passed.
    check(unsafe { libc::syscall(libc::SYS_getcwd, buffer.as_mut_ptr(), buffer.len()) }).map(|n| n as usize)
}

/// The name that `ps` shows.
pub fn name(name: &CStr) -> Result<()> {
    prctl(libc::PR_SET_NAME, name.as_ptr() as u64, 0)
}
