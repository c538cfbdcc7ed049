//! The kernel's own surface: keyrings, rings, bpf, counters, foreign ABIs, and whatever else no program needs (KR, IU, BP, AB).

use crate::controls::Outside::{self, Differs, DiffersForRoot, IfKnown, NotTried, Works, WorksForRoot, WorksWithin};
use crate::controls::{Case, check, try_inside};
use crate::support::Yard;
use libc::{EINVAL, ENOSYS, EPERM};
use std::process::{Command, Stdio};

/// A map of one entry.
const MAP: &str = "call bpf 0 @72=02000000040000000400000001000000 72";
/// A software clock of this process, in user mode only.
const COUNTER: &str = "call perf_event_open @112=0100000070000000000000000000000000000000000000000000000000000000\
                       000000000000000060 0 -1 -1 0";
const RING: &str = "call io_uring_setup 1 @120";

const SURFACE: &[Case<'_>] = &[
    ("KR-01 add", "call add_key :user :stockade-test :x 1 -2", EPERM, Works),
    ("KR-01 session", "call keyctl 0 -3 0 0 0", EPERM, IfKnown),
    ("KR-01 search", "call keyctl 10 -3 :user :stockade-test 0", EPERM, Differs),
    ("KR-01 request", "call request_key :user :stockade-test 0 0", EPERM, Differs),
    ("IU-01", RING, ENOSYS, Works),
    ("IU-02 enter", "call io_uring_enter -1 0 0 0 0 0", ENOSYS, Differs),
    ("IU-02 register", "call io_uring_register -1 0 0 0", ENOSYS, Differs),
    ("BP-01", MAP, EPERM, WorksForRoot),
    ("BP-02", COUNTER, EPERM, Works),
    ("BP-03", "call userfaultfd 1", EPERM, Works),
    ("AB-02 getpid", "call 0x40000027", ENOSYS, IfKnown),
    ("AB-02 unshare", "call 0x40000110 0x10000000", ENOSYS, IfKnown),
    ("AB-02 execve", "call 0x40000208 0 0 0", ENOSYS, IfKnown),
    ("AB-03", "call 9999", ENOSYS, IfKnown),
    ("AB-06 listener", "listener", EPERM, Works),
    ("AB-06 strict mode", "call prctl 22 1 0 0 0", EINVAL, NotTried),
    ("AB-06 strict mode", "call seccomp 0 0 0", EINVAL, NotTried),
    ("PT-03 securebits", "call prctl 28 0 0 0 0", EPERM, WorksWithin),
    ("PT-03 bounding set", "call prctl 24 0 0 0 0", EPERM, WorksWithin),
    ("PT-03 memory map", "call prctl 35 15 @8 0 0", EPERM, IfKnown),
    ("PT-03 death signal", "call prctl 1 0 0 0 0", 0, Works),
    ("PT-03 subreaper", "call prctl 36 1 0 0 0", 0, Works),
    ("PT-03 keep capabilities", "call prctl 8 1 0 0 0", 0, Works),
];

#[test]
fn what_exploits_are_built_on_is_out_of_reach() {
    check(&Yard::new(), SURFACE);
}

/// Calls that ordinary programs do without, with arguments that do nothing.
const RARE: &[(&str, i32, Outside)] = &[
    ("call kexec_load 0 0 0 0", EPERM, NotTried),
    ("call kexec_file_load -1 -1 0 0 0", EPERM, DiffersForRoot),
    ("call reboot 0 0 0 0", EPERM, DiffersForRoot),
    ("call init_module 0 0 0", EPERM, DiffersForRoot),
    ("call finit_module -1 :x 0", EPERM, DiffersForRoot),
    ("call delete_module :stockade-none 0", EPERM, DiffersForRoot),
    ("call swapon :/nowhere 0", EPERM, DiffersForRoot),
    ("call swapoff :/nowhere", EPERM, DiffersForRoot),
    ("call acct :/nowhere", EPERM, IfKnown),
    ("call quotactl 0 0 0 0", EPERM, Differs),
    ("call quotactl_fd -1 0 0 0", EPERM, Differs),
    ("call syslog 99 0 0", EPERM, DiffersForRoot),
    ("call sethostname 0 -1", EPERM, DiffersForRoot),
    ("call setdomainname 0 -1", EPERM, DiffersForRoot),
    ("call settimeofday @16=ffffffffffffffffffffffffffffffff 0", EPERM, Differs),
    ("call clock_settime 0 0", EPERM, Differs),
    ("call adjtimex 0", EPERM, Differs),
    ("call clock_adjtime 0 0", EPERM, Differs),
    ("call modify_ldt 99 0 0", EPERM, Differs),
    ("call memfd_secret 0x40", EPERM, Differs),
    ("call fanotify_init 0xffffffff 0", EPERM, DiffersForRoot),
    ("call open_by_handle_at -1 0 0", EPERM, DiffersForRoot),
    ("call name_to_handle_at -1 0 0 0 0", EPERM, Differs),
    ("call personality 0x400000", EPERM, Works),
    ("call process_madvise -1 0 0 0 0", EPERM, Differs),
    ("call process_mrelease -1 0", EPERM, Differs),
    ("call kcmp -1 -1 0 0 0", EPERM, Differs),
    ("call mbind 0 0 0 0 0 0x80", ENOSYS, IfKnown),
    ("call set_mempolicy 99 0 0", ENOSYS, IfKnown),
    ("call get_mempolicy 0 0 0 0 0x80", ENOSYS, IfKnown),
    ("call migrate_pages 0 0 0 0", ENOSYS, IfKnown),
    ("call move_pages 0 0 0 0 0 0", ENOSYS, IfKnown),
    ("call set_mempolicy_home_node 0 0 0 1", ENOSYS, IfKnown),
    ("call lsm_get_self_attr 0 0 0 1", ENOSYS, IfKnown),
    ("call lsm_set_self_attr 0 0 0 1", ENOSYS, IfKnown),
    ("call lsm_list_modules 0 0 1", ENOSYS, IfKnown),
    ("call 134", ENOSYS, IfKnown),
    ("call 136", ENOSYS, IfKnown),
    ("call 139", ENOSYS, IfKnown),
];

#[test]
fn no_rare_call_reaches_the_kernel() {
    let named: Vec<String> = (1..=RARE.len()).map(|number| format!("BP-04 number {number}")).collect();
    let cases: Vec<Case<'_>> =
        named.iter().zip(RARE).map(|(id, (words, errno, outside))| (id.as_str(), *words, *errno, *outside)).collect();
    check(&Yard::new(), &cases);
}

/// The control of three walls from inside: what the policy allows works, and only that.
#[test]
fn each_group_opens_its_own_calls_only() {
    let attempts = ["with-child call ptrace 0x4206 {child} 0 0", COUNTER, RING];
    for (groups, expected) in [
        ("", [EPERM, EPERM, ENOSYS]),
        ("\"debug\"", [0, EPERM, ENOSYS]),
        ("\"profile\"", [EPERM, 0, ENOSYS]),
        ("\"io_uring\"", [EPERM, EPERM, 0]),
    ] {
        let yard = Yard::with(&format!("[syscalls]\nallow = [{groups}]"));
        assert_eq!(try_inside(&yard, &attempts), expected, "allow = [{groups}]");
    }
}

fn answers(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.split_once(' ')).map(|(_, errno)| errno).collect()
}

#[test]
fn numbers_without_a_name_answer_as_an_older_kernel_would() {
    let (yard, unknown) = (Yard::new(), ENOSYS.to_string());
    let inside = yard.run(&[&yard.probe_path(), "answers", "450", "600"]);
    assert_eq!(answers(&inside.stdout), [unknown.as_str(); 151], "{inside:?}");
    let outside = Command::new(yard.probe_path()).args(["answers", "450", "600"]).output().expect("the probe");
    let outside = String::from_utf8_lossy(&outside.stdout).into_owned();
    assert!(answers(&outside).iter().any(|errno| *errno != unknown), "this kernel has none of them either");
}

#[test]
fn a_second_filter_loosens_nothing() {
    check(
        &Yard::new(),
        &[
            ("AB-06 allowed", "weaker-filter call prctl 36 1 0 0 0", 0, Works),
            ("AB-06 unshare", "weaker-filter call unshare 0x10000000", EPERM, Works),
            ("AB-06 io_uring", "weaker-filter call io_uring_setup 1 @120", ENOSYS, Works),
        ],
    );
}

#[test]
fn senseless_calls_hurt_nobody_outside() {
    const SECONDS: u64 = 5;
    let yard = Yard::with("[limits]\nwall_time = \"20s\"");
    let canary_file = yard.beside.file("canary", "untouched");
    let mut canary = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("a canary");
    let start = std::time::Instant::now();
    // A random signal to everyone ends the fuzzer; the next seed then goes on.
    for seed in 1.. {
        let Some(left) = (SECONDS * 1000).checked_sub(start.elapsed().as_millis() as u64) else { break };
        let outcome = yard.run(&[&yard.probe_path(), "fuzz", &left.to_string(), &seed.to_string()]);
        assert!(outcome.code == 0 || outcome.code > 127, "stockade itself gave up at seed {seed}: {outcome:?}");
    }
    assert_eq!(canary.try_wait().expect("a child"), None, "the canary died");
    assert_eq!(std::fs::read_to_string(canary_file).expect("the canary"), "untouched");
    assert_eq!(yard.shell("echo alive").stdout, "alive\n");
    drop(canary.stdin.take());
    assert!(canary.wait().expect("a child").success());
}
