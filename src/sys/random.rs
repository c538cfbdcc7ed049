//! Random bytes from the kernel.

use super::{Errno, Result, check};

/// Fills the buffer. Up to 256 bytes come whole (getrandom(2)).
pub fn fill(buffer: &mut [u8]) -> Result<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        let rest = &mut buffer[filled..];
        // SAFETY: the pointer and the length are those of a slice that outlives the call.
        let got = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
        match check(got as libc::c_long) {
            Ok(got) => filled += got as usize,
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
