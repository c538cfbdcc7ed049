//! The worker: file and search work, done inside the cell under the same walls as a command.

pub mod search;
