//! Making cells and starting processes in them: the theory of operation.
//!
//! | process  | is                              | privileges                         | holds                    |
//! |----------|---------------------------------|------------------------------------|--------------------------|
//! | broker   | the program the user started    | the user's                         | launcher, leashes, proxy |
//! | launcher | a fork of it, before tokio      | the user's; environment wiped      | cells, cgroups           |
//! | maker    | one per cell, short-lived       | all in the cell's user namespace   | the tree it builds       |
//! | borrowed | per process, microseconds       | launcher's, then the cell's        | the launcher's memory    |
//! | PID 1    | per process                     | none: sealed                       | the leash                |
//! | command  | child of PID 1                  | none: sealed, then exec            | 0, 1, 2                  |
//! | worker   | one per cell, as a command      | none: sealed, executes nothing     | a socket to the broker   |
//!
//! The broker asks the launcher to make a cell ([`cell`], [`mounts`]) and then to prepare processes
//! ([`spawn`], [`seal`], [`init`], [`exec`]): each comes back as three descriptors. The *door* takes the
//! command and hangs up when exec worked, the *leash* tells how it ended and takes signals, the *pidfd*
//! is PID 1. A prepared process is sealed before it knows what it will run, so a few can wait ready and a
//! start is one message and one exec.
//!
//! With a proxy, the maker leaves a socket that listens on the cell's loopback before anything runs there; it goes to
//! the broker with the cell, and the broker answers it from the host's network (`broker::proxy`).
//!
//! Who ends with whom: the broker's death closes every leash, and PID 1 ends when its leash closes; the
//! kernel kills a PID namespace with its PID 1. The launcher sees the broker's death as end of file, kills
//! what it knows and removes the cgroups. The launcher's death reaches PID 1 as SIGKILL (PDEATHSIG), and
//! the broker removes the cgroups. A cell's namespaces and mounts live only in descriptors and go with them.

mod attempt;
pub mod cell;
pub mod cgroup;
mod exec;
pub mod fault;
mod hidden;
mod init;
mod launcher;
mod maker;
mod mounts;
mod proc;
mod seal;
pub mod spawn;

use crate::sys::process::{CloneRequest, Side, clone_copy};
use crate::sys::{self, descriptor, process, signal, socket};
use crate::wire::Channel;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::OnceLock;

/// The broker's end of the conversation, and the launcher it talks to.
#[derive(Debug)]
pub struct Launcher {
    pub channel: Channel,
    pub pidfd: OwnedFd,
    pub pid: i32,
}

/// What a process does that stays and works instead of becoming a command; it talks over the socket.
pub type Work = fn(OwnedFd);

static WORK: OnceLock<Work> = OnceLock::new();

/// The worker's stack: the child's own is made for a few system calls.
const WORK_STACK: usize = 1 << 20;

/// Forks the launcher. Must be called while this process has one thread and has read no secret.
pub fn start(work: Work) -> io::Result<Launcher> {
    let _ = WORK.set(work);
    // Broker and launcher know every agent's affairs, and a core file would lie in the working directory.
    // A kernel that refuses this refuses every process its rlimits, and there it is told.
    let _ = process::limit(libc::RLIMIT_CORE, 0);
    let (ours, theirs) = socket::pair(libc::SOCK_STREAM)?;
    let request = CloneRequest { flags: 0, exit_signal: libc::SIGCHLD as u64, cgroup: None };
    match clone_copy(&request)? {
        Side::Parent { pid, pidfd } => {
            drop(theirs);
            Ok(Launcher { channel: Channel::new(ours), pidfd, pid })
        }
        Side::Child => {
            drop(ours);
            become_launcher(theirs)
        }
    }
}

fn work(socket: OwnedFd) {
    if let Some(work) = WORK.get() {
        let working = std::thread::Builder::new().stack_size(WORK_STACK).spawn(|| work(socket));
        let _ = working.map(std::thread::JoinHandle::join);
    }
}

fn become_launcher(broker: OwnedFd) -> ! {
    sys::words::wipe();
    signal::reset_dispositions();
    // Inherited by every command: what an agent makes is not writable by others, whatever the operator's own is.
    process::umask(0o022);
    let prepared = signal::block_all()
        // Its own session: the terminal's Ctrl-C is the broker's to answer.
        .and_then(|()| process::setsid())
        .and_then(|()| forget_descriptors(broker))
        .and_then(|broker| process::name(c"stockade-launch").map(|()| broker));
    match prepared {
        Ok(broker) => launcher::run(Channel::new(broker)),
        Err(_) => process::exit(1),
    }
}

/// Keeps the broker's socket; standard streams become `/dev/null`, everything else is closed.
fn forget_descriptors(broker: OwnedFd) -> sys::Result<OwnedFd> {
    let kept = descriptor::duplicate_above(broker.as_raw_fd(), 4)?;
    descriptor::duplicate_onto(kept, 3, libc::O_CLOEXEC)?;
    std::mem::forget(broker);
    descriptor::close_range(4, u32::MAX)?;
    let null = descriptor::open(c"/dev/null", libc::O_RDWR)?;
    for number in 0..3 {
        descriptor::duplicate_onto(null.as_raw_fd(), number, 0)?;
    }
    Ok(descriptor::adopt(3))
}
