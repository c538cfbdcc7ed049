//! The kernel wall: what a process in a cell can ask of the kernel itself, and what it cannot.
//!
//! `tests/filter` holds the filter alone to its table; here the whole cell is tried, with attacks that are meant.

#[path = "../support/controls.rs"]
mod controls;
mod mounts;
mod namespaces;
mod status;
#[path = "../support/mod.rs"]
mod support;
mod surface;

/// The probe's answer when an attempt could not even be prepared.
const UNPREPARED: i32 = 248;
