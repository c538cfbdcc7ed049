//! Extended attributes of an open file.

use super::{Result, check};
use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, BorrowedFd};

/// The kernel's own bound on a list of names and on a value (xattr(7)).
const LARGEST: usize = 64 << 10;

pub fn names(file: BorrowedFd<'_>) -> Result<Vec<CString>> {
    let mut buffer = vec![0_u8; LARGEST];
    // SAFETY: the buffer is as long as the call is told.
    let length = check(unsafe { libc::flistxattr(file.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) } as i64)?;
    let names = buffer[..usize::try_from(length).unwrap_or_default()].split_inclusive(|byte| *byte == 0);
    Ok(names.filter_map(|name| CStr::from_bytes_with_nul(name).ok()).map(CStr::to_owned).collect())
}

pub fn value(file: BorrowedFd<'_>, name: &CStr) -> Result<Vec<u8>> {
    let mut buffer = vec![0_u8; LARGEST];
    let at = buffer.as_mut_ptr().cast();
    // SAFETY: the name ends with NUL and the buffer is as long as the call is told.
    let length = check(unsafe { libc::fgetxattr(file.as_raw_fd(), name.as_ptr(), at, buffer.len()) } as i64)?;
    buffer.truncate(usize::try_from(length).unwrap_or_default());
    Ok(buffer)
}

pub fn set(file: BorrowedFd<'_>, name: &CStr, value: &[u8]) -> Result<()> {
    let at = value.as_ptr().cast();
    // SAFETY: the name ends with NUL and the value is as long as the call is told.
    check(unsafe { libc::fsetxattr(file.as_raw_fd(), name.as_ptr(), at, value.len(), 0) }.into())?;
    Ok(())
}
