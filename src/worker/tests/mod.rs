//! The worker's operations on real files, without a cell: what the kernel's walls would add is tested with cells.

mod changes;
mod edits;
mod full;
mod killed;
mod lists;
mod moves;
mod nodes;
mod paths;
mod reads;
pub mod room;
mod writes;
