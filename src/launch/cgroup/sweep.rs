//! Leftovers of brokers that died without cleaning up, told apart by name.
//!
//! `stockade.<pid namespace>.<pid>.<start time>.<cell>`: a PID alone could be somebody else's by
//! now, but with its start time it names one process of this boot, and cgroups do not outlive it.

use std::fs;
use std::io;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;

use super::{GroupError, remove_locations};
use crate::host::{Base, CgroupLayout};

/// Removes the groups of dead brokers and says how many directories went.
pub fn sweep(layout: &CgroupLayout) -> usize {
    let Ok(namespace) = pid_namespace() else { return 0 };
    let mut dead: Vec<PathBuf> = Vec::new();
    for entry in bases(layout).filter_map(|base| fs::read_dir(base).ok()).flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(Owner::parse);
        if owner.is_some_and(|owner| owner.namespace == namespace && !owner.is_alive()) {
            dead.push(entry.path());
        }
    }
    remove_locations(&dead);
    dead.iter().filter(|path| !path.exists()).count()
}

/// Where the groups of a cell will be, for a broker whose launcher may die before it can say. A scope's place is
/// not known beforehand; the service manager removes it.
pub fn future_locations(layout: &CgroupLayout, broker_pid: u32, cell: &str) -> Vec<PathBuf> {
    let Ok(owner) = Owner::of(broker_pid) else { return Vec::new() };
    bases(layout).map(|base| base.join(owner.group_name(cell))).collect()
}

fn bases(layout: &CgroupLayout) -> impl Iterator<Item = &PathBuf> {
    layout.hierarchies.iter().filter_map(|hierarchy| match &hierarchy.base {
        Base::Ready { path } | Base::Enable { path } | Base::Settle { path } => Some(path),
        Base::Scope { .. } | Base::Closed { .. } => None,
    })
}

/// The broker that a group belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    namespace: u64,
    pid: u32,
    /// In clock ticks since boot: field 22 of `/proc/<pid>/stat`.
    start: u64,
}

impl Owner {
    pub(super) fn of(pid: u32) -> Result<Owner, GroupError> {
        let path = PathBuf::from(format!("/proc/{pid}/stat"));
        let start = Stat::read(pid).map_err(|source| GroupError::at(&path, source))?.start;
        let namespace = pid_namespace().map_err(|source| GroupError::at(&path, source))?;
        Ok(Owner { namespace, pid, start })
    }

    pub(super) fn group_name(&self, cell: &str) -> String {
        format!("stockade.{}.{}.{}.{cell}", self.namespace, self.pid, self.start)
    }

    fn parse(name: &str) -> Option<Owner> {
        let mut parts = name.strip_prefix("stockade.")?.splitn(4, '.');
        let mut number = || parts.next()?.parse::<u64>().ok();
        let owner = Owner { namespace: number()?, pid: u32::try_from(number()?).ok()?, start: number()? };
        parts.next().is_some_and(|cell| !cell.is_empty()).then_some(owner)
    }

    /// In doubt, alive: with `hidepid` another user's `/proc/<pid>` is hidden, but a signal 0
    /// still tells that the process is there.
    fn is_alive(&self) -> bool {
        let Some(pid) = i32::try_from(self.pid).ok().filter(|&pid| pid > 0) else { return false };
        if kill(Pid::from_raw(pid), None) == Err(Errno::ESRCH) {
            return false;
        }
        let Ok(stat) = Stat::read(self.pid) else { return true };
        stat.start == self.start && !stat.is_zombie
    }
}

/// The fields of `/proc/<pid>/stat` that matter here; see proc_pid_stat(5).
struct Stat {
    start: u64,
    /// Dead, but not yet reaped: a broker's parent may be slow, or never come.
    is_zombie: bool,
}

impl Stat {
    fn read(pid: u32) -> io::Result<Stat> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        Stat::parse(&text).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn parse(text: &str) -> Option<Stat> {
        // The second field is a name in parentheses that may hold anything; count from its end.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let threads: u64 = fields.get(17)?.parse().ok()?;
        // A main thread that ended before the others is shown as a zombie too.
        let is_zombie = matches!(*fields.first()?, "Z" | "X") && threads <= 1;
        Some(Stat { start: fields.get(19)?.parse().ok()?, is_zombie })
    }
}

fn pid_namespace() -> io::Result<u64> {
    let link = fs::read_link("/proc/self/ns/pid")?;
    let inode = link.to_str().and_then(|text| text.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok());
    inode.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_names_its_owner() {
        let owner = Owner { namespace: 4026531836, pid: 77, start: 1234 };
        let name = owner.group_name("a.b-c");
        assert_eq!(name, "stockade.4026531836.77.1234.a.b-c");
        assert_eq!(Owner::parse(&name), Some(owner));
        for other in ["stockade-1000", "stockade.1.2.3", "stockade.1.2.3.", "stockade.x.2.3.c", "system.slice"] {
            assert_eq!(Owner::parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_zombie_is_dead_unless_its_threads_live() {
        let line = |state, threads| format!("7 (a) b) {state} 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 {threads} 0 555 0 0");
        for (state, threads, zombie) in [("S", 1, false), ("Z", 1, true), ("Z", 3, false), ("X", 1, true)] {
            let stat = Stat::parse(&line(state, threads)).unwrap();
            assert_eq!((stat.start, stat.is_zombie), (555, zombie), "{state} {threads}");
        }
    }

    #[test]
    fn only_the_process_with_the_same_start_is_alive() {
        let me = Owner::of(std::process::id()).unwrap();
        assert!(me.is_alive());
        assert!(!Owner { start: me.start + 1, ..me.clone() }.is_alive());
        assert!(!Owner { pid: 0x7fff_fff0, ..me }.is_alive());
    }
}
