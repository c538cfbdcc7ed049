//! Our ends of a process's standard streams: three pipes, or a terminal made inside the cell.

use super::cell::{Ready, Stdio};
use super::fault::Trouble;
use super::input::Input;
use crate::plan::command::CommandPlan;
use crate::sys::Errno;
use crate::sys::reactor::{watch_borrowed, watch_owned};
use crate::sys::terminal::Size;
use crate::wire::Stage;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

#[derive(Debug)]
pub struct Ends {
    pub input: Input,
    pub stdout: Arc<AsyncFd<OwnedFd>>,
    pub stderr: Option<Arc<AsyncFd<OwnedFd>>>,
    /// The other ends of the pipes that output comes from. Kept until the process has ended, so that the end of a
    /// stream wakes nobody: it comes while the process dies, and whoever wakes would hold that up.
    pub theirs: Vec<OwnedFd>,
}

impl Ends {
    /// Gives a waiting process its command, and takes our ends of what the command reads and writes.
    pub async fn hand_over(ready: &Ready, plan: &CommandPlan, terminal: Option<Size>) -> Result<Ends, Trouble> {
        match terminal {
            None => Ends::pipes(ready, plan),
            Some(size) => Ends::terminal(ready, plan, size).await,
        }
    }

    fn pipes(ready: &Ready, plan: &CommandPlan) -> Result<Ends, Trouble> {
        let [(in_read, in_write), (out_read, out_write), (err_read, err_write)] = [pipe()?, pipe()?, pipe()?];
        let theirs = Stdio::Descriptors([in_read, out_write, err_write]);
        ready.start(plan, &theirs)?;
        Ok(Ends {
            theirs: theirs.without_input(),
            input: Input::Pipe(ours(in_write, Interest::WRITABLE)?),
            stdout: ours(out_read, Interest::READABLE)?,
            stderr: Some(ours(err_read, Interest::READABLE)?),
        })
    }

    /// The terminal is made inside the cell, and its outer end comes back through the door.
    async fn terminal(ready: &Ready, plan: &CommandPlan, size: Size) -> Result<Ends, Trouble> {
        ready.start(plan, &Stdio::Terminal(size))?;
        let door = watch_borrowed(ready.door.as_fd(), Interest::READABLE).map_err(|_| Trouble::lost("the process"))?;
        let came = tokio::time::timeout(Duration::from_secs(20), door.readable()).await;
        if !came.is_ok_and(|came| came.is_ok()) {
            return Err(Trouble { stage: Some(Stage::Terminal), errno: Errno::ETIMEDOUT, at: String::new() });
        }
        drop(door);
        let master = ours(ready.terminal()?, Interest::READABLE | Interest::WRITABLE)?;
        Ok(Ends { input: Input::Terminal(Arc::clone(&master)), stdout: master, stderr: None, theirs: Vec::new() })
    }
}

fn pipe() -> Result<(OwnedFd, OwnedFd), Trouble> {
    let (read, write) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC).map_err(stdio_trouble)?;
    Ok((read, write))
}

fn ours(end: OwnedFd, interest: Interest) -> Result<Arc<AsyncFd<OwnedFd>>, Trouble> {
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    fcntl(&end, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(stdio_trouble)?;
    let watched = watch_owned(end, interest);
    Ok(Arc::new(watched.map_err(|error| stdio_trouble(Errno::from_raw(error.raw_os_error().unwrap_or(0))))?))
}

fn stdio_trouble(errno: Errno) -> Trouble {
    Trouble { stage: Some(Stage::Stdio), errno, at: String::new() }
}
