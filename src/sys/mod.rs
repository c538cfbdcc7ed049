//! Every unsafe line of the program: one system call per function, no policy in sight.
//!
//! nix covers most calls; what it lacks (clone3, the mount API, Landlock, descriptor passing
//! without allocation) is here. Functions marked *child-safe* allocate nothing and take no lock,
//! so they may run between clone and exec.
#![expect(unsafe_code, reason = "system calls that have no safe wrapper live here and nowhere else")]

pub mod attributes;
pub mod descriptor;
pub mod identity;
pub mod landlock;
pub mod mount;
pub mod network;
pub mod probe;
pub mod process;
pub mod random;
pub mod reactor;
pub mod seccomp;
pub mod signal;
pub mod socket;
pub mod terminal;
pub mod words;

pub use nix::errno::Errno;

pub type Result<T> = std::result::Result<T, Errno>;

/// Turns the kernel's "negative is an error in errno" into a `Result`.
fn check(returned: libc::c_long) -> Result<libc::c_long> {
    if returned < 0 { Err(Errno::last()) } else { Ok(returned) }
}
