//! stockade: a sandboxed executor that gives an untrusted AI agent a real Linux terminal.

pub mod cli;
pub mod host;
pub mod launch;
pub mod policy;
pub mod sys;
