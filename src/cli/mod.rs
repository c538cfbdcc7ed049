//! Words in, exit codes out.

pub mod doctor;
pub mod policy;
