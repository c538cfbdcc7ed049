//! The limits wall: everything an agent can grow has a bound, and reaching it hurts nobody outside the cell.

#[path = "../support/ends.rs"]
#[expect(dead_code, reason = "each test file uses its own part of this")]
mod ends;
#[path = "../support/mod.rs"]
mod support;

mod cpu;
mod files;
mod memory;
mod tasks;
mod time;
mod unavailable;
