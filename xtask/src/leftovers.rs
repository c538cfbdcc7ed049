//! What a test run must not leave behind: cgroups, processes, mounts, files.
//!
//! Looked at before and after, because other things on a machine may carry our name too. A
//! dying cell is given a moment; what is still there after it is a failure.

use crate::identity::{Identity, Who, cgroup_mounts};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long the kernel may take to tear a cell down.
const GRACE: Duration = Duration::from_secs(2);

/// The places where a careless program leaves files.
const SHARED_PLACES: &[&str] = &["/tmp", "/var/tmp", "/dev/shm", "/run"];

/// What was there before the run.
pub struct Before {
    stage: PathBuf,
    seen: BTreeSet<String>,
}

impl Before {
    pub fn look(stage: &Path, identity: &Identity) -> Before {
        let stage = stage.to_path_buf();
        let seen = look(&stage, identity);
        Before { stage, seen }
    }

    /// What is there now and was not before, one line each.
    pub fn left_behind(&self, identity: &Identity) -> Vec<String> {
        let deadline = Instant::now() + GRACE;
        loop {
            let now = look(&self.stage, identity);
            let new: Vec<_> = now.difference(&self.seen).cloned().collect();
            if new.is_empty() || Instant::now() > deadline {
                return new;
            }
            sleep(Duration::from_millis(100));
        }
    }
}

fn look(stage: &Path, identity: &Identity) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for mount in cgroup_mounts().unwrap_or_default() {
        cgroups(&mount.path, &mut found);
    }
    processes(stage, identity, &mut found);
    mounts(&mut found);
    files(stage, identity, &mut found);
    found
}

fn cgroups(dir: &Path, found: &mut BTreeSet<String>) {
    for entry in entries(dir).filter(|path| path.is_dir()) {
        if entry.to_string_lossy().contains("stockade") {
            found.insert(format!("cgroup {}", entry.display()));
        }
        cgroups(&entry, found);
    }
}

/// Processes of the test account, and any that run a staged program.
fn processes(stage: &Path, identity: &Identity, found: &mut BTreeSet<String>) {
    for dir in entries(Path::new("/proc")) {
        let Some(pid) = number(&dir) else { continue };
        let Ok(status) = fs::read_to_string(dir.join("status")) else {
            continue;
        };
        let field = |key: &str| {
            let mut lines = status.lines();
            let rest = lines.find_map(|line| line.strip_prefix(key))?;
            rest.split_whitespace().next()
        };
        let is_account = identity.who == Who::User
            && identity.uid.to_string() == field("Uid:").unwrap_or_default();
        let is_staged = fs::read_link(dir.join("exe")).is_ok_and(|exe| exe.starts_with(stage));
        // Started by the account itself, everything the person runs would be found here.
        let counts = is_staged || is_account && !identity.delegated().is_empty();
        if counts && field("State:") != Some("Z") {
            let name = field("Name:").unwrap_or("?");
            found.insert(format!("process {pid} ({name})"));
        }
    }
}

fn mounts(found: &mut BTreeSet<String>) {
    let table = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    for line in table.lines().filter(|line| line.contains("stockade")) {
        found.insert(format!("mount {line}"));
    }
}

fn files(stage: &Path, identity: &Identity, found: &mut BTreeSet<String>) {
    let temporary = stage.join(identity.who.to_string()).join("tmp");
    for path in entries(&temporary) {
        found.insert(format!("file {}", path.display()));
    }
    for path in SHARED_PLACES.iter().flat_map(|dir| entries(Path::new(dir))) {
        let named = path.to_string_lossy().contains("stockade");
        let owned = !identity.delegated().is_empty()
            && fs::symlink_metadata(&path).is_ok_and(|meta| meta.uid() == identity.uid);
        if named || owned {
            found.insert(format!("file {}", path.display()));
        }
    }
}

fn entries(dir: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

fn number(path: &Path) -> Option<u32> {
    path.file_name()?.to_str()?.parse().ok()
}
