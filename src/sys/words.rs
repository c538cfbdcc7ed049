//! The words this process was started with: its first argument, and wiping all of them.
//!
//! A fork keeps the parent's environment in its memory, where `/proc/PID/environ` shows it; the launcher and
//! every PID 1 are forks, and must not carry the operator's secrets.

use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

static COUNT: AtomicUsize = AtomicUsize::new(0);
static ARGUMENTS: AtomicPtr<*mut libc::c_char> = AtomicPtr::new(std::ptr::null_mut());
static VARIABLES: AtomicPtr<*mut libc::c_char> = AtomicPtr::new(std::ptr::null_mut());

/// glibc passes `main`'s arguments to every function of `.init_array`.
#[used]
#[unsafe(link_section = ".init_array")]
static REMEMBER: extern "C" fn(libc::c_int, *mut *mut libc::c_char, *mut *mut libc::c_char) = remember;

extern "C" fn remember(count: libc::c_int, arguments: *mut *mut libc::c_char, variables: *mut *mut libc::c_char) {
    COUNT.store(count as usize, Ordering::Relaxed);
    ARGUMENTS.store(arguments, Ordering::Relaxed);
    VARIABLES.store(variables, Ordering::Relaxed);
}

/// The argument at this place, read where the kernel put it: no copy stays in memory.
pub fn argument(index: usize) -> Option<&'static CStr> {
    let arguments = ARGUMENTS.load(Ordering::Relaxed);
    if arguments.is_null() || index >= COUNT.load(Ordering::Relaxed) {
        return None;
    }
    // SAFETY: the kernel placed COUNT valid strings here; they live as long as the process.
    unsafe { Some(CStr::from_ptr(*arguments.add(index))) }
}

/// Overwrites arguments and environment with zeros. Only for a process that will never read them again.
pub fn wipe() {
    // SAFETY: both arrays end with a null and point to writable strings on this process's initial stack, which a
    // single-threaded fork owns alone.
    unsafe {
        for array in [ARGUMENTS.load(Ordering::Relaxed), VARIABLES.load(Ordering::Relaxed)] {
            let mut at = array;
            while !at.is_null() && !(*at).is_null() {
                libc::memset((*at).cast(), 0, libc::strlen(*at));
                at = at.add(1);
            }
        }
        libc::clearenv();
    }
}
