//! The file and search tools, through the protocol, inside a real cell.

#[path = "../support/mod.rs"]
mod support;

mod backups;
mod bad_input;
mod desk;
mod races;
mod searches;
mod tools;
mod verdicts;
