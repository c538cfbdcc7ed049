//! The launcher's loop: answers the broker, reaps what died, keeps cgroups tidy, and ends with the broker.
//!
//! One thread, one epoll. It never waits for a process: what a process has to say goes to the broker
//! over the leash. It decides nothing; it kills only what ran out of memory or lost its owner.

use super::cell::{self, Cell};
use super::cgroup::{self, CellGroup, GroupLimits, Slot};
use super::fault::Result;
use super::maker::Maker;
use super::spawn::{self, Entry, Stacks};
use crate::plan::cell::{CellPlan, GroupPlan, NetworkSpace};
use crate::sys::process::{pidfd_signal, reap};
use crate::wire::{Channel, Fault, FromLauncher, Stage, ToLauncher};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// Children wait ready-sealed; each is two tasks that must not count against the agent's own.
const SPARE_TASKS: u64 = 64;

/// On cgroup v1 the kernel signals before it kills; how often and how long to look for the kill.
const OOM_LOOK: Duration = Duration::from_millis(5);
const OOM_PATIENCE: Duration = Duration::from_millis(250);

/// How soon to try again to remove a cgroup that the kernel still held.
const REMOVAL_PAUSE: Duration = Duration::from_millis(20);

const BROKER: u64 = 0;
/// Marks the out-of-memory event of a process in its epoll token.
const OOM: u64 = 1 << 63;
/// Marks that the broker let go of a process.
const LET_GO: u64 = 1 << 62;

struct Home {
    cell: Cell,
    group: Option<CellGroup>,
}

struct Running {
    home: u32,
    pidfd: OwnedFd,
    slot: Option<Slot>,
    /// Until the broker lets go: then it has read what the dead process used, and the slot is free.
    held: Option<OwnedFd>,
    is_dead: bool,
}

struct Launcher {
    broker: Channel,
    epoll: Epoll,
    homes: HashMap<u32, Home>,
    running: HashMap<u64, Running>,
    next: u64,
    stacks: Stacks,
    oom_score: Option<File>,
    /// Processes whose cell ran out of memory, until when to look for a kill.
    suspects: Vec<(u64, Instant)>,
    removals: bool,
    /// Waits for the first cell, which most likely has a network of its own.
    spare: Option<Maker>,
}

pub fn run(broker: Channel) -> ! {
    let ended = Launcher::new(broker).and_then(|mut launcher| {
        let served = launcher.serve();
        launcher.end_all();
        served
    });
    std::process::exit(i32::from(ended.is_err()))
}

impl Launcher {
    fn new(broker: Channel) -> std::io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(broker.descriptor(), EpollEvent::new(EpollFlags::EPOLLIN, BROKER))?;
        Ok(Launcher {
            broker,
            epoll,
            homes: HashMap::new(),
            running: HashMap::new(),
            next: 1,
            stacks: Stacks::default(),
            oom_score: File::options().write(true).open("/proc/self/oom_score_adj").ok(),
            suspects: Vec::new(),
            removals: false,
            spare: Maker::start(NetworkSpace::Own).ok(),
        })
    }

    fn serve(&mut self) -> std::io::Result<()> {
        loop {
            let mut events = [EpollEvent::empty(); 32];
            let count = match self.epoll.wait(&mut events, self.patience()) {
                Err(nix::errno::Errno::EINTR) => 0,
                count => count?,
            };
            for event in &events[..count] {
                match event.data() {
                    BROKER => match self.broker.receive::<ToLauncher>()? {
                        Some((message, _)) => self.answer(message)?,
                        None => return Ok(()),
                    },
                    token if token & OOM != 0 => self.suspect(token & !OOM),
                    token if token & LET_GO != 0 => self.let_go(token & !LET_GO),
                    token => self.bury(token),
                }
            }
            self.look_for_kills();
            if self.removals {
                self.removals =
                    self.homes.values_mut().filter_map(|h| h.group.as_mut()).any(|g| g.retry_removals() > 0);
            }
        }
    }

    fn patience(&self) -> EpollTimeout {
        let pause = match (self.suspects.is_empty(), self.removals) {
            (false, _) => OOM_LOOK,
            (true, true) => REMOVAL_PAUSE,
            (true, false) => return EpollTimeout::NONE,
        };
        EpollTimeout::try_from(pause).unwrap_or(EpollTimeout::ZERO)
    }

    fn answer(&mut self, message: ToLauncher) -> std::io::Result<()> {
        match message {
            ToLauncher::MakeCell { cell, plan } => {
                let mut proxy = None;
                let answer = match make_home(cell, &plan, self.spare.take()) {
                    Ok(mut home) => {
                        // The broker's alone: with its last holder the socket goes.
                        proxy = home.cell.proxy.take();
                        let groups = home.group.as_ref().map(|g| g.locations().to_vec()).unwrap_or_default();
                        self.homes.insert(cell, home);
                        FromLauncher::CellMade { cell, groups }
                    }
                    Err(fault) => FromLauncher::CellFailed { cell, fault },
                };
                let descriptors: Vec<i32> = proxy.iter().map(AsRawFd::as_raw_fd).collect();
                self.broker.send(&answer, &descriptors)
            }
            ToLauncher::Prepare { cell } => self.prepare(cell),
            ToLauncher::DropCell { cell } => {
                self.end(Some(cell));
                self.broker.send(&FromLauncher::CellDropped { cell }, &[])
            }
        }
    }

    fn prepare(&mut self, cell: u32) -> std::io::Result<()> {
        let fault = |step, errno, at: &str| Fault { step, errno, at: at.into() };
        let Some(home) = self.homes.get_mut(&cell) else {
            let fault = fault(Stage::JoinCell, libc::ENOENT, "no such cell");
            return self.broker.send(&FromLauncher::PrepareFailed { cell, fault }, &[]);
        };
        let slot = match home.group.as_mut().map(CellGroup::take_slot).transpose() {
            Ok(slot) => slot,
            Err(error) => {
                let fault = fault(Stage::Group, error.raw_os_error().unwrap_or(libc::EIO), "slot");
                return self.broker.send(&FromLauncher::PrepareFailed { cell, fault }, &[]);
            }
        };
        let entry = Entry {
            tasks: slot.as_ref().map(|slot| slot.enter.tasks()).unwrap_or_default(),
            into: slot.as_ref().and_then(|slot| slot.enter.directory()).map(|fd| fd.as_raw_fd()),
        };
        // Inherited by the child: when the host runs out of memory, a cell goes before the broker does.
        write_score(&mut self.oom_score, b"500");
        let prepared = spawn::prepare(&home.cell, &entry, &mut self.stacks);
        write_score(&mut self.oom_score, b"0");
        match prepared {
            Ok(prepared) => self.hand_over(cell, prepared, slot),
            Err((step, errno)) => {
                if let (Some(group), Some(slot)) = (home.group.as_mut(), slot) {
                    group.give_back(slot);
                }
                let fault = fault(step, errno as i32, "");
                self.broker.send(&FromLauncher::PrepareFailed { cell, fault }, &[])
            }
        }
    }

    fn hand_over(&mut self, cell: u32, prepared: spawn::Prepared, slot: Option<Slot>) -> std::io::Result<()> {
        let id = self.next;
        self.next += 1;
        self.epoll.add(&prepared.pidfd, EpollEvent::new(EpollFlags::EPOLLIN, id))?;
        if let Some(event) = slot.as_ref().and_then(Slot::oom_event) {
            self.epoll.add(event, EpollEvent::new(EpollFlags::EPOLLIN, id | OOM))?;
        }
        self.epoll.add(&prepared.held, EpollEvent::new(EpollFlags::empty(), id | LET_GO))?;
        let mut descriptors = vec![prepared.door.as_raw_fd(), prepared.leash.as_raw_fd(), prepared.pidfd.as_raw_fd()];
        let mut gauges = None;
        if let Some(slot) = &slot {
            descriptors.extend(slot.gauges().descriptors().iter().map(AsRawFd::as_raw_fd));
            gauges = Some(serde_json::to_value(slot.gauges().kind())?);
        }
        let sent = self.broker.send(&FromLauncher::Ready { cell, pid: prepared.pid, gauges }, &descriptors);
        let held = Some(prepared.held);
        self.running.insert(id, Running { home: cell, pidfd: prepared.pidfd, slot, held, is_dead: false });
        sent
    }

    /// Reaps a process that died, with all its descendants dead before it.
    fn bury(&mut self, id: u64) {
        let Some(dead) = self.running.get_mut(&id).filter(|process| !process.is_dead) else { return };
        let _ = self.epoll.delete(&dead.pidfd);
        let _ = reap(dead.pidfd.as_fd());
        dead.is_dead = true;
        if let Some(event) = dead.slot.as_ref().and_then(Slot::oom_event) {
            let _ = self.epoll.delete(event);
        }
        self.suspects.retain(|(suspect, _)| *suspect != id);
        if dead.held.is_none() {
            self.free(id);
        }
    }

    fn let_go(&mut self, id: u64) {
        let Some(process) = self.running.get_mut(&id) else { return };
        if let Some(held) = process.held.take() {
            let _ = self.epoll.delete(&held);
        }
        if process.is_dead {
            self.free(id);
        }
    }

    /// Forgets a process and takes its slot back.
    fn free(&mut self, id: u64) {
        let Some(dead) = self.running.remove(&id) else { return };
        let group = self.homes.get_mut(&dead.home).and_then(|home| home.group.as_mut());
        if let (Some(group), Some(slot)) = (group, dead.slot) {
            group.give_back(slot);
            self.removals |= group.retry_removals() > 0;
        }
    }

    fn suspect(&mut self, id: u64) {
        if let Some(event) = self.running.get(&id).and_then(|r| r.slot.as_ref()).and_then(Slot::oom_event) {
            let _ = crate::sys::descriptor::read(event.as_raw_fd(), &mut [0; 8]);
            self.suspects.push((id, Instant::now() + OOM_PATIENCE));
        }
    }

    /// cgroup v1 kills one process of a group that ran out of memory; the rest follows here.
    fn look_for_kills(&mut self) {
        let running = &self.running;
        let now = Instant::now();
        self.suspects.retain(|(id, until)| {
            let Some(process) = running.get(id) else { return false };
            if process.slot.as_ref().is_some_and(|slot| slot.gauges().oom_kills() > 0) {
                let _ = pidfd_signal(process.pidfd.as_fd(), libc::SIGKILL);
                return false;
            }
            now < *until
        });
    }

    fn end_all(&mut self) {
        self.end(None);
    }

    /// Kills every process of one cell (or of all), waits for them, and removes the cgroups.
    fn end(&mut self, only: Option<u32>) {
        let chosen = |home: u32| only.is_none_or(|cell| cell == home);
        let doomed: Vec<u64> = self.running.iter().filter(|(_, r)| chosen(r.home)).map(|(id, _)| *id).collect();
        for id in &doomed {
            let _ = pidfd_signal(self.running[id].pidfd.as_fd(), libc::SIGKILL);
        }
        for id in doomed {
            self.bury(id);
            self.free(id);
        }
        self.homes.retain(|cell, home| {
            if chosen(*cell) {
                home.group.iter_mut().for_each(CellGroup::remove);
            }
            !chosen(*cell)
        });
    }
}

fn make_home(number: u32, plan: &CellPlan, spare: Option<Maker>) -> Result<Home> {
    let group = || plan.groups.as_ref().map(|groups| make_group(number, groups)).transpose();
    let (cell, group) = cell::make(plan, spare, group);
    match (cell, group.unwrap_or(Ok(None))) {
        (Ok(cell), Ok(group)) => Ok(Home { cell, group }),
        (Ok(_), Err(fault)) => Err(fault),
        (Err(fault), group) => {
            group.ok().flatten().iter_mut().for_each(CellGroup::remove);
            Err(fault)
        }
    }
}

fn make_group(number: u32, plan: &GroupPlan) -> Result<CellGroup> {
    let limits = GroupLimits { memory: plan.memory, cpus: plan.cpus, processes: plan.processes, spare: SPARE_TASKS };
    let broker = nix::unistd::getppid().as_raw() as u32;
    let make = || {
        let mut layout = plan.layout.clone();
        cgroup::prepare(&mut layout, &[broker, std::process::id()])?;
        cgroup::sweep(&layout);
        let mut group = CellGroup::create(&layout, broker, &number.to_string(), &limits)?;
        // The first process will want one at once.
        if let Ok(slot) = group.take_slot() {
            group.give_back(slot);
        }
        Ok(group)
    };
    make().map_err(|error: cgroup::GroupError| {
        let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<std::io::Error>());
        let errno = source.and_then(std::io::Error::raw_os_error).unwrap_or(libc::EIO);
        Fault { step: Stage::Group, errno, at: error.to_string() }
    })
}

fn write_score(file: &mut Option<File>, score: &[u8]) {
    if let Some(file) = file {
        let _ = file.write_all(score);
    }
}
