//! One run at a time on a machine: rounds share the test account and its cgroups.
//!
//! Two at once would take each other's processes for leftovers and end them.

use crate::shell::{About, Result};
use std::fs::File;
use std::path::Path;

/// Holding it proves that no other run is under way; the kernel takes it back when we end.
#[must_use]
#[derive(Debug)]
pub struct Turn {
    _lock: File,
}

/// Waits until no other run is under way.
pub fn take() -> Result<Turn> {
    let path = Path::new("/run/lock/stockade-test.lock");
    let open = || File::options().create(true).truncate(false).write(true).open(path);
    // Made by another user the file may not be ours to write, but a lock needs no more than reading.
    let file = open().or_else(|_| File::open(path)).about(path.display())?;
    if file.try_lock().is_err() {
        println!("waiting for another run on this machine");
        file.lock().about(path.display())?;
    }
    Ok(Turn { _lock: file })
}
