//! Words in, exit codes out.

pub mod doctor;
