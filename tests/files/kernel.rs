//! `/proc` and `/sys`: a view of the cell's own processes and of nothing of the host that tells.

use crate::support::{Yard, is_root};
use libc::{EACCES, EINVAL, ENODATA, ENOENT, EPERM, EROFS, ETXTBSY};
use std::path::Path;
use std::process::{Command, Stdio};

/// PR-04: what is covered where the host has it. Fixed, and the same as in `tests/ATTACKS.md`.
const MASKED_FILES: &[&str] = &[
    "config.gz",
    "interrupts",
    "ioports",
    "iomem",
    "kallsyms",
    "key-users",
    "keys",
    "latency_stats",
    "sched_debug",
    "timer_stats",
];
const MASKED_DIRECTORIES: &[&str] = &["acpi", "asound", "scsi"];
/// Readable by the host's root only, which no agent is.
const ROOTS_OWN: &[&str] = &[
    "kcore",
    "kmsg",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "pagetypeinfo",
    "slabinfo",
    "timer_list",
    "vmallocinfo",
];

/// PR-01, PR-09.
#[test]
fn only_the_cells_own_processes_are_in_proc() {
    let mut canary = Command::new("sleep").arg("987654").stdin(Stdio::null()).spawn().expect("a host process");
    let yard = Yard::away("");
    let line =
        "ls /proc | grep -E '^[0-9]+$' | wc -l; cat /proc/[0-9]*/cmdline | tr '\\0' '\\n'; cat /proc/[0-9]*/comm";
    let seen = yard.shell(line).stdout;
    let count: u32 = seen.lines().next().expect("a number").parse().expect("a number");
    assert!((2..=6).contains(&count), "PID 1, the shell and its pipeline, not {count}");
    assert!(!seen.contains("987654") && !seen.contains("kworker") && !seen.contains("kthreadd"), "{seen}");
    assert!(!seen.contains("policy.toml"), "PID 1 does not tell how stockade was started: {seen}");
    let outside = std::fs::read_to_string(format!("/proc/{}/cmdline", canary.id())).expect("control: it is there");
    assert!(outside.contains("987654"));
    canary.kill().expect("our own child");
    canary.wait().expect("our own child");
}

/// PR-04, PR-05.
#[test]
fn files_of_the_kernel_are_masked() {
    let yard = Yard::away("");
    let there = |name: &str| Path::new("/proc").join(name).symlink_metadata().is_ok();
    let mut cases = Vec::new();
    for name in MASKED_FILES {
        cases.push((format!("read-something /proc/{name}"), if there(name) { ENODATA } else { ENOENT }));
    }
    for name in MASKED_DIRECTORIES {
        cases.push((format!("list-something /proc/{name}"), if there(name) { ENODATA } else { ENOENT }));
    }
    for name in ROOTS_OWN {
        cases.push((format!("read-something /proc/{name}"), if there(name) { EACCES } else { ENOENT }));
    }
    yard.inside(&cases.iter().map(|(attempt, errno)| (attempt.as_str(), *errno)).collect::<Vec<_>>());
    let controls = ["kallsyms", "keys", "interrupts"].into_iter().filter(|name| there(name) && *name != "keys");
    let controls: Vec<String> = controls.map(|name| format!("read-something /proc/{name}")).collect();
    assert!(!controls.is_empty(), "control: the host has some of them");
    yard.outside(&controls.iter().map(|case| (case.as_str(), 0)).collect::<Vec<_>>());
    yard.inside(&[("read-something /proc/self/status", 0), ("read-something /proc/meminfo", 0)]);
}

/// PR-13.
#[test]
fn there_is_no_sysfs() {
    let yard = Yard::away("");
    yard.denied(&[
        ("stat /sys", ENOENT),
        ("list /sys/class/net", ENOENT),
        ("list /sys/kernel", ENOENT),
        ("list /sys/fs/cgroup", ENOENT),
        ("list /sys/devices/virtual", ENOENT),
    ]);
}

/// PR-07, PR-14 and `/proc/sys`: nothing in `/proc` can be written, whoever the host takes the agent for.
#[test]
fn proc_is_read_only() {
    let yard = Yard::away("");
    let own = ["oom_score_adj", "timerslack_ns", "coredump_filter", "comm"];
    let cases = own.map(|name| format!("write /proc/self/{name}"));
    yard.denied(&cases.each_ref().map(|case| (case.as_str(), EROFS)));
    yard.inside(&[
        ("write /proc/self/loginuid", EROFS),
        ("write /proc/self/clear_refs", EROFS),
        ("write /proc/self/uid_map", EROFS),
        ("write /proc/sys/kernel/core_pattern", EACCES),
        ("write /proc/sys/kernel/hostname", EACCES),
        ("write /proc/sys/user/max_user_namespaces", EACCES),
        ("read /proc/sys/kernel/ostype", 0),
    ]);
    yard.outside(&[("write /proc/sys/kernel/core_pattern", if is_root() { 0 } else { EACCES })]);
    // Permissions let the host's own root in; then only the mount is left.
    let root = Yard::away("[identity]\nhost_user = \"root\"");
    let sealed = if is_root() { EROFS } else { EACCES };
    root.inside(&[("write /proc/sys/kernel/core_pattern", sealed), ("write /proc/sys/vm/drop_caches", sealed)]);
}

/// PR-07.
#[test]
fn the_program_of_pid_1_cannot_be_reached() {
    let yard = Yard::away("[filesystem]\nread_only_roots = [\"{beside}/data\"]");
    yard.beside.file("data/file", "text");
    yard.inside(&[
        ("append /proc/1/exe", EACCES),
        ("read /proc/1/exe", EACCES),
        ("readlink /proc/1/exe", EACCES),
        ("read /proc/1/environ", EACCES),
        ("read /proc/1/mem", EACCES),
        ("list /proc/1/fd", EACCES),
        ("list /proc/1/map_files", EACCES),
        ("read /proc/1/maps", EACCES),
        ("append /proc/self/exe", ETXTBSY),
        ("append-held /usr/bin/env", EACCES),
        ("append-held {b}/data/file", EROFS),
        ("read /proc/self/exe", 0),
        ("read /proc/self/environ", 0),
    ]);
    // While it runs a program cannot be written; held open for later, only the mount is in the way.
    yard.outside(&[("append /proc/self/exe", ETXTBSY), ("append-held {b}/data/file", 0)]);
}

/// PR-08.
#[test]
fn hostname_and_cgroup_are_the_cells_own() {
    let yard = Yard::away("");
    let seen = yard.shell("cat /proc/sys/kernel/hostname; cut -d: -f3 /proc/self/cgroup | sort -u").stdout;
    assert_eq!(seen, "stockade\n/\n");
    let host = nix::unistd::gethostname().expect("a name").to_string_lossy().into_owned();
    assert_ne!(host, "stockade", "control");
}

/// PR-10, PR-11.
#[test]
fn masks_can_be_neither_lifted_nor_walked_around() {
    let yard = Yard::away("");
    yard.workspace.directory("proc");
    let table = yard.run(&["/bin/cat", "/proc/self/mountinfo"]).stdout;
    let masks: Vec<&str> = table.lines().filter_map(|line| line.split(' ').nth(4)).collect();
    assert!(masks.iter().filter(|mask| mask.starts_with("/proc/")).count() > 5, "control: there are masks");
    let cases: Vec<String> = masks.iter().map(|mask| format!("uncover {mask}")).collect();
    yard.inside(&cases.iter().map(|case| (case.as_str(), EPERM)).collect::<Vec<_>>());
    yard.inside(&[("mount-proc {w}/proc", EPERM), ("new-proc {w}/proc", EPERM)]);
    yard.outside(&[("new-proc {w}/proc", 0), ("uncover {w}/proc", if is_root() { EINVAL } else { EPERM })]);
}

/// PR-12.
#[test]
fn the_number_of_mounts_stays_the_same() {
    let host = || std::fs::read_to_string("/proc/self/mountinfo").expect("the host's mounts").lines().count();
    let yard = Yard::away("");
    let count = || yard.shell("wc -l < /proc/self/mountinfo; wc -c < /proc/self/mountinfo").stdout;
    let (before, first) = (host(), count());
    assert!((0..10).all(|_| count().lines().next() == first.lines().next()));
    assert_eq!(host(), before);
    let twice = yard.shell("wc -l < /proc/self/mountinfo; sh -c 'wc -l < /proc/self/mountinfo'").stdout;
    let lines: Vec<&str> = twice.lines().collect();
    assert_eq!(lines[0], lines[1]);
}

/// Every mount of a cell is nosuid, private, and read-only or noexec where it should be.
#[test]
fn every_mount_has_its_flags() {
    let yard = Yard::away("[filesystem]\nread_only_roots = [\"{beside}/data\"]");
    yard.beside.directory("data");
    let table = yard.run(&["/bin/cat", "/proc/self/mountinfo"]).stdout;
    let writable = [&yard.fill("{w}"), "/tmp", "/var/tmp", "/home/agent", "/dev/shm"].map(str::to_owned);
    for line in table.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let (at, flags) = (words[4], words[5].split(',').collect::<Vec<_>>());
        assert!(flags.contains(&"nosuid"), "{line}");
        assert_eq!(words[6], "-", "shared with nobody: {line}");
        let device = at.starts_with("/dev/") && at != "/dev/shm";
        // A masked file of `/proc` is `/dev/null`.
        let mask = at.starts_with("/proc/");
        assert!(flags.contains(&"nodev") || device || mask, "{line}");
        assert!(flags.contains(&"ro") || device || mask || writable.iter().any(|own| own == at), "{line}");
        let runs = at.starts_with("/usr")
            || at.starts_with("/etc")
            || at == yard.fill("{b}/data")
            || at == yard.fill("{b}/probe");
        assert!(
            flags.contains(&"noexec")
                || runs
                || writable.iter().any(|own| own == at)
                || at.starts_with("/lib")
                || at.starts_with("/bin"),
            "{line}"
        );
    }
}
