//! `cargo xtask stress`: the server under load and killed again and again, for as long as it takes; not part of CI.

use crate::shell::Result;
use crate::test::{self, Plan};

pub const USAGE: &str = "stress [--as root|user|both] [FILTER…]   the server under load, killed and flooded";

/// An hour for each identity, far more than it takes.
const LIMIT_SECONDS: u32 = 3600;

pub fn run(words: &[String]) -> Result {
    // The tests know their full measure from this.
    let env = vec![("STOCKADE_TEST_STRESS".to_owned(), "1".into())];
    test::carry_out(
        words,
        &Plan { usage: USAGE, chooses: |name| name == test::STRESS, limit_seconds: LIMIT_SECONDS, env },
    )
}
