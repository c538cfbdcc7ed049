//! Taking groups away: one empty slot by name, or whole cells with whatever still lives in them.
//!
//! [`remove_locations`] needs nothing but paths, so that the broker can do it when the launcher
//! was killed. It first takes away the right to fork, so that one round of SIGKILL is enough even
//! for a fork bomb, and thaws, because a frozen v1 task dies only when it runs again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, UnlinkatFlags, unlinkat};

use super::Leg;
use super::slot::SlotName;

/// Dying takes milliseconds; a group that holds out longer is left to the next sweep.
const PATIENCE: Duration = Duration::from_secs(1);

/// Below a cell there are only slots; deeper groups are not ours, and are removed a few levels down.
const DEPTH: u32 = 4;

/// Whether the slot is gone from every hierarchy.
pub(super) fn remove_slot(legs: &[Leg], name: SlotName) -> bool {
    let mut gone = true;
    for leg in legs.iter().filter(|leg| leg.has_slots()) {
        let result = unlinkat(&leg.dir, name.dir().as_str(), UnlinkatFlags::RemoveDir);
        gone &= matches!(result, Ok(()) | Err(Errno::ENOENT));
    }
    gone
}

/// Kills everything in these groups and removes them; gives up after a second.
pub fn remove_locations(locations: &[PathBuf]) {
    let deadline = Instant::now() + PATIENCE;
    let mut pause = Duration::from_micros(500);
    let mut left: Vec<&PathBuf> = locations.iter().collect();
    loop {
        left.retain(|location| !remove_tree(location, DEPTH));
        if left.is_empty() || Instant::now() >= deadline {
            return;
        }
        for location in &left {
            kill_tree(location);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Whether the group and all groups below it are gone.
fn remove_tree(group: &Path, depth: u32) -> bool {
    if depth > 0 {
        for child in children(group) {
            remove_tree(&child, depth - 1);
        }
    }
    match fs::remove_dir(group) {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

fn kill_tree(group: &Path) {
    let _ = write_existing(&group.join("pids.max"), "0");
    if write_existing(&group.join("cgroup.kill"), "1").is_ok() {
        return;
    }
    kill_each(group, DEPTH);
}

fn kill_each(group: &Path, depth: u32) {
    let _ = write_existing(&group.join("cgroup.freeze"), "0");
    let _ = write_existing(&group.join("freezer.state"), "THAWED");
    let listed = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    for pid in listed.lines().filter_map(|line| line.parse().ok()) {
        // 0 is a process of another PID namespace: to kill it would be to kill our own group.
        if pid > 1 && pid != Pid::this().as_raw() {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
    if depth > 0 {
        for child in children(group) {
            kill_each(&child, depth - 1);
        }
    }
}

/// Never creates: a mistaken path must stay without effect.
fn write_existing(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write;
    fs::OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}

fn children(group: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(group) else { return Vec::new() };
    let directories = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    directories.map(|entry| entry.path()).collect()
}
