//! The walls a process puts around itself, in the one order that is safe.
//!
//! Each stage consumes the one before it, so a wrong order does not compile; the last one, [`Sealed`],
//! is the only one that can run anything. Child-safe throughout: no allocation, no lock, no string.

use super::cell::Cell;
use super::proc;
use crate::plan::cell::SupplementaryGroups;
use crate::sys::{Errno, descriptor, identity, landlock, process, seccomp};
use crate::wire::Stage;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

pub type Step<T> = Result<T, (Stage, Errno)>;

trait During<T> {
    fn during(self, stage: Stage) -> Step<T>;
}

impl<T> During<T> for Result<T, Errno> {
    fn during(self, stage: Stage) -> Step<T> {
        self.map_err(|errno| (stage, errno))
    }
}

/// In its cgroups, still with the launcher's rights. Proves that whatever is made next is limited.
#[derive(Debug)]
pub struct Grouped(());

/// In the cell's shared namespaces, with every capability there and none outside.
#[derive(Debug)]
pub struct Joined(());

/// PID 1 of its own PID namespace, in its own copy of the cell's mounts.
#[derive(Debug)]
pub struct Alone(());

/// Under the cell's tree with a `/proc` of its own, which it holds to grant it to itself.
#[derive(Debug)]
pub struct Rooted(OwnedFd);

/// Under rlimits.
#[derive(Debug)]
pub struct Limited(OwnedFd);

/// Nobody special: the agent's ids, no capability, no way to get one.
#[derive(Debug)]
pub struct Powerless(OwnedFd);

/// Under Landlock.
#[derive(Debug)]
pub struct Confined(());

/// Holding nothing but the two descriptors it needs.
#[derive(Debug)]
pub struct Bare(());

/// Every wall is up. Proof that untrusted code may run.
#[derive(Debug)]
pub struct Sealed(());

/// The numbers under which a sealed process holds its two sockets.
pub const LEASH: RawFd = 3;
pub const DOOR: RawFd = 4;

impl Grouped {
    /// On cgroup v1 by writing to descriptors opened beforehand; on v2 the clone itself did it.
    pub fn enter(tasks: &[OwnedFd]) -> Step<Self> {
        for group in tasks {
            descriptor::write(group.as_raw_fd(), b"0").during(Stage::EnterGroup)?;
        }
        Ok(Grouped(()))
    }

    pub fn join(self, cell: &Cell) -> Step<Joined> {
        for namespace in &cell.namespaces {
            process::setns(namespace.as_fd()).during(Stage::JoinCell)?;
        }
        // Joining leads to whatever lies topmost at the namespace's root; that must be the tree that was built.
        let found = nix::sys::stat::stat(c"/").during(Stage::JoinCell)?;
        if (found.st_dev, found.st_ino) != cell.root {
            return Err((Stage::JoinCell, Errno::EXDEV));
        }
        Ok(Joined(()))
    }
}

impl Joined {
    /// To be called on the child's side of the clone that made the new PID, mount and cgroup namespaces.
    pub fn alone(self) -> Alone {
        Alone(())
    }
}

impl Alone {
    pub fn mount_proc(self, cell: &Cell) -> Step<Rooted> {
        let proc = proc::replace_proc(&cell.proc_masks)?;
        cell.hidden.cover_again().during(Stage::CoverHidden)?;
        Ok(Rooted(proc))
    }
}

impl Rooted {
    pub fn limit(self, cell: &Cell) -> Step<Limited> {
        // The one on descriptors waits until the launcher's are closed: they may be more than the agent gets.
        for rlimit in cell.rlimits.iter().filter(|rlimit| rlimit.resource != libc::RLIMIT_NOFILE) {
            process::limit(rlimit.resource, rlimit.value).during(Stage::Rlimit)?;
        }
        Ok(Limited(self.0))
    }
}

impl Limited {
    pub fn drop_privileges(self, cell: &Cell) -> Step<Powerless> {
        let ids = &cell.identity;
        if ids.groups == SupplementaryGroups::Dropped {
            identity::clear_groups().during(Stage::Identity)?;
        }
        identity::set_group(ids.inner_gid).during(Stage::Identity)?;
        identity::set_user(ids.inner_uid).during(Stage::Identity)?;
        identity::drop_bounding().during(Stage::Capabilities)?;
        identity::drop_capabilities().during(Stage::Capabilities)?;
        process::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0).during(Stage::NoNewPrivileges)?;
        // After the change of ids, which clears it: PID 1 dies with the launcher (prctl(2)).
        process::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as u64, 0).during(Stage::NoNewPrivileges)?;
        // Nothing the cell runs may look into PID 1, which is a copy of the launcher.
        process::prctl(libc::PR_SET_DUMPABLE, 0, 0).during(Stage::NoNewPrivileges)?;
        Ok(Powerless(self.0))
    }
}

impl Powerless {
    pub fn seal_files(self, cell: &Cell) -> Step<Confined> {
        let Some(rules) = &cell.landlock else { return Ok(Confined(())) };
        let seal = || {
            let ruleset = landlock::create_ruleset(&rules.handled, rules.abi)?;
            for (path, access) in &rules.paths {
                landlock::allow_path(ruleset.as_fd(), path.as_fd(), *access)?;
            }
            landlock::allow_path(ruleset.as_fd(), self.0.as_fd(), rules.proc_access)?;
            for (port, access) in &rules.ports {
                landlock::allow_port(ruleset.as_fd(), *port, *access)?;
            }
            landlock::restrict_self(ruleset.as_fd())
        };
        seal().during(Stage::Landlock)?;
        Ok(Confined(()))
    }
}

impl Confined {
    /// Keeps the two sockets, at fixed numbers, closes everything else, and limits how many there may be.
    pub fn close_descriptors(self, cell: &Cell, leash: RawFd, door: RawFd) -> Step<Bare> {
        let close = || {
            let leash = descriptor::duplicate_above(leash, DOOR + 1)?;
            let door = descriptor::duplicate_above(door, DOOR + 1)?;
            descriptor::duplicate_onto(leash, LEASH, libc::O_CLOEXEC)?;
            descriptor::duplicate_onto(door, DOOR, libc::O_CLOEXEC)?;
            descriptor::close_range(0, LEASH as u32 - 1)?;
            descriptor::close_range(DOOR as u32 + 1, u32::MAX)
        };
        close().during(Stage::Descriptors)?;
        for rlimit in cell.rlimits.iter().filter(|rlimit| rlimit.resource == libc::RLIMIT_NOFILE) {
            process::limit(rlimit.resource, rlimit.value).during(Stage::Rlimit)?;
        }
        Ok(Bare(()))
    }
}

impl Bare {
    pub fn seal_syscalls(self, cell: &Cell) -> Step<Sealed> {
        if let Some(filter) = &cell.filter {
            seccomp::install(filter).during(Stage::Seccomp)?;
        }
        Ok(Sealed(()))
    }
}
