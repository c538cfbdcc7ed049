//! File operations. The kernel's walls decide what may be touched; the code here never waits for a file, never holds
//! more of one than the terms allow, and changes a file as a whole or not at all.

pub mod change;
pub mod condition;
pub mod directories;
pub mod draft;
pub mod list;
pub mod lock;
pub mod open;
pub mod place;
pub mod read;
pub mod relocate;
pub mod stat;
pub mod stored;
pub mod text;
pub mod write;
