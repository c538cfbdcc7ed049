//! Making cells and starting processes in them.

pub mod cgroup;
