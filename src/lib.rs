//! stockade: a sandboxed executor that gives an untrusted AI agent a real Linux terminal.
//!
//! The modules in reading order; imports point downward only (`cargo xtask tidy` checks it).

pub mod cli;
pub mod broker;
pub mod launch;
pub mod wire;
pub mod plan;
pub mod policy;
pub mod host;
pub mod path;
pub mod sys;
