//! Attempts on processes: tracing, signals, terminals.

use super::kernel::{UNPREPARED, call, number};
use super::{Attempt, errno, judge, told};
use std::os::fd::AsRawFd;

pub fn attempt(words: &[&str]) -> Option<Attempt> {
    Some(match words {
        ["with-child", rest @ ..] => with_child(rest),
        ["read-memory", pid] => read_memory(number(pid)),
        ["take-descriptor", pid] => take_descriptor(number(pid)),
        ["traced-exec", path] => traced_exec(path),
        ["kill-all"] => kill_all(),
        ["signals-to", pid] => signals_to(number(pid) as i32),
        ["storm", count] => storm(number(count)),
        ["own-terminal", rest @ ..] => own_terminal(rest),
        ["ids"] => ids(),
        _ => return None,
    })
}

/// A forked child that only waits, and the same words again with its PID for `{child}`.
fn with_child(words: &[&str]) -> Attempt {
    let child = forked(|| {
        loop {
            // SAFETY: waits for a signal.
            unsafe { libc::pause() };
        }
    })?;
    let words: Vec<String> = words.iter().map(|word| word.replace("{child}", &child.to_string())).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let answer = attempt(&words).or_else(|| super::kernel::attempt(&words)).unwrap_or(Err(UNPREPARED));
    end(child);
    answer
}

/// Forks; the child runs `life` and nothing else.
fn forked(life: impl FnOnce()) -> Result<i32, i32> {
    // SAFETY: this process has one thread.
    match unsafe { libc::fork() } {
        -1 => Err(errno()),
        0 => {
            life();
            // SAFETY: leaves at once.
            unsafe { libc::_exit(0) }
        }
        child => Ok(child),
    }
}

fn end(child: i32) {
    // SAFETY: signals and reaps a child of ours; a null status is allowed.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), libc::__WALL);
    }
}

/// Eight bytes at an address that is mapped here, and therefore in every fork.
fn read_memory(pid: u64) -> Attempt {
    static THERE: u64 = 0x5743_1234;
    let mut here = 0_u64;
    let local = libc::iovec { iov_base: (&raw mut here).cast(), iov_len: 8 };
    let remote = libc::iovec { iov_base: (&raw const THERE).cast_mut().cast(), iov_len: 8 };
    let arguments = [pid, &raw const local as u64, 1, &raw const remote as u64, 1, 0];
    judge(call(libc::SYS_process_vm_readv, arguments))
}

/// Copies descriptor 0 of another process.
fn take_descriptor(pid: u64) -> Attempt {
    let pidfd = call(libc::SYS_pidfd_open, [pid, 0, 0, 0, 0, 0]);
    judge(pidfd).map_err(|_| UNPREPARED)?;
    judge(call(libc::SYS_pidfd_getfd, [pidfd as u64, 0, 0, 0, 0, 0]))
}

/// Runs a program as a tracee and prints the ids it has after exec.
fn traced_exec(path: &str) -> Attempt {
    let program = std::ffi::CString::new(path).map_err(|_| UNPREPARED)?;
    let child = forked(|| {
        call(libc::SYS_ptrace, [0; 6]);
        // SAFETY: one argument, no environment, both ended by null.
        unsafe {
            libc::execve(program.as_ptr(), [program.as_ptr(), std::ptr::null()].as_ptr(), [std::ptr::null()].as_ptr())
        };
    })?;
    let mut status = 0;
    // SAFETY: `status` is ours.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    if !libc::WIFSTOPPED(status) {
        return Err(UNPREPARED);
    }
    println!("{}", std::fs::read_to_string(format!("/proc/{child}/status")).map_err(|_| UNPREPARED)?);
    end(child);
    Ok(())
}

/// SIGKILL to everyone it may reach; prints how many of four children it ended.
fn kill_all() -> Attempt {
    let children: Vec<i32> = (0..4)
        .map(|_| {
            forked(|| {
                loop {
                    // SAFETY: waits for a signal.
                    unsafe { libc::pause() };
                }
            })
        })
        .collect::<Result<_, _>>()?;
    // SAFETY: this is the attempt.
    judge(unsafe { libc::kill(-1, libc::SIGKILL) }.into())?;
    let ended = children.iter().filter(|child| {
        let mut status = 0;
        // SAFETY: `status` is ours.
        unsafe { libc::waitpid(**child, &raw mut status, 0) };
        libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL
    });
    println!("ended {}", ended.count());
    Ok(())
}

/// Every signal there is.
fn signals_to(pid: i32) -> Attempt {
    for signal in 1..=64 {
        // SAFETY: this is the attempt.
        judge(unsafe { libc::kill(pid, signal) }.into())?;
    }
    Ok(())
}

/// Children that leave an orphan each and end at once: PID 1 has as many to reap as we have.
fn storm(count: u64) -> Attempt {
    let mut made = 0;
    while made < count {
        match forked(|| _ = forked(|| {})) {
            Ok(child) => {
                // SAFETY: a null status is allowed.
                unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
                made += 2;
            }
            // The cell's bound on processes: PID 1 is behind with reaping.
            Err(libc::EAGAIN) => std::thread::yield_now(),
            Err(errno) => return Err(errno),
        }
    }
    println!("made {made}");
    Ok(())
}

/// The same words again, in a new session whose controlling terminal is a new pseudo-terminal on descriptor 0.
fn own_terminal(words: &[&str]) -> Attempt {
    let words: Vec<String> = words.iter().map(ToString::to_string).collect();
    let child = forked(|| {
        let code = match take_terminal() {
            Ok(master) => {
                // Closing it would hang up on this very process.
                std::mem::forget(master);
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                super::kernel::attempt(&words).map_or(250, |answer| answer.err().unwrap_or(0))
            }
            Err(_) => UNPREPARED,
        };
        std::process::exit(code)
    })?;
    let mut status = 0;
    // SAFETY: `status` is ours.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    match libc::WEXITSTATUS(status) {
        _ if !libc::WIFEXITED(status) => Err(UNPREPARED),
        0 => Ok(()),
        errno => Err(errno),
    }
}

fn take_terminal() -> Result<std::fs::File, i32> {
    let master = std::fs::File::options().read(true).write(true).open("/dev/ptmx").map_err(|_| UNPREPARED)?;
    let (mut index, unlock) = (0, 0);
    // SAFETY: both ioctls take one int.
    unsafe {
        libc::ioctl(master.as_raw_fd(), libc::TIOCSPTLCK, &raw const unlock);
        judge(libc::ioctl(master.as_raw_fd(), libc::TIOCGPTN, &raw mut index).into())?;
    }
    // SAFETY: plain calls; `dup2` replaces our own standard input.
    unsafe {
        judge(libc::setsid().into())?;
        let path = format!("/dev/pts/{index}");
        let slave = std::fs::File::options().read(true).write(true).open(path).map_err(|_| UNPREPARED)?;
        judge(libc::dup2(slave.as_raw_fd(), 0).into())?;
        // The first terminal a session leader opens is already its controlling one; then this changes nothing.
        judge(libc::ioctl(0, libc::TIOCSCTTY, 0).into())?;
    }
    Ok(master)
}

/// Prints process, group and session, as numbered inside.
fn ids() -> Attempt {
    // SAFETY: these only ask.
    unsafe { println!("{} {} {}", libc::getpid(), libc::getpgrp(), libc::getsid(0)) };
    told(std::fs::metadata("/proc/self"))
}
