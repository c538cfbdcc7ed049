//! Processes: who can look into whom, who can signal whom, and what a terminal lets through.

#[path = "../support/cases.rs"]
mod cases;
mod signals;
#[path = "../support/mod.rs"]
mod support;
mod terminal;
mod terminals;
mod tracing;
