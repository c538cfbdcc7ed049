//! How runs end, seen from outside: results as JSON, events with a deadline, and what is left behind.

use crate::support::{Outcome, Yard};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// What must be gone is gone this soon.
pub const SOON: Duration = Duration::from_secs(2);

/// A word that no other process on this machine has among its arguments.
pub fn marker() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("marker-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Waits for an event; the pause is only between two looks.
pub fn eventually(what: &str, within: Duration, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + within;
    while !holds() {
        assert!(Instant::now() < deadline, "not within {within:?}: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Host PIDs of the processes with this word among their arguments, `stockade` itself left out. A zombie has no arguments.
pub fn processes_with(marker: &str) -> Vec<u32> {
    let of_process = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let all = fs::read_dir("/proc").expect("/proc").flatten().filter_map(of_process);
    all.filter(|pid| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let program = words.split(|byte| *byte == 0).next().unwrap_or_default();
        !program.ends_with(b"/stockade") && words.windows(marker.len()).any(|part| part == marker.as_bytes())
    })
    .collect()
}

/// Host PIDs of the children of a process, zombies too.
pub fn children_of(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// Whether a process is there and not a zombie.
pub fn is_alive(pid: u32) -> bool {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    text.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// The cgroups that cells of the broker with this PID have.
pub fn groups_of(pid: u32) -> Vec<PathBuf> {
    let mut found = Vec::new();
    search(Path::new("/sys/fs/cgroup"), 8, &format!(".{pid}."), &mut found);
    found
}

fn search(directory: &Path, depth: u32, broker: &str, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("stockade.") && name.contains(broker) {
            found.push(entry.path());
        } else if depth > 0 {
            search(&entry.path(), depth - 1, broker, found);
        }
    }
}

/// Mounts of this directory in our own mount namespace.
pub fn mounts_of(directory: &Path) -> Vec<String> {
    let name = directory.file_name().expect("a name").to_string_lossy().into_owned();
    let all = fs::read_to_string("/proc/self/mountinfo").expect("mountinfo");
    all.lines().filter(|line| line.contains(&name)).map(str::to_owned).collect()
}

/// Waits until nothing of a run is left: no process, no cgroup, no mount.
pub fn nothing_is_left(yard: &Yard, broker: u32, marker: &str) {
    let left = || (processes_with(marker), groups_of(broker), mounts_of(yard.workspace.path()));
    let deadline = Instant::now() + SOON;
    while left() != (vec![], vec![], vec![]) {
        assert!(Instant::now() < deadline, "left behind by {broker}: {:?}", left());
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits for a child with a deadline, and kills it when that passes.
pub fn wait_for(child: &mut Child, within: Duration) -> ExitStatus {
    let deadline = Instant::now() + within;
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return status;
        }
        if Instant::now() >= deadline {
            drop(child.kill());
            panic!("stockade did not end within {within:?}");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The result of `run --json`, and the exit code beside it.
pub fn json(yard: &Yard, argv: &[&str]) -> (i32, Value) {
    let output = yard.command().arg("--json").arg("--").args(argv).output().expect("stockade starts");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let value = serde_json::from_str(&text);
    let value = value.unwrap_or_else(|_| panic!("no JSON: {text:?} {}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code().expect("stockade exits"), value)
}

/// The number that the probe printed after this word.
pub fn printed(text: &str, word: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
    line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no `{word}` in {text:?}"))
}

/// Runs the probe and returns everything.
pub fn probe(yard: &Yard, words: &[&str]) -> Outcome {
    let path = yard.probe_path();
    let argv: Vec<&str> = [path.as_str()].into_iter().chain(words.iter().copied()).collect();
    yard.run(&argv)
}
