//! No new namespace can be made and none joined (NS).

use crate::controls::Outside::{IfKnown, NotTried, Works, WorksWithin};
use crate::controls::{Case, check};
use crate::support::Yard;
use libc::{ENOSYS, EPERM};
use std::collections::BTreeMap;
use std::process::Command;

const KINDS: [&str; 7] = ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"];

fn links_inside(yard: &Yard) -> BTreeMap<&'static str, String> {
    let script = "for kind in \"$@\"; do readlink /proc/self/ns/$kind; done";
    let argv: Vec<&str> = ["/bin/bash", "-c", script, "-"].into_iter().chain(KINDS).collect();
    let outcome = yard.run(&argv);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    KINDS.into_iter().zip(outcome.stdout.lines().map(str::to_owned)).collect()
}

fn links_outside() -> BTreeMap<&'static str, String> {
    let link = |kind| std::fs::read_link(format!("/proc/self/ns/{kind}")).expect("a namespace").display().to_string();
    KINDS.into_iter().map(|kind| (kind, link(kind))).collect()
}

#[test]
fn every_namespace_of_a_cell_is_its_own() {
    let (inside, outside) = (links_inside(&Yard::new()), links_outside());
    let shared: Vec<_> = KINDS.into_iter().filter(|kind| inside[kind] == outside[kind]).collect();
    assert_eq!(shared, [""; 0], "{inside:?}");
}

#[test]
fn only_the_network_is_shared_where_the_policy_says_host() {
    let (inside, outside) = (links_inside(&Yard::with("[network]\nmode = \"host\"")), links_outside());
    let shared: Vec<_> = KINDS.into_iter().filter(|kind| inside[kind] == outside[kind]).collect();
    assert_eq!(shared, ["net"], "{inside:?}");
}

const MAKING: &[Case<'_>] = &[
    ("NS-02", "call unshare 0x10000000", EPERM, Works),
    ("NS-02 mount", "call unshare 0x20000", EPERM, WorksWithin),
    ("NS-02 pid", "call unshare 0x20000000", EPERM, WorksWithin),
    ("NS-02 net", "call unshare 0x40000000", EPERM, WorksWithin),
    ("NS-02 ipc", "call unshare 0x8000000", EPERM, WorksWithin),
    ("NS-02 uts", "call unshare 0x4000000", EPERM, WorksWithin),
    ("NS-02 cgroup", "call unshare 0x2000000", EPERM, WorksWithin),
    ("NS-10 time", "call unshare 0x80", EPERM, WorksWithin),
    ("NS-03 user", "clone3 0x10000000", ENOSYS, Works),
    ("NS-03 plain", "clone3 0", ENOSYS, Works),
    ("NS-04 user", "clone 0x10000000", EPERM, Works),
    ("NS-04 high bits", "clone 0xdead10000000", EPERM, Works),
    ("NS-04 mount, high bits", "clone 0xdead00020000", EPERM, WorksWithin),
    ("NS-09 like vfork", "clone 0x10004000", EPERM, Works),
    ("NS-09 i386 clone", "int80 120 0x10000011", ENOSYS, IfKnown),
    ("NS-09 x32 unshare", "call 0x40000110 0x10000000", ENOSYS, IfKnown),
    ("NS-09 io_uring", "call io_uring_setup 1 @120", ENOSYS, Works),
    // The cgroup to be born into is named behind clone3's pointer; without clone3 there is no way to say it.
    ("NS-10 into a cgroup", "clone3 0x200000000", ENOSYS, NotTried),
];

#[test]
fn no_namespace_can_be_made() {
    check(&Yard::new(), MAKING);
}

#[test]
fn plain_processes_and_threads_can_be_made() {
    check(&Yard::new(), &[("NS-04 control", "clone 0", 0, Works), ("NS-04 vfork", "clone 0x4000", 0, Works)]);
}

#[test]
fn no_namespace_can_be_joined_or_climbed_out_of() {
    check(
        &Yard::new(),
        &[
            ("NS-06 own", "call setns </proc/self/ns/uts 0", EPERM, WorksWithin),
            ("NS-06 any kind", "call setns </proc/self/ns/net 0x40000000", EPERM, WorksWithin),
            ("NS-07 owner", "call ioctl </proc/self/ns/net 0xb701 0", EPERM, WorksWithin),
            ("NS-07 parent", "call ioctl </proc/self/ns/user 0xb702 0", EPERM, IfKnown),
        ],
    );
}

#[test]
fn every_visible_namespace_refuses_to_be_joined() {
    let yard = Yard::new();
    let outcome = yard.run(&[&yard.probe_path(), "join-all"]);
    assert_eq!(outcome.code, 0, "one was joined: {outcome:?}");
    let answers: Vec<(&str, &str)> = outcome.stdout.lines().filter_map(|line| line.rsplit_once(' ')).collect();
    assert!(answers.len() >= KINDS.len(), "too few were tried: {outcome:?}");
    for (path, errno) in answers {
        assert_eq!(errno, EPERM.to_string(), "{path}");
    }
    // The control: where a namespace may be joined, the same attempt reports it by its exit code.
    let control = Command::new(yard.probe_path()).args(["within", "join-all"]).output().expect("the probe");
    assert_eq!(control.status.code(), Some(crate::UNPREPARED));
}

#[test]
fn the_unshare_program_gets_nowhere() {
    let (yard, line) = (Yard::new(), "unshare --user --map-root-user --mount sh -c 'echo in'");
    let inside = yard.shell(line);
    assert_eq!((inside.code, inside.stdout.as_str()), (1, ""), "{inside:?}");
    assert!(inside.stderr.contains("Operation not permitted"), "{inside:?}");
    let outside = Command::new("/bin/bash").args(["-c", line]).output().expect("bash");
    assert_eq!(outside.stdout, b"in\n", "{outside:?}");
}

/// A second wall behind the filter.
#[test]
fn the_kernel_counts_no_user_namespace_for_a_cell() {
    let file = "/proc/sys/user/max_user_namespaces";
    assert_eq!(Yard::new().run(&["/bin/cat", file]).stdout, "0\n");
    assert_ne!(std::fs::read_to_string(file).expect("a limit"), "0\n");
}

#[test]
fn no_cgroup_can_be_chosen_because_none_is_in_sight() {
    let line = "grep -c ' - cgroup2\\? ' /proc/self/mountinfo; ls /sys/fs/cgroup 2>&1";
    let outcome = Yard::new().shell(line);
    assert!(outcome.stdout.starts_with("0\n") && outcome.stdout.contains("No such file"), "{outcome:?}");
    let host = std::fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    assert!(host.contains(" - cgroup"), "the host shows none either");
}
