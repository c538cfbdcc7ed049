//! The limits wall: everything an agent can grow has a bound, and reaching it hurts nobody outside the cell.

#[path = "../support/ends.rs"]
mod ends;
#[path = "../support/mod.rs"]
mod support;

mod cpu;
mod files;
mod memory;
mod tasks;
mod time;
mod unavailable;
