//! The log: lines on stderr, text or JSON, never in the way.
//!
//! A client may close our stderr or never read it: a line that cannot be written at once is dropped.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{self, Write};
use std::os::fd::AsFd;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// A pipe that is writable takes this much without waiting (pipe(7), PIPE_BUF).
const LINE: usize = 4096;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Text,
    Json,
}

/// What is logged is set by `STOCKADE_LOG` (`warn` unless said otherwise), in the notation of `tracing`.
pub fn start(format: Format) {
    let asked = std::env::var("STOCKADE_LOG").ok().and_then(|words| EnvFilter::try_new(words).ok());
    // At its finer levels the protocol crate logs whole requests, secrets included.
    let filter = asked.unwrap_or_else(|| EnvFilter::new("warn"));
    let filter = ["rmcp=off", "tokio=off"].iter().fold(filter, |filter, quiet| match quiet.parse() {
        Ok(directive) => filter.add_directive(directive),
        Err(_) => filter,
    });
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(Stderr).with_ansi(false);
    let _ = match format {
        Format::Text => tracing::subscriber::set_global_default(lines.with_target(false).finish()),
        Format::Json => tracing::subscriber::set_global_default(lines.json().finish()),
    };
}

#[derive(Debug, Clone, Copy)]
struct Stderr;

impl<'a> MakeWriter<'a> for Stderr {
    type Writer = Stderr;

    fn make_writer(&'a self) -> Stderr {
        Stderr
    }
}

impl Write for Stderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let stderr = io::stderr();
        let mut watched = [PollFd::new(stderr.as_fd(), PollFlags::POLLOUT)];
        let writable = poll(&mut watched, PollTimeout::ZERO).is_ok_and(|count| count > 0)
            && watched[0].revents().is_some_and(|events| events.contains(PollFlags::POLLOUT));
        if writable {
            let cut = &line[..line.len().min(LINE)];
            let _ = nix::unistd::write(stderr.as_fd(), cut);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
