//! `stockade serve`: the launcher is there already; tokio, the broker, then MCP on our standard streams, in that order.
//!
//! It ends when the client goes away or a signal asks for it, with everything in the cell dead.

pub mod log;

use crate::broker::Broker;
use crate::launch::Launcher;
use crate::mcp;
use crate::policy::Policy;
use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Reads of old output from disk and the making of the cell; everything else is one thread.
const BLOCKING_THREADS: usize = 4;

/// After the end, how long what still runs in the background may take.
const FAREWELL: Duration = Duration::from_millis(100);

pub fn serve(policy: Policy, launcher: Launcher) -> io::Result<()> {
    let base = state_directory()?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(BLOCKING_THREADS).build()?;
    let served = runtime.block_on(async {
        let broker = Broker::open(policy, launcher, operator(), &base)?;
        let stdin = io::stdin().as_fd().try_clone_to_owned()?;
        let stdout = io::stdout().as_fd().try_clone_to_owned()?;
        let served = tokio::select! {
            served = mcp::serve(Arc::clone(&broker), stdin, stdout) => served,
            asked = until_asked() => asked,
        };
        broker.close().await;
        served
    });
    runtime.shutdown_timeout(FAREWELL);
    served
}

/// Until someone wants us to end.
async fn until_asked() -> io::Result<()> {
    let (mut term, mut int, mut hup) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?, signal(SignalKind::hangup())?);
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
        _ = hup.recv() => {}
    }
    Ok(())
}

/// Root's state is the system's; everyone else's their own (XDG base directories).
pub fn state_directory() -> io::Result<PathBuf> {
    if nix::unistd::geteuid().is_root() {
        return Ok(PathBuf::from("/var/lib/stockade"));
    }
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = named("XDG_STATE_HOME").or_else(|| named("HOME").map(|home| home.join(".local/state")));
    let base = base.ok_or_else(|| io::Error::other("neither XDG_STATE_HOME nor HOME says where state is kept"))?;
    Ok(Path::new(&base).join("stockade"))
}

fn operator() -> Vec<(String, String)> {
    let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    std::env::vars_os().filter_map(text).collect()
}
