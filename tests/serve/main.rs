//! `stockade serve` through its pipes: the wire, every tool, every bound, and what is left when it ends.

#[path = "../support/ends.rs"]
#[expect(dead_code, reason = "each test file uses its own part of this")]
mod ends;
#[path = "../support/mcp.rs"]
mod mcp;
#[path = "../support/schema.rs"]
mod schema;
#[path = "../support/server.rs"]
mod server;
#[path = "../support/site.rs"]
mod site;
#[path = "../support/mod.rs"]
mod support;

mod bad_input;
mod bounds;
mod bytes;
mod config;
mod ends_of_runs;
mod failing_calls;
mod faults;
mod flood;
mod hidden;
mod lifecycle;
mod limits;
mod process;
mod progress;
mod reading;
mod restart;
mod run;
mod session;
mod surface;
mod terminal;
mod tool_lists;
mod wire;
mod wire_load;
