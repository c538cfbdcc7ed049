//! The operator's side from outside: `serve` with a real client, and `ps`, `logs`, `attach`, `stop`, `metrics` beside it.

mod desk;
#[path = "../support/ends.rs"]
#[expect(dead_code, reason = "each test file uses its own part of this")]
mod ends;
mod endurance;
mod listing;
mod owner;
mod pty;
mod reading;
mod recording;
mod stopping;
#[path = "../support/mod.rs"]
mod support;
mod typing;
mod viewing;
