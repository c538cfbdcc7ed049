//! Policy, host and request become a plan or a refusal; everything is decided here and nothing is done.

pub mod syscalls;
