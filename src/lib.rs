//! stockade: a sandboxed executor that gives an untrusted AI agent a real Linux terminal.
//!
//! The modules in reading order; imports point downward only (`cargo xtask tidy` checks it).

pub mod broker;
pub mod cli;
pub mod host;
pub mod launch;
pub mod mcp;
pub mod path;
pub mod plan;
pub mod policy;
pub mod serve;
pub mod sys;
pub mod wire;
pub mod worker;
