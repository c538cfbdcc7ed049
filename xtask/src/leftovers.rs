//! What a test run must not leave behind: cgroups, processes, mounts, files.
//!
//! Looked at before and after, because other things on a machine may carry our name too. A
//! dying cell is given a moment; what is still there after it is a failure.

use crate::identity::{Identity, Who, cgroup_mounts};
use crate::shell::run_quietly;
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long the kernel may take to tear a cell down.
const GRACE: Duration = Duration::from_secs(2);

/// The places where a careless program leaves files, and where agents of root have their state.
const SHARED_PLACES: &[&str] = &["/tmp", "/var/tmp", "/dev/shm", "/run", "/var/lib/stockade"];

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Leftover {
    Cgroup(PathBuf),
    Process { pid: u32, name: String },
    Mount(String),
    File(PathBuf),
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Leftover::Cgroup(path) => write!(f, "cgroup {}", path.display()),
            Leftover::Process { pid, name } => write!(f, "process {pid} ({name})"),
            Leftover::Mount(line) => write!(f, "mount {line}"),
            Leftover::File(path) => write!(f, "file {}", path.display()),
        }
    }
}

impl Leftover {
    /// Ends a process that outlived its test, so that what it holds can be removed.
    pub fn end(&self) {
        if let Leftover::Process { pid, .. } = self {
            let _ = run_quietly(Command::new("kill").args(["-KILL", &pid.to_string()]));
        }
    }
}

/// What was there before the run.
pub struct Before {
    stage: PathBuf,
    seen: BTreeSet<Leftover>,
}

impl Before {
    pub fn look(stage: &Path, identity: &Identity) -> Before {
        let stage = stage.to_path_buf();
        let seen = look(&stage, identity);
        Before { stage, seen }
    }

    /// What is there now and was not before, one line each.
    pub fn left_behind(&self, identity: &Identity) -> Vec<Leftover> {
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

fn look(stage: &Path, identity: &Identity) -> BTreeSet<Leftover> {
    let mut found = BTreeSet::new();
    for mount in cgroup_mounts().unwrap_or_default() {
        cgroups(&mount.path, &mut found);
    }
    processes(stage, identity, &mut found);
    mounts(&mut found);
    files(stage, identity, &mut found);
    found
}

fn cgroups(dir: &Path, found: &mut BTreeSet<Leftover>) {
    for entry in entries(dir).filter(|path| path.is_dir()) {
        let name = entry.file_name().unwrap_or_default().to_string_lossy();
        if has_living_owner(&name) {
            continue;
        }
        if entry.to_string_lossy().contains("stockade") {
            found.insert(Leftover::Cgroup(entry.clone()));
        }
        cgroups(&entry, found);
    }
}

/// A cell's group, `stockade.<pid namespace>.<broker pid>.<start>.<cell>`, is left behind only when its broker is gone.
fn has_living_owner(name: &str) -> bool {
    let mut parts = name.strip_prefix("stockade.").unwrap_or("").split('.');
    parts.nth(1).is_some_and(|pid| Path::new("/proc").join(pid).exists())
}

/// Whether a file's name carries the number of a process that lives: another run's, as ours have ended.
fn names_a_living_process(name: &str) -> bool {
    let mut numbers = name.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
    numbers.any(|pid| Path::new("/proc").join(pid).exists())
}

/// Processes of the test account, and any that come from the stage.
fn processes(stage: &Path, identity: &Identity, found: &mut BTreeSet<Leftover>) {
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
        let is_account = identity.who == Who::User && identity.uid.to_string() == field("Uid:").unwrap_or_default();
        let is_staged = runs_from(&dir, stage);
        // Started by the account itself, everything the person runs would be found here.
        let counts = is_staged || is_account && !identity.delegated().is_empty();
        if counts && field("State:") != Some("Z") {
            let name = field("Name:").unwrap_or("?").to_owned();
            found.insert(Leftover::Process { pid, name });
        }
    }
}

/// Whether a process runs a staged program, or got its environment from the round.
fn runs_from(dir: &Path, stage: &Path) -> bool {
    let environment = fs::read(dir.join("environ")).unwrap_or_default();
    let stage_name = stage.as_os_str().as_encoded_bytes();
    let mut windows = environment.windows(stage_name.len());
    windows.any(|window| window == stage_name) || fs::read_link(dir.join("exe")).is_ok_and(|exe| exe.starts_with(stage))
}

fn mounts(found: &mut BTreeSet<Leftover>) {
    let table = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    for line in table.lines().filter(|line| line.contains("stockade")) {
        found.insert(Leftover::Mount(line.to_owned()));
    }
}

fn files(stage: &Path, identity: &Identity, found: &mut BTreeSet<Leftover>) {
    let temporary = stage.join(identity.who.to_string()).join("tmp");
    for path in entries(&temporary) {
        found.insert(Leftover::File(path));
    }
    for path in SHARED_PLACES.iter().flat_map(|dir| entries(Path::new(dir))) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let named = name.contains("stockade") && !names_a_living_process(&name);
        let owned = !identity.delegated().is_empty()
            && fs::symlink_metadata(&path).is_ok_and(|meta| meta.uid() == identity.uid);
        if named || owned {
            found.insert(Leftover::File(path));
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
