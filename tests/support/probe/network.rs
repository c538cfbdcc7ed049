//! Attempts on the network wall.

use super::Attempt;

pub fn attempt(_words: &[&str]) -> Option<Attempt> {
    None
}
