//! The tool surface: MCP on two descriptors. The only place that knows rmcp.
//!
//! A line comes in through `stdio`, `framing`, `json` and `message`; `transport` hands it to rmcp, which calls
//! `surface`. That finds the operation in the `catalogue`, has the arguments checked, and lets `operation` ask the
//! broker. The answer goes out through `outbox`. Neither requests nor replies are ever logged.

#![forbid(unsafe_code)]

mod admission;
mod catalogue;
#[cfg(test)]
mod catalogue_tests;
mod check;
#[cfg(test)]
mod check_tests;
mod clock;
mod connection;
#[cfg(test)]
mod connection_tests;
mod framing;
mod instructions;
mod json;
mod ledger;
mod message;
mod nearest;
mod operation;
mod outbox;
mod schema;
mod stdio;
mod surface;
mod transport;

use crate::broker::Broker;
use outbox::Outbox;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use surface::Tools;

/// Serves one client. Returns when it is gone; dropping the future ends every call it made.
pub async fn serve(broker: Arc<Broker>, stdin: OwnedFd, stdout: OwnedFd) -> io::Result<()> {
    let (outbox, queue) = Outbox::new();
    let outbox = Arc::new(outbox);
    let tools = Tools::new(broker, outbox.clone());
    connection::serve(tools, (outbox, queue), stdin, stdout).await
}
