//! `stockade run` from outside: exit codes, streams, JSON, signals, and nothing left behind however it ends.

#[path = "../support/ends.rs"]
#[expect(dead_code, reason = "each test file uses its own part of this")]
mod ends;
#[path = "../support/mod.rs"]
mod support;

mod codes;
mod input;
mod kills;
mod results;
mod signals;
mod streams;
