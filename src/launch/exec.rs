//! The sealed child: waits at the door for its command, then becomes it.
//!
//! What arrives was decided by `plan`; nothing is decided here. Child-safe throughout: the strings go
//! into memory mapped for them and are used where they lie.

use super::attempt;
use super::hidden::Hidden;
use super::seal::{DOOR, LEASH, Sealed};
use crate::plan::command::Task;
use crate::sys::descriptor::{self, duplicate_above, duplicate_onto};
use crate::sys::terminal::{self, Size};
use crate::sys::{Errno, process, signal, socket};
use crate::wire::{CommandHeader, Report, Stage};
use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, RawFd};

/// Never returns from a successful order; otherwise says at the door why, or ends because the broker went away.
pub fn wait_and_exec(_sealed: &Sealed, hidden: &Hidden, order: &mut Order) {
    let (stage, errno) = match order.receive() {
        Some(Ok(())) => match hidden.look() {
            Ok(()) => carry_out(order),
            Err(errno) => (Stage::CoverHidden, errno),
        },
        Some(Err(errno)) => (Stage::Receive, errno),
        None => return,
    };
    let report = Report { stage: stage as u32, errno: errno as i32 };
    let _ = socket::send(DOOR, &report.to_bytes(), &[]);
    process::exit(127)
}

/// What is to be run. Lives in PID 1's memory, which the child borrows; PID 1 forgets it after exec.
#[derive(Debug, Default)]
pub struct Order {
    header: CommandHeader,
    /// The command's descriptors for 0, 1 and 2; none of them below 5. Unused with a terminal.
    stdio: [RawFd; 3],
    /// `cwd`, candidates, arguments and variables, each NUL-terminated; then room for the pointers of execve.
    memory: Option<&'static mut [u8]>,
}

impl Order {
    fn receive(&mut self) -> Option<Result<(), Errno>> {
        let mut head = [0; CommandHeader::BYTES];
        let (got, count) = match socket::receive(DOOR, &mut head, &mut self.stdio) {
            Ok((0, _)) | Err(_) => return None,
            Ok(got) => got,
        };
        if got != CommandHeader::BYTES {
            return Some(Err(Errno::EPROTO));
        }
        self.header = CommandHeader::from_bytes(&head);
        Some(self.read_strings().and_then(|()| {
            for fd in &mut self.stdio[..count] {
                *fd = duplicate_above(*fd, DOOR + 1)?;
            }
            Ok(())
        }))
    }

    /// Where the strings end and the pointers begin.
    fn border(&self) -> usize {
        (self.header.bytes as usize).next_multiple_of(16)
    }

    fn read_strings(&mut self) -> Result<(), Errno> {
        let words = self.header.arguments as usize + self.header.variables as usize;
        let memory = descriptor::map_memory(self.border() + (words + 2) * size_of::<*const u8>())?;
        let mut rest = &mut memory[..self.header.bytes as usize];
        while !rest.is_empty() {
            match descriptor::read(DOOR, rest) {
                Ok(0) => return Err(Errno::EPIPE),
                Ok(got) => rest = &mut rest[got..],
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        self.memory = Some(memory);
        Ok(())
    }

    /// Overwrites the command's words and variables.
    pub fn forget(&mut self) {
        if let Some(memory) = &mut self.memory {
            memory.fill(0);
        }
    }
}

/// Returns only when a step failed.
fn carry_out(order: &mut Order) -> (Stage, Errno) {
    let border = order.border();
    let Some(memory) = order.memory.as_mut() else { return (Stage::Receive, Errno::EPROTO) };
    let (text, table) = memory.split_at_mut(border);
    let steps = || {
        process::setsid().map_err(|errno| (Stage::Terminal, errno))?;
        if order.header.rows > 0 {
            take_terminal(order.header).map_err(|errno| (Stage::Terminal, errno))?;
        } else {
            take_stdio(&order.stdio).map_err(|errno| (Stage::Stdio, errno))?;
        }
        // The leash is PID 1's alone.
        descriptor::close_range(LEASH as u32, LEASH as u32).map_err(|errno| (Stage::Stdio, errno))?;
        let mut strings = Strings { bytes: text, at: 0 };
        enter_directory(strings.next()).map_err(|errno| (Stage::WorkingDirectory, errno))?;
        signal::unblock_all().map_err(|errno| (Stage::Exec, errno))?;
        Ok(strings)
    };
    let mut strings = match steps() {
        Ok(strings) => strings,
        Err(failed) => return failed,
    };
    match order.header.task {
        Task::Execute => (Stage::Exec, exec(order.header, strings, table)),
        Task::Attempt => {
            let answer = attempt::attempt(strings.next(), strings.next());
            (Stage::Attempt, answer.err().unwrap_or(Errno::UnknownErrno))
        }
        Task::Work => work(),
    }
}

/// Stays and works, under every wall that a command would run under. Nothing is executed, so that a policy with a list
/// of programs needs no exception for it. From here on memory may be asked for: PID 1 stands still until we end, and
/// nobody else shares it.
fn work() -> (Stage, Errno) {
    // PID 1 holds the door open as long as it stands still, so hanging up would tell nobody that all is well.
    let said = socket::send(DOOR, &Report { stage: 0, errno: 0 }.to_bytes(), &[]);
    if let Err(errno) = said.and_then(|_| descriptor::close_range(DOOR as u32, DOOR as u32)) {
        return (Stage::Stdio, errno);
    }
    let _ = process::name(c"stockade-work");
    super::work(descriptor::adopt(0));
    process::exit(0)
}

fn take_stdio(stdio: &[RawFd; 3]) -> Result<(), Errno> {
    for (number, fd) in stdio.iter().enumerate() {
        duplicate_onto(*fd, number as RawFd, 0)?;
    }
    descriptor::close_range(DOOR as u32 + 1, u32::MAX)
}

/// Opens a terminal in the cell's own devpts and sends the other end out through the door.
fn take_terminal(header: CommandHeader) -> Result<(), Errno> {
    let (master, slave) = terminal::open_pair()?;
    terminal::resize(slave.as_fd(), Size { rows: header.rows, cols: header.cols })?;
    let report = Report { stage: 0, errno: 0 };
    socket::send(DOOR, &report.to_bytes(), &[master.as_raw_fd()])?;
    // Before 0, 1 and 2 are filled: they were closed until now, so the master is one of them.
    drop(master);
    let slave = duplicate_above(slave.into_raw_fd(), DOOR + 1)?;
    terminal::control(slave)?;
    for number in 0..3 {
        duplicate_onto(slave, number, 0)?;
    }
    descriptor::close_range(DOOR as u32 + 1, u32::MAX)
}

/// A directory that is outside the root or reached through `/proc` is refused, whatever its name said.
fn enter_directory(path: &CStr) -> Result<(), Errno> {
    process::chdir(path)?;
    let mut buffer = [0; libc::PATH_MAX as usize];
    let length = process::getcwd(&mut buffer)?;
    let real = &buffer[..length];
    if !real.starts_with(b"/") || real.starts_with(b"/proc/") || real == b"/proc\0" {
        return Err(Errno::EACCES);
    }
    Ok(())
}

/// Walks over NUL-terminated strings.
struct Strings<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Strings<'a> {
    fn next(&mut self) -> &'a CStr {
        let text = CStr::from_bytes_until_nul(&self.bytes[self.at..]).unwrap_or(c"");
        self.at += text.count_bytes() + 1;
        text
    }
}

fn exec(header: CommandHeader, mut strings: Strings<'_>, table: &mut [u8]) -> Errno {
    let mut candidates = Strings { bytes: strings.bytes, at: strings.at };
    for _ in 0..header.candidates {
        strings.next();
    }
    let (arguments, variables) = (header.arguments as usize, header.variables as usize);
    let vectors = process::vectors(table, arguments, variables, || strings.next().as_ptr());
    let mut worst = Errno::ENOENT;
    for _ in 0..header.candidates {
        match vectors.exec(candidates.next()) {
            Errno::ENOENT | Errno::ENOTDIR => {}
            // As execvp(3): remember that one was there, and look further.
            Errno::EACCES => worst = Errno::EACCES,
            errno => return errno,
        }
    }
    worst
}
