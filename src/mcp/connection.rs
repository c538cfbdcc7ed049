//! One client from its first byte to its last, served by any rmcp service.

use super::ledger::Ledger;
use super::outbox::{Outbox, Queue};
use super::stdio::{Input, Output};
use super::transport::Lines;
use rmcp::service::{RoleServer, Service, serve_directly};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// After its last byte a client may still read: what was asked before gets this long to be answered. Clients that
/// close our input to end us kill us after two seconds.
const FAREWELL: Duration = Duration::from_secs(1);

/// Returns when the client is gone: it sends no more, or reads no more. Dropping the future cancels every call.
pub async fn serve<S: Service<RoleServer>>(
    service: S,
    (outbox, queue): (Arc<Outbox>, Queue),
    stdin: OwnedFd,
    stdout: OwnedFd,
) -> io::Result<()> {
    let ledger = Arc::new(Ledger::default());
    let output = Output::new(stdout)?;
    let lines = Lines::new(Input::new(stdin)?, outbox.clone(), ledger.clone());
    // rmcp's own handshake ends the session at the first unexpected message; the transport keeps the door instead.
    let running = serve_directly(service, lines, None);
    let farewell = async {
        ledger.ended().await;
        let all_said = async {
            ledger.settled().await;
            outbox.written().await;
        };
        if timeout(FAREWELL, all_said).await.is_err() {
            tracing::info!("the client left before its calls had ended");
        }
    };
    // Ends after the last call, or when it failed.
    let service = async {
        running.waiting().await.map_err(io::Error::other)?;
        let _ = timeout(FAREWELL, outbox.written()).await;
        Ok(())
    };
    tokio::select! {
        written = outbox.deliver(queue, &output) => match written {
            Err(error) if gone(&error) => Ok(()),
            other => other,
        },
        () = farewell => Ok(()),
        ended = service => ended,
    }
}

fn gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, NotConnected};
    // A terminal that was closed answers EIO.
    matches!(error.kind(), BrokenPipe | ConnectionReset | NotConnected) || error.raw_os_error() == Some(libc::EIO)
}
