//! PID 1 of a process: reaps orphans, passes on signals and the exit status, and takes everything with it.
//!
//! It holds no secret: its environment was wiped in the launcher, it cannot be looked into, and it runs
//! under every wall that the command runs under. Child-safe throughout.

use super::exec;
use super::hidden::Hidden;
use super::seal::{DOOR, LEASH, Sealed};
use crate::sys::process::Stack;
use crate::sys::{Errno, descriptor, process, signal};
use crate::wire::{FromInit, Left, Report, Stage};
use std::os::fd::AsRawFd;

/// Makes the child that becomes the command, then stays until that child has ended or the broker lets go.
///
/// The child borrows PID 1's memory until it execs, as with vfork(2): nothing is copied, and exec has nothing to
/// tear down. Until then PID 1 stands still; should the broker go away meanwhile, the child sees that at the door.
pub fn run(sealed: &Sealed, hidden: &Hidden, stack: &mut Stack) -> ! {
    match start(sealed, hidden, stack) {
        Ok(()) => process::exit(0),
        Err(errno) => {
            tell(FromInit::Failed(Report { stage: Stage::Fork as u32, errno: errno as i32 }));
            process::exit(1)
        }
    }
}

fn start(sealed: &Sealed, hidden: &Hidden, stack: &mut Stack) -> Result<(), Errno> {
    let deaths = signal::child_events()?;
    tell(FromInit::Ready);
    let mut order = exec::Order::default();
    let child = process::clone_borrowing_sealed(stack, &mut || exec::wait_and_exec(sealed, hidden, &mut order))?;
    // What the command was given is its own business, not PID 1's.
    order.forget();
    descriptor::close_range(DOOR as u32, DOOR as u32)?;
    loop {
        let (died, said) = descriptor::wait_for_either(deaths.as_raw_fd(), LEASH)?;
        if said && !obey(child) {
            return Ok(());
        }
        if died {
            // The signal itself says nothing that waitpid does not say better.
            let _ = descriptor::read(deaths.as_raw_fd(), &mut [0; 128]);
            if reap_all(child) {
                return Ok(());
            }
        }
    }
}

/// Reaps every dead child; true once the command itself was among them and its end was told.
///
/// Whoever lives here descends from PID 1 through the living: the orphans of the dead are its children. Without any
/// child it is alone.
fn reap_all(child: i32) -> bool {
    let mut command = None;
    let left = loop {
        match process::reap_any() {
            Ok(Some(ended)) if ended.pid == child => command = Some(ended.status),
            Ok(Some(_)) | Err(Errno::EINTR) => {}
            Err(Errno::ECHILD) => break Left::Nobody,
            Ok(None) | Err(_) => break Left::Others,
        }
    };
    let Some(status) = command else { return false };
    let (cpu_micros, max_rss_kib) = process::children_usage();
    tell(FromInit::Exited { status, cpu_micros, max_rss_kib, left });
    true
}

/// One message from the broker is one signal number; false when the broker has let go.
fn obey(child: i32) -> bool {
    let mut number = [0];
    match descriptor::read(LEASH, &mut number) {
        Ok(1) => {
            let number = i32::from(number[0]);
            // Stopping and continuing is for all that runs here, other signals for the command's own group.
            let everyone = number == libc::SIGSTOP || number == libc::SIGCONT || number == libc::SIGKILL;
            let _ = process::kill(if everyone { -1 } else { -child }, number);
            true
        }
        Ok(_) => false,
        Err(Errno::EINTR | Errno::EAGAIN) => true,
        Err(_) => false,
    }
}

fn tell(message: FromInit) {
    let _ = descriptor::write(LEASH, &message.to_bytes());
}
