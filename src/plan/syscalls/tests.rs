//! The compiled program is held against the table, number by number, by a small BPF machine; then cases as data.

use nix::errno::Errno::{self, *};
use seccompiler::sock_filter;

use super::numbers::Arch;
use super::rule::{Outcome, Outcome::Allow, Verdict, When, Word};
use super::{Executables, FilterInput, answer, bpf, rule, rules, verdicts};
use crate::policy::{Network, SyscallGroup};

const NO_NETWORK: &Network = &Network::None;
const PLAIN: FilterInput<'static> = FilterInput { groups: &[], network: NO_NETWORK, executables: Executables::Any };
const EVERY_GROUP: FilterInput<'static> =
    FilterInput { groups: &[SyscallGroup::Debug, SyscallGroup::Profile, SyscallGroup::IoUring], ..PLAIN };
const LISTED_PROGRAMS: FilterInput<'static> = FilterInput { executables: Executables::Listed, ..PLAIN };
const ARCHS: [Arch; 2] = [Arch::X86_64, Arch::Aarch64];

/// Loading takes time with every instruction, on the way to every command: about 65 µs for 290.
const SMALL: usize = 400;

fn listed_ports() -> Network {
    Network::Host { connect_ports: Some(vec![443]), bind_ports: None }
}

/// Runs a program as the kernel would; `None` where the kernel would not have loaded it.
fn run(program: &[sock_filter], arch: u32, number: u32, arguments: &[u64; 6]) -> Option<u32> {
    let mut accumulator = 0;
    let mut at = 0;
    loop {
        let instruction = program.get(at)?;
        let operand = instruction.k;
        at += 1;
        let holds = match instruction.code {
            bpf::LOAD => {
                accumulator = match operand {
                    0 => number,
                    4 => arch,
                    16..64 => (arguments[(operand as usize - 16) / 8] >> (operand % 8 * 8)) as u32,
                    _ => return None,
                };
                continue;
            }
            bpf::AND => {
                accumulator &= operand;
                continue;
            }
            bpf::JUMP => {
                at += operand as usize;
                continue;
            }
            bpf::RETURN => return Some(operand),
            bpf::IF_EQUAL => accumulator == operand,
            bpf::IF_AT_LEAST => accumulator >= operand,
            bpf::IF_ANY_BIT => accumulator & operand != 0,
            _ => return None,
        };
        at += usize::from(if holds { instruction.jt } else { instruction.jf });
    }
}

fn value(outcome: Outcome) -> u32 {
    match outcome {
        Allow => bpf::RETURN_ALLOW,
        Outcome::Refuse(errno) => bpf::RETURN_ERRNO | errno as u32,
    }
}

fn every_input(check: impl Fn(Arch, &FilterInput<'_>)) {
    let listed = listed_ports();
    let listed = FilterInput { network: &listed, executables: Executables::Listed, groups: &[] };
    for arch in ARCHS {
        for input in [PLAIN, EVERY_GROUP, LISTED_PROGRAMS, listed] {
            check(arch, &input);
        }
    }
}

/// Argument values worth trying for a verdict: each value and mask that it tests, one beside it, and the same with high bits set.
fn interesting(verdict: &Verdict) -> Vec<[u64; 6]> {
    let mut words: [Vec<u64>; 6] = std::array::from_fn(|_| vec![0, u64::from(u32::MAX), 1 << 32]);
    let mut note = |word: Word, value: u32| match word {
        Word::Low(index) => {
            words[index].extend([u64::from(value), u64::from(value) ^ 1, u64::from(value) | 1 << 32]);
        }
        Word::High(index) => words[index].push(u64::from(value) << 32),
    };
    if let Verdict::Checked { cases, .. } = verdict {
        for test in cases.iter().flat_map(|case| case.tests) {
            match *test {
                rule::Test::Any { word, mask } => note(word, mask),
                rule::Test::Is { word, values, .. } => values.iter().for_each(|&value| note(word, value)),
            }
        }
    }
    words.iter_mut().for_each(|values| {
        values.sort_unstable();
        values.dedup();
    });
    let mut combined = vec![[0u64; 6]];
    for (index, values) in words.iter().enumerate().take(4) {
        combined = combined
            .into_iter()
            .flat_map(|arguments| {
                values.iter().map(move |&value| {
                    let mut arguments = arguments;
                    arguments[index] = value;
                    arguments
                })
            })
            .collect();
    }
    combined
}

#[test]
fn the_program_answers_as_the_table_says() {
    every_input(|arch, input| {
        let verdicts = verdicts(arch, input);
        let program = bpf::compile(arch, &verdicts);
        assert!(program.len() <= SMALL, "{} instructions", program.len());
        for &(number, verdict) in &verdicts {
            for arguments in interesting(verdict) {
                assert_eq!(
                    run(&program, arch.audit(), number, &arguments),
                    Some(value(verdict.answer(&arguments))),
                    "{arch:?} {number} {arguments:x?}"
                );
            }
        }
        for number in 0..700 {
            let expected = value(answer(arch, input, number, &[0; 6]));
            assert_eq!(run(&program, arch.audit(), number, &[0; 6]), Some(expected), "{arch:?} {number}");
        }
    });
}

#[test]
fn foreign_abis_and_unknown_numbers_answer_enosys() {
    const I386: u32 = 0x4000_0003;
    const ARM: u32 = 0x4000_0028;
    let missing = Some(value(Outcome::Refuse(ENOSYS)));
    every_input(|arch, input| {
        let program = bpf::compile(arch, &verdicts(arch, input));
        for number in 0..700 {
            for foreign in [I386, ARM, 0] {
                assert_eq!(run(&program, foreign, number, &[0; 6]), missing, "{arch:?} {number}");
            }
            assert_eq!(run(&program, arch.audit(), number | 0x4000_0000, &[0; 6]), missing, "x32 {number}");
        }
        for number in (450..1000).chain([9999, 0x3FFF_FFFF, 0x4000_0000, 0x8000_0000, u32::MAX]) {
            assert_eq!(run(&program, arch.audit(), number, &[0; 6]), missing, "{arch:?} {number}");
        }
    });
}

#[test]
fn every_known_call_is_named_by_exactly_one_lasting_rule() {
    for (_, name) in ARCHS.into_iter().flat_map(Arch::calls) {
        let naming = rules()
            .filter(|rule| rule.when == When::Always && rule.calls.split_whitespace().any(|known| known == name))
            .count();
        assert_eq!(naming, 1, "{name}");
    }
}

#[test]
fn every_name_in_the_rules_is_a_system_call() {
    for name in rules().flat_map(|rule| rule.calls.split_whitespace()) {
        assert!(ARCHS.into_iter().flat_map(Arch::calls).any(|(_, known)| known == name), "{name}");
    }
}

#[test]
fn the_numbers_are_those_of_the_c_library() {
    let known = |name| Arch::NATIVE.calls().find(|&(_, known)| known == name).map(|(number, _)| i64::from(number));
    for (name, number) in [
        ("read", libc::SYS_read),
        ("openat", libc::SYS_openat),
        ("clone", libc::SYS_clone),
        ("ptrace", libc::SYS_ptrace),
        ("mount", libc::SYS_mount),
        ("prctl", libc::SYS_prctl),
        ("vhangup", libc::SYS_vhangup),
        ("keyctl", libc::SYS_keyctl),
        ("unshare", libc::SYS_unshare),
        ("setns", libc::SYS_setns),
        ("wait4", libc::SYS_wait4),
        ("bpf", libc::SYS_bpf),
        ("kexec_file_load", libc::SYS_kexec_file_load),
        ("rseq", libc::SYS_rseq),
        ("pidfd_send_signal", libc::SYS_pidfd_send_signal),
        ("clone3", libc::SYS_clone3),
        ("openat2", libc::SYS_openat2),
        ("futex_waitv", libc::SYS_futex_waitv),
    ] {
        assert_eq!(known(name), Some(number), "{name}");
    }
}

#[test]
fn every_rule_gives_a_reason_and_is_described() {
    assert!(rules().all(|rule| !rule.reason.is_empty()));
    let told = super::describe(&PLAIN);
    let mut calls: Vec<_> = told.iter().flat_map(|line| line.calls.iter().copied()).collect();
    let count = calls.len();
    calls.sort_unstable();
    calls.dedup();
    assert_eq!(calls.len(), count, "a call is described twice");
    assert_eq!(count, Arch::NATIVE.calls().count());
    let mount = told.iter().find(|line| line.calls.contains(&"mount")).expect("mount is described");
    assert_eq!(mount.answer, "EPERM");
}

#[test]
fn io_uring_with_listed_ports_is_a_contradiction() {
    let listed = listed_ports();
    assert!(super::contradiction(&FilterInput { network: &listed, ..EVERY_GROUP }).is_some());
    assert_eq!(super::contradiction(&EVERY_GROUP), None);
    assert_eq!(super::contradiction(&FilterInput { network: &listed, ..PLAIN }), None);
}

/// A call, its arguments, and the error; `None`: allowed.
type Attempt = (&'static str, &'static [u64], Option<Errno>);

fn check(input: &FilterInput<'_>, attempts: &[Attempt]) {
    let number_of = |name| Arch::X86_64.calls().find(|&(_, known)| known == name).expect("a known call").0;
    for &(name, given, errno) in attempts {
        let mut arguments = [0; 6];
        arguments[..given.len()].copy_from_slice(given);
        let expected = errno.map_or(Allow, Outcome::Refuse);
        assert_eq!(answer(Arch::X86_64, input, number_of(name), &arguments), expected, "{name}({given:x?})");
    }
}

const CASES: &[Attempt] = &[
    ("clone", &[0x0120_0011], None),
    ("clone", &[0x003D_0F00], None),
    ("clone", &[0x1000_0011], Some(EPERM)),
    ("clone", &[0xDEAD_0000_1000_0011], Some(EPERM)),
    ("clone", &[0x0002_0000], Some(EPERM)),
    ("clone", &[0x0200_0000], Some(EPERM)),
    ("clone", &[0x0400_0000], Some(EPERM)),
    ("clone", &[0x0800_0000], Some(EPERM)),
    ("clone", &[0x2000_0000], Some(EPERM)),
    ("clone", &[0x4000_0000], Some(EPERM)),
    ("clone3", &[], Some(ENOSYS)),
    ("unshare", &[0x400], None),
    ("unshare", &[0x80], Some(EPERM)),
    ("unshare", &[0x1000_0000], Some(EPERM)),
    ("unshare", &[1 << 32], Some(EPERM)),
    ("setns", &[], Some(EPERM)),
    ("ioctl", &[0, 0x5401], None),
    ("ioctl", &[0, 0x540E], None),
    ("ioctl", &[0, 0x5412], Some(EPERM)),
    ("ioctl", &[0, 0x5412 | 1 << 32], Some(EPERM)),
    ("ioctl", &[0, 0x541C], Some(EPERM)),
    ("ioctl", &[0, 0x5423], Some(EPERM)),
    ("ioctl", &[0, 0x4B47], Some(ENOTTY)),
    ("chmod", &[0, 0o1777], None),
    ("chmod", &[0, 0o4755], Some(EPERM)),
    ("fchmod", &[0, 0o2755], Some(EPERM)),
    ("fchmodat", &[0, 0, 0o6755], Some(EPERM)),
    ("fchmodat", &[0, 0o6755, 0o755], None),
    ("open", &[0, 0, 0o4755], None),
    ("open", &[0, 0o101, 0o4755], Some(EPERM)),
    ("openat", &[0, 0, 0o101, 0o644], None),
    ("openat", &[0, 0, 0o101, 0o2644], Some(EPERM)),
    ("openat", &[0, 0, 0o20_200_002, 0o4700], Some(EPERM)),
    ("creat", &[0, 0o4755], Some(EPERM)),
    ("mknod", &[0, 0o010_644], None),
    ("mknod", &[0, 0o020_644], Some(EPERM)),
    ("mknodat", &[0, 0, 0o060_644], Some(EPERM)),
    ("mknodat", &[0, 0, 0o104_755], Some(EPERM)),
    ("socket", &[1, 0x8_0001, 0], None),
    ("socket", &[2, 0x8_0801, 0], None),
    ("socket", &[10, 2, 17], None),
    ("socket", &[2, 1, 262], Some(EPROTONOSUPPORT)),
    ("socket", &[2, 1, 132], Some(EPROTONOSUPPORT)),
    ("socket", &[2, 2, 1], Some(EPERM)),
    ("socket", &[10, 2, 58], Some(EPERM)),
    ("socket", &[2, 3, 255], Some(EPERM)),
    ("socket", &[2, 10, 3], Some(EPERM)),
    ("socket", &[2, 5, 132], Some(ESOCKTNOSUPPORT)),
    ("socket", &[16, 3, 0], None),
    ("socket", &[16, 3, 4], Some(EPROTONOSUPPORT)),
    ("socket", &[17, 3, 0], Some(EAFNOSUPPORT)),
    ("socket", &[38, 5, 0], Some(EAFNOSUPPORT)),
    ("socket", &[40, 1, 0], Some(EAFNOSUPPORT)),
    ("socketpair", &[1, 1], None),
    ("socketpair", &[30, 1], Some(EAFNOSUPPORT)),
    ("sendto", &[3, 0, 0, 0x2000_0000], None),
    ("prctl", &[15], None),
    ("prctl", &[28], Some(EPERM)),
    ("prctl", &[35], Some(EPERM)),
    ("prctl", &[12345], Some(EINVAL)),
    ("fcntl", &[0, 1030], None),
    ("fcntl", &[0, 1024], Some(EPERM)),
    ("fcntl", &[0, 1026], Some(EPERM)),
    ("personality", &[0xFFFF_FFFF], None),
    ("personality", &[0x4_0000], None),
    ("personality", &[0x40_0000], Some(EPERM)),
    ("seccomp", &[1, 1], None),
    ("seccomp", &[1, 8], Some(EPERM)),
    ("memfd_create", &[0, 1], None),
    ("ptrace", &[], Some(EPERM)),
    ("perf_event_open", &[], Some(EPERM)),
    ("io_uring_setup", &[], Some(ENOSYS)),
    ("openat2", &[], Some(ENOSYS)),
];

#[test]
fn an_ordinary_policy_answers_by_arguments() {
    check(&PLAIN, CASES);
}

#[test]
fn groups_open_what_they_name_and_nothing_else() {
    let every = [SyscallGroup::Debug, SyscallGroup::Profile, SyscallGroup::IoUring];
    for (group, calls) in every.into_iter().zip([
        &["ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd"][..],
        &["perf_event_open"],
        &["io_uring_setup", "io_uring_enter", "io_uring_register"],
    ]) {
        let groups = [group];
        let input = FilterInput { groups: &groups, ..PLAIN };
        for (number, name) in Arch::X86_64.calls() {
            let before = answer(Arch::X86_64, &PLAIN, number, &[0; 6]);
            let after = answer(Arch::X86_64, &input, number, &[0; 6]);
            if calls.contains(&name) {
                assert!(before != Allow && after == Allow, "{group:?} {name}");
            } else {
                assert_eq!(before, after, "{group:?} {name}");
            }
        }
    }
}

#[test]
fn listed_ports_leave_only_tcp_that_landlock_sees() {
    let listed = listed_ports();
    let attempts: &[Attempt] = &[
        ("socket", &[1, 2, 0], None),
        ("socket", &[2, 0x8_0001, 6], None),
        ("socket", &[2, 2, 0], Some(EPERM)),
        ("socket", &[10, 0x8_0002, 17], Some(EPERM)),
        ("socket", &[2, 1, 262], Some(EPROTONOSUPPORT)),
        ("sendto", &[3, 0, 0, 0x4000], None),
        ("sendto", &[3, 0, 0, 0x2000_0000], Some(EOPNOTSUPP)),
        ("sendmsg", &[3, 0, 0x2000_4000], Some(EOPNOTSUPP)),
        ("sendmmsg", &[3, 0, 1, 0x2000_0000], Some(EOPNOTSUPP)),
        ("setsockopt", &[3, 6, 1], None),
        ("setsockopt", &[3, 6, 30], Some(ENOPROTOOPT)),
        ("setsockopt", &[3, 1, 30], None),
    ];
    check(&FilterInput { network: &listed, ..PLAIN }, attempts);
    let any_port = Network::Host { connect_ports: None, bind_ports: None };
    check(&FilterInput { network: &any_port, ..PLAIN }, &[("socket", &[2, 2, 0], None)]);
}

#[test]
fn listed_programs_seal_anonymous_files_against_execution() {
    check(&LISTED_PROGRAMS, &[("memfd_create", &[0, 1], Some(EPERM)), ("memfd_create", &[0, 9], None)]);
}
