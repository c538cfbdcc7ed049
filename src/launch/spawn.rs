//! Preparing a process: from the launcher to a sealed child that waits for its command.
//!
//! Two clones. The first borrows the launcher's memory (like vfork) only to enter the cgroup and the
//! cell's namespaces, which the launcher itself must not do. The second makes PID 1, as the launcher's
//! own child (CLONE_PARENT), in new PID, mount and cgroup namespaces. PID 1 seals itself and makes the
//! child that will become the command.

use super::cell::Cell;
use super::init;
use super::seal::{Grouped, Joined, Step};
use crate::sys::process::{CloneRequest, Side, Stack, clone_borrowing, clone_copy, reap_pid};
use crate::sys::{Errno, descriptor, socket};
use crate::wire::{FromInit, Report, Stage};
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};

/// How the new process enters its cgroup.
#[derive(Debug, Default)]
pub struct Entry<'a> {
    /// cgroup v1: `tasks` files, opened for writing.
    pub tasks: &'a [OwnedFd],
    /// cgroup v2: the directory.
    pub into: Option<RawFd>,
}

/// Stacks for the two children that borrow memory. Made once: a fresh one would be copied at every start.
#[derive(Debug, Default)]
pub struct Stacks {
    /// For the one that joins the cell.
    borrowed: Stack,
    /// For the one that becomes the command, in PID 1's copy.
    command: Stack,
}

/// The broker's ends of a process that waits for its command.
#[derive(Debug)]
pub struct Prepared {
    /// Takes the command and, should it fail, tells why; hangs up when exec worked.
    pub door: OwnedFd,
    /// Tells how it ended, takes signals; when the broker lets go of it, PID 1 ends.
    pub leash: OwnedFd,
    /// PID 1.
    pub pidfd: OwnedFd,
    /// Its number as the host counts.
    pub pid: i32,
    /// The inner end of the leash: hangs up when the broker lets go.
    pub held: OwnedFd,
}

/// Starts one process up to the point where it waits. What fails later is told on the leash.
pub fn prepare(cell: &Cell, entry: &Entry<'_>, stacks: &mut Stacks) -> Step<Prepared> {
    let pair = |kind| socket::pair(kind).map_err(|errno| (Stage::Clone, errno));
    let (door, door_inside) = pair(libc::SOCK_STREAM)?;
    let (leash, leash_inside) = pair(libc::SOCK_SEQPACKET)?;
    let request = CloneRequest { flags: 0, exit_signal: libc::SIGCHLD as u64, cgroup: entry.into };
    let mut outcome: Step<(i32, RawFd)> = Err((Stage::Clone, Errno::ECHILD));
    let (inner_leash, inner_door) = (leash_inside.as_raw_fd(), door_inside.as_raw_fd());
    let Stacks { borrowed: stack, command: spare } = stacks;
    let mut borrowed = || outcome = make_init(cell, entry.tasks, inner_leash, inner_door, spare);
    let borrower = clone_borrowing(&request, stack, &mut borrowed).map_err(|errno| (Stage::Clone, errno))?;
    let _ = reap_pid(borrower);
    let (pid, pidfd) = outcome?;
    Ok(Prepared { door, leash, pidfd: descriptor::adopt(pidfd), pid, held: leash_inside })
}

/// In the borrowed child. Child-safe.
fn make_init(cell: &Cell, tasks: &[OwnedFd], leash: RawFd, door: RawFd, spare: &mut Stack) -> Step<(i32, RawFd)> {
    let joined = Grouped::enter(tasks)?.join(cell)?;
    let flags = libc::CLONE_PARENT | libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWCGROUP;
    // With CLONE_PARENT the exit signal is the borrowed child's; clone3(2) wants none given.
    let request = CloneRequest { flags: flags as u64, exit_signal: 0, cgroup: None };
    match clone_copy(&request).map_err(|errno| (Stage::Clone, errno))? {
        Side::Parent { pid, pidfd } => Ok((pid, pidfd.into_raw_fd())),
        Side::Child => become_init(cell, joined, leash, door, spare),
    }
}

/// PID 1, from its first instruction to its last. Child-safe.
fn become_init(cell: &Cell, joined: Joined, leash: RawFd, door: RawFd, spare: &mut Stack) -> ! {
    let sealed = joined
        .alone()
        .mount_proc(cell)
        .and_then(|rooted| rooted.limit(cell))
        .and_then(|limited| limited.drop_privileges(cell))
        .and_then(|powerless| powerless.seal_files(cell))
        .and_then(|confined| confined.close_descriptors(cell, leash, door))
        .and_then(|bare| bare.seal_syscalls(cell));
    match sealed {
        Ok(sealed) => init::run(&sealed, &cell.hidden, spare),
        Err((stage, errno)) => {
            let report = FromInit::Failed(Report { stage: stage as u32, errno: errno as i32 });
            // Until the descriptors were closed the leash has its old number, afterwards its fixed one.
            if descriptor::write(leash, &report.to_bytes()).is_err() {
                let _ = descriptor::write(super::seal::LEASH, &report.to_bytes());
            }
            crate::sys::process::exit(1)
        }
    }
}
