//! Policy files: what is refused, and in which words; what is accepted, and what it then means.
//!
//! Nothing here needs a cell: whether the kernel agrees is for the tests of each wall.

mod commands;
mod extends;
mod flags;
mod precedence;
mod refusals;
mod roots;
mod scratch;
mod shipped;
mod trust;
