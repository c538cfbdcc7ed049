//! stockade: a sandboxed executor that gives an untrusted AI agent a real Linux terminal.

pub mod cli;
pub mod policy;
