//! The broker's handle on a cell: asks the launcher for prepared processes and gives them their commands.

use super::fault::Trouble;
use super::proxy::Proxy;
use crate::launch::Launcher;
use crate::launch::cgroup::{self, Gauges};
use crate::plan::cell::{CellPlan, GroupPlan};
use crate::plan::command::CommandPlan;
use crate::plan::proxy::ProxyPlan;
use crate::sys::terminal::Size;
use crate::sys::{Errno, descriptor, process, socket};
use crate::wire::{CommandHeader, FromInit, FromLauncher, Report, Stage, ToLauncher};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::{SFlag, fstat};
use nix::unistd::fchown;
use std::collections::VecDeque;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A root on a filesystem that does not answer must not hang the broker.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long the launcher gets to take a cell apart before the broker does it.
const FAREWELL: Duration = Duration::from_secs(3);

/// One cell, and the launcher that made it. Dropping it ends everything in it.
#[derive(Debug)]
pub struct Cell {
    /// Its number among the cells of this broker.
    number: u32,
    launcher: Option<Launcher>,
    /// Where its cgroups are or will be.
    groups: Vec<PathBuf>,
    ready: VecDeque<Ready>,
    /// Asked for and not yet answered.
    coming: usize,
    /// The host's uid and gid of everything in it.
    owner: (u32, u32),
    /// Serves as long as the cell is there.
    proxy: Option<Proxy>,
}

/// A sealed process that waits for its command.
#[derive(Debug)]
pub struct Ready {
    pub door: OwnedFd,
    pub leash: OwnedFd,
    pub pidfd: OwnedFd,
    /// As the host counts.
    pub pid: i32,
    pub gauges: Option<Gauges>,
    owner: (u32, u32),
}

/// What the command's 0, 1 and 2 are.
#[derive(Debug)]
pub enum Stdio {
    Descriptors([OwnedFd; 3]),
    /// A terminal made inside the cell; its other end comes back through the door.
    Terminal(Size),
}

impl Stdio {
    /// What output goes to, where that is ours to hold; what input comes from is closed.
    pub fn without_input(self) -> Vec<OwnedFd> {
        match self {
            Stdio::Descriptors([_, stdout, stderr]) => vec![stdout, stderr],
            Stdio::Terminal(_) => Vec::new(),
        }
    }
}

impl Cell {
    /// Has the launcher make the cell; the first process is asked for along with it.
    pub fn make(launcher: Launcher, plan: CellPlan) -> Result<Cell, Trouble> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let owner = (plan.identity.outer_uid, plan.identity.outer_gid);
        let place =
            |groups: &GroupPlan| cgroup::future_locations(&groups.layout, std::process::id(), &number.to_string());
        let groups = plan.groups.as_ref().map(place).unwrap_or_default();
        let proxy = plan.proxy.clone();
        let ready = VecDeque::new();
        let mut cell = Cell { number, launcher: Some(launcher), groups, ready, coming: 0, owner, proxy: None };
        cell.send(&ToLauncher::MakeCell { cell: number, plan: Box::new(plan) })?;
        cell.prepare()?;
        match cell.receive()? {
            (FromLauncher::CellMade { groups, .. }, descriptors) => {
                cell.groups = groups;
                cell.proxy = proxy.map(|proxy| serve(descriptors, proxy)).transpose()?;
            }
            (FromLauncher::CellFailed { fault, .. }, _) => return Err(fault.into()),
            _ => return Err(Trouble::lost("the launcher")),
        }
        Ok(cell)
    }

    /// Asks for one more process to wait ready.
    pub fn prepare(&mut self) -> Result<(), Trouble> {
        self.coming += 1;
        self.send(&ToLauncher::Prepare { cell: self.number })
    }

    /// A prepared process; waits for the launcher when none is ready.
    pub fn take(&mut self) -> Result<Ready, Trouble> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Ok(ready);
            }
            if self.coming == 0 {
                self.prepare()?;
            }
            self.collect()?;
        }
    }

    /// Takes one answer of the launcher and keeps the process for [`Cell::take`].
    pub fn collect(&mut self) -> Result<(), Trouble> {
        let ready = self.hear()?;
        self.ready.push_back(ready);
        Ok(())
    }

    /// One answer of the launcher: a process that is ready, or why it is not.
    pub fn hear(&mut self) -> Result<Ready, Trouble> {
        let (message, descriptors) = self.receive()?;
        self.coming = self.coming.saturating_sub(1);
        match message {
            FromLauncher::Ready { pid, gauges, .. } => {
                Ready::new(descriptors, pid, gauges, self.owner).ok_or_else(|| Trouble::lost("the launcher"))
            }
            FromLauncher::PrepareFailed { fault, .. } => Err(fault.into()),
            _ => Err(Trouble::lost("the launcher")),
        }
    }

    /// How many processes were asked for and have not come.
    pub fn coming(&self) -> usize {
        self.coming
    }

    /// Readable when the launcher has something to say, or is gone.
    pub fn answers(&self) -> Option<BorrowedFd<'_>> {
        self.launcher.as_ref().map(|launcher| launcher.channel.descriptor())
    }

    pub fn has_answer(&self) -> bool {
        self.answers().is_some_and(|answers| readable(answers, Duration::ZERO))
    }

    /// Gives up what is prepared; the cell stays.
    pub fn drain(&mut self) -> VecDeque<Ready> {
        std::mem::take(&mut self.ready)
    }

    /// Readable once the launcher is dead.
    pub fn launcher(&self) -> Option<&OwnedFd> {
        self.launcher.as_ref().map(|launcher| &launcher.pidfd)
    }

    pub fn launcher_pid(&self) -> Option<i32> {
        self.launcher.as_ref().map(|launcher| launcher.pid)
    }

    fn send(&self, message: &ToLauncher) -> Result<(), Trouble> {
        let launcher = self.launcher.as_ref().ok_or_else(|| Trouble::lost("the launcher"))?;
        launcher.channel.send(message, &[]).map_err(|_| Trouble::lost("the launcher"))
    }

    fn receive(&self) -> Result<(FromLauncher, Vec<OwnedFd>), Trouble> {
        let lost = || Trouble::lost("the launcher");
        let channel = &self.launcher.as_ref().ok_or_else(lost)?.channel;
        if !readable(channel.descriptor(), PATIENCE) {
            return Err(Trouble { stage: Some(Stage::Source), errno: Errno::ETIMEDOUT, at: "launcher".into() });
        }
        channel.receive().ok().flatten().ok_or_else(lost)
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        self.ready.clear();
        if let Some(launcher) = self.launcher.take() {
            // End of file is the launcher's word to take everything apart.
            drop(launcher.channel);
            if !readable(launcher.pidfd.as_fd(), FAREWELL) {
                let _ = process::pidfd_signal(launcher.pidfd.as_fd(), libc::SIGKILL);
            }
            let _ = process::reap(launcher.pidfd.as_fd());
        }
        // Nothing is left of them unless the launcher was killed.
        cgroup::remove_locations(&self.groups);
    }
}

fn serve(descriptors: Vec<OwnedFd>, plan: ProxyPlan) -> Result<Proxy, Trouble> {
    let listener = descriptors.into_iter().next().ok_or_else(|| Trouble::lost("the launcher"))?;
    Proxy::serve(listener, plan).map_err(|error| Trouble {
        stage: Some(Stage::Proxy),
        errno: error.raw_os_error().map_or(Errno::UnknownErrno, Errno::from_raw),
        at: String::new(),
    })
}

fn readable(descriptor: BorrowedFd<'_>, patience: Duration) -> bool {
    let mut watched = [PollFd::new(descriptor, PollFlags::POLLIN)];
    let timeout = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
    loop {
        match poll(&mut watched, timeout) {
            Err(Errno::EINTR) => {}
            done => return done.is_ok_and(|count| count > 0),
        }
    }
}

impl Ready {
    fn new(descriptors: Vec<OwnedFd>, pid: i32, gauges: Option<serde_json::Value>, owner: (u32, u32)) -> Option<Ready> {
        let mut descriptors = descriptors.into_iter();
        let (door, leash, pidfd) = (descriptors.next()?, descriptors.next()?, descriptors.next()?);
        let gauges = match gauges {
            Some(kind) => Gauges::from_descriptors(serde_json::from_value(kind).ok()?, descriptors.collect()),
            None => None,
        };
        Some(Ready { door, leash, pidfd, pid, gauges, owner })
    }

    /// Hands the command through the door. Whether it could be executed is told there, or by silence.
    pub fn start(&self, command: &CommandPlan, stdio: &Stdio) -> Result<(), Trouble> {
        // A door that is gone was closed by a PID 1 that failed, and has said why.
        self.hand_over(command, stdio).map_err(|errno| {
            self.trouble().unwrap_or(Trouble { stage: Some(Stage::Receive), errno, at: String::new() })
        })
    }

    fn hand_over(&self, command: &CommandPlan, stdio: &Stdio) -> Result<(), Errno> {
        let words = encode(command);
        let size = match stdio {
            Stdio::Descriptors(_) => Size { rows: 0, cols: 0 },
            Stdio::Terminal(size) => Size { rows: size.rows.max(1), cols: size.cols.max(1) },
        };
        let header = CommandHeader {
            bytes: u32::try_from(words.len()).map_err(|_| Errno::E2BIG)?,
            candidates: command.candidates.len() as u32,
            arguments: command.argv.len() as u32,
            variables: command.env.len() as u32,
            rows: size.rows,
            cols: size.cols,
            task: command.task,
        };
        let descriptors: Vec<i32> = match stdio {
            Stdio::Descriptors(three) => {
                three.iter().try_for_each(|end| self.give(end))?;
                three.iter().map(AsRawFd::as_raw_fd).collect()
            }
            Stdio::Terminal(_) => Vec::new(),
        };
        let mut message = header.to_bytes().to_vec();
        message.extend(words);
        let mut sent = socket::send(self.door.as_raw_fd(), &message, &descriptors)?;
        while sent < message.len() {
            sent += socket::send(self.door.as_raw_fd(), &message[sent..], &[])?;
        }
        Ok(())
    }

    /// A pipe belongs to whoever made it, and `/dev/stdout` opens it once more by its permissions. Anything but a pipe
    /// has an owner of its own, on the host, and keeps it.
    fn give(&self, end: &OwnedFd) -> Result<(), Errno> {
        let is_pipe = fstat(end)?.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFIFO.bits();
        if is_pipe { fchown(end, Some(self.owner.0.into()), Some(self.owner.1.into())) } else { Ok(()) }
    }

    /// Waits for what is said at the door; `None` when it was hung up because exec worked.
    pub fn verdict(&self) -> Option<Trouble> {
        let mut bytes = [0; Report::BYTES];
        if !readable(self.door.as_fd(), PATIENCE) {
            return Some(Trouble::lost("the process"));
        }
        match socket::receive(self.door.as_raw_fd(), &mut bytes, &mut []) {
            Ok((0, _)) => self.trouble(),
            Ok((got, _)) => match Report::from_bytes(&bytes[..got]) {
                // A worker says so, because it does not exec.
                Some(Report { stage: 0, .. }) => None,
                Some(report) => Some(report.into()),
                None => Some(Trouble::lost("the process")),
            },
            Err(_) => Some(Trouble::lost("the process")),
        }
    }

    /// A hung-up door means that exec worked, unless PID 1 failed or died before.
    fn trouble(&self) -> Option<Trouble> {
        let mut bytes = [0; FromInit::BYTES];
        while readable(self.leash.as_fd(), Duration::ZERO) {
            match descriptor::read(self.leash.as_raw_fd(), &mut bytes).map(|got| FromInit::from_bytes(&bytes[..got])) {
                Ok(Some(FromInit::Ready)) => {}
                Ok(Some(FromInit::Exited { .. })) => return None,
                Ok(Some(FromInit::Failed(report))) => return Some(report.into()),
                Ok(None) | Err(_) => return Some(Trouble::lost("the process")),
            }
        }
        None
    }

    /// The terminal's outer end, which the child sends before it becomes the command.
    pub fn terminal(&self) -> Result<OwnedFd, Trouble> {
        let mut bytes = [0; Report::BYTES];
        let mut descriptors = [-1; 1];
        match socket::receive(self.door.as_raw_fd(), &mut bytes, &mut descriptors) {
            Ok((_, 1)) => Ok(descriptor::adopt(descriptors[0])),
            Ok((Report::BYTES, _)) => {
                Err(Report::from_bytes(&bytes).map_or_else(|| Trouble::lost("the process"), Into::into))
            }
            _ => Err(Trouble::lost("the process")),
        }
    }
}

/// Working directory, candidates, arguments, variables: each ends with a NUL, none holds one (`plan` checked).
fn encode(command: &CommandPlan) -> Vec<u8> {
    let mut words = Vec::with_capacity(4096);
    let mut push = |parts: &[&[u8]]| {
        parts.iter().for_each(|part| words.extend_from_slice(part));
        words.push(0);
    };
    push(&[command.cwd.as_path().as_os_str().as_bytes()]);
    command.candidates.iter().for_each(|path| push(&[path.as_path().as_os_str().as_bytes()]));
    command.argv.iter().for_each(|word| push(&[word.as_bytes()]));
    command.env.iter().for_each(|(name, value)| push(&[name.as_bytes(), b"=", value.as_bytes()]));
    words
}
