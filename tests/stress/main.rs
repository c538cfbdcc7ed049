//! The server under load: many at once, floods, kills, races. `cargo xtask stress` runs it in full measure.
//!
//! Started otherwise, each test makes a few rounds only. The full figures are in `times`.

#[path = "../support/ends.rs"]
#[expect(dead_code, reason = "each test file uses its own part of this")]
mod ends;
#[path = "../support/mcp.rs"]
#[expect(dead_code, reason = "each test file uses its own part of this")]
mod mcp;
#[path = "../support/schema.rs"]
mod schema;
#[path = "../support/server.rs"]
#[expect(dead_code, reason = "each test file uses its own part of this")]
mod server;
#[path = "../support/site.rs"]
#[expect(dead_code, reason = "each test file uses its own part of this")]
mod site;
#[path = "../support/mod.rs"]
mod support;

mod kills;
mod load;
mod races;

/// How often a thing is done: in full, or a hundredth of it.
fn times(full: u64) -> u64 {
    if std::env::var_os("STOCKADE_TEST_STRESS").is_some() { full } else { (full / 100).max(2) }
}

/// Moments that differ from run to run of a loop and are the same in every run of the test.
struct Moments(u64);

impl Moments {
    fn new() -> Self {
        Moments(0x2545_f491_4f6c_dd1d)
    }

    /// A number below the bound.
    fn next(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
