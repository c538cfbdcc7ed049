//! Ids nobody can guess: eighty random bits in lower-case base32.

use crate::sys::random;
use std::hash::{BuildHasher, Hasher, RandomState};

const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
const LENGTH: usize = 16;

/// For example `p_k3vq7a2mxw5rj4ta`.
pub fn new_id(prefix: &str) -> String {
    let digits = random().map(|byte| char::from(DIGITS[usize::from(byte) % DIGITS.len()]));
    format!("{prefix}_{}", digits.iter().collect::<String>())
}

fn random() -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    if random::fill(&mut bytes).is_err() {
        // Where a filter forbids the call: the standard library then seeds its hash maps from `/dev/urandom`.
        for half in bytes.chunks_mut(8) {
            half.copy_from_slice(&RandomState::new().build_hasher().finish().to_le_bytes());
        }
    }
    bytes
}
