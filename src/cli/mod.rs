//! Words in, exit codes out; clap lives here.

pub mod policy;
