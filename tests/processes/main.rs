//! Processes: who can look into whom, who can signal whom, and what a terminal lets through.

#[expect(dead_code, reason = "some controls are for other walls")]
#[path = "../support/controls.rs"]
mod controls;
mod signals;
#[path = "../support/mod.rs"]
mod support;
mod terminal;
mod terminals;
mod tracing;
