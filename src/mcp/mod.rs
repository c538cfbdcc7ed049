//! The tool surface: MCP on two descriptors. The only place that knows rmcp.
//!
//! `connection` holds one client; `transport` turns its lines into messages and refuses what is none.

#![forbid(unsafe_code)]

mod connection;
#[cfg(test)]
mod connection_tests;
mod framing;
mod json;
mod ledger;
mod message;
mod outbox;
mod stdio;
mod transport;
