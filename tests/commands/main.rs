//! The command lists: held by the kernel, whichever way a program is started, below any shell or interpreter.
//!
//! Every way is tried where the list refuses it and, as the control, where the list allows it.

#[path = "../support/ends.rs"]
#[expect(dead_code, reason = "each test file uses its own part of this")]
mod ends;
#[path = "../support/mod.rs"]
mod support;

mod allowed;
mod arguments;
mod blocked;

use support::{Outcome, Yard};

/// What `base64` makes of the file that every way gives it, the cell's `/etc/hostname`.
const ENCODED: &str = "c3RvY2thZGUK\n";

/// The dynamic loader of this machine.
const LOADER: &str =
    if cfg!(target_arch = "aarch64") { "/lib/ld-linux-aarch64.so.1" } else { "/lib64/ld-linux-x86-64.so.2" };

/// Runs one way of starting a program.
fn try_way(yard: &Yard, script: &str) -> Outcome {
    yard.shell(&script.replace("PROBE", &yard.probe_path()).replace("LOADER", LOADER))
}
