//! Rules that look at arguments: calls that ordinary programs need in some forms and an attacker in others.
//!
//! Only registers are judged, never memory. A word or flag that is new to this table falls to `otherwise`;
//! where that is a refusal the list is closed, where it is `Allow` the named forms are the whole danger.

use nix::errno::Errno;

use super::rule::Outcome::{Allow, Refuse};
use super::rule::{Case, Outcome, Rule, Test, When, Word, any, case, check, is, masked};

const DENY: Outcome = Refuse(Errno::EPERM);
const NO_FAMILY: Outcome = Refuse(Errno::EAFNOSUPPORT);
const NO_PROTOCOL: Outcome = Refuse(Errno::EPROTONOSUPPORT);
const NO_TYPE: Outcome = Refuse(Errno::ESOCKTNOSUPPORT);
const NO_OPTION: Outcome = Refuse(Errno::ENOPROTOOPT);

const AF_UNIX: u32 = 1;
const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;
const AF_NETLINK: u32 = 16;
/// `SOCK_CLOEXEC` and `SOCK_NONBLOCK` share the argument with the type.
const SOCK_TYPE: u32 = 0xF;
const SOCK_STREAM: u32 = 1;
const SOCK_DGRAM: u32 = 2;
const SOCK_RAW: u32 = 3;
const SOCK_PACKET: u32 = 10;
const IPPROTO_ICMP: u32 = 1;
const IPPROTO_TCP: u32 = 6;
const IPPROTO_UDP: u32 = 17;
const IPPROTO_ICMPV6: u32 = 58;
const NETLINK_ROUTE: u32 = 0;
const MSG_FASTOPEN: u32 = 0x2000_0000;
const TCP_FASTOPEN_CONNECT: u32 = 30;
const TCP_ULP: u32 = 31;

const INTERNET: Test = is(0, &[AF_INET, AF_INET6]);
const LOCAL_SOCKET: Case = case(&[is(0, &[AF_UNIX])], Allow);
const TCP_SOCKET: Case = case(&[INTERNET, masked(1, SOCK_TYPE, &[SOCK_STREAM]), is(2, &[0, IPPROTO_TCP])], Allow);
const UDP_SOCKET: Case = case(&[INTERNET, masked(1, SOCK_TYPE, &[SOCK_DGRAM]), is(2, &[0, IPPROTO_UDP])], Allow);
const NO_UDP_SOCKET: Case = case(&[INTERNET, masked(1, SOCK_TYPE, &[SOCK_DGRAM])], DENY);
const NO_PING_SOCKET: Case =
    case(&[INTERNET, masked(1, SOCK_TYPE, &[SOCK_DGRAM]), is(2, &[IPPROTO_ICMP, IPPROTO_ICMPV6])], DENY);
const NO_RAW_SOCKET: Case = case(&[INTERNET, masked(1, SOCK_TYPE, &[SOCK_RAW, SOCK_PACKET])], DENY);
/// MPTCP, SCTP, SMC, UDP-Lite: as a kernel built without them answers, so that Go and curl fall back.
const NO_OTHER_PROTOCOL: Case = case(&[INTERNET, masked(1, SOCK_TYPE, &[SOCK_STREAM, SOCK_DGRAM])], NO_PROTOCOL);
const NO_OTHER_TYPE: Case = case(&[INTERNET], NO_TYPE);
const ROUTE_SOCKET: Case = case(&[is(0, &[AF_NETLINK]), is(2, &[NETLINK_ROUTE])], Allow);
const NO_OTHER_NETLINK: Case = case(&[is(0, &[AF_NETLINK])], NO_PROTOCOL);

/// `CLONE_NEWTIME` (0x80) lies in the byte of the exit signal, where `clone` ignores it and no signal reaches it.
const NAMESPACES: u32 = 0x7E02_0080;
/// `CLONE_FS`, `CLONE_FILES`, `CLONE_SYSVSEM`: un-sharing what threads share.
const THREAD_PARTS: u32 = 0x0200 | 0x0400 | 0x0004_0000;

const SET_ID: u32 = 0o6000;
/// `O_CREAT` and the own bit of `O_TMPFILE`; without them the mode is whatever the register held.
const CREATES: u32 = 0o100 | 0o20_000_000;
const S_IFMT: u32 = 0o170_000;
const PLAIN_NODES: &[u32] = &[0, 0o100_000, 0o010_000, 0o140_000];

const MFD_NOEXEC_SEAL: u32 = 8;
const SECCOMP_SET_MODE_FILTER: u32 = 1;
const SECCOMP_FILTER_FLAG_NEW_LISTENER: u32 = 8;

pub(super) static RULES: &[Rule] = &[
    check(
        "socket",
        &[
            LOCAL_SOCKET,
            TCP_SOCKET,
            NO_UDP_SOCKET,
            NO_RAW_SOCKET,
            NO_OTHER_PROTOCOL,
            NO_OTHER_TYPE,
            ROUTE_SOCKET,
            NO_OTHER_NETLINK,
        ],
        NO_FAMILY,
        "with listed ports only Unix, TCP and route sockets: Landlock sees the ports of TCP but not of UDP or MPTCP",
    )
    .when(When::ListedPorts),
    check(
        "socket",
        &[
            LOCAL_SOCKET,
            TCP_SOCKET,
            UDP_SOCKET,
            NO_PING_SOCKET,
            NO_RAW_SOCKET,
            NO_OTHER_PROTOCOL,
            NO_OTHER_TYPE,
            ROUTE_SOCKET,
            NO_OTHER_NETLINK,
        ],
        NO_FAMILY,
        "Unix, TCP, UDP and route sockets; packet, raw, ping, MPTCP, AF_ALG, AF_VSOCK and all rarer kinds are \
         kernel surface or ways past the network rules",
    ),
    check("socketpair", &[LOCAL_SOCKET], NO_FAMILY, "pairs of Unix sockets; other families have none or are refused"),
    check(
        "sendto",
        &[case(&[any(3, MSG_FASTOPEN)], Refuse(Errno::EOPNOTSUPP))],
        Allow,
        "with listed ports no TCP fast open, which connects without asking Landlock",
    )
    .when(When::ListedPorts),
    check(
        "sendmsg",
        &[case(&[any(2, MSG_FASTOPEN)], Refuse(Errno::EOPNOTSUPP))],
        Allow,
        "with listed ports no TCP fast open, which connects without asking Landlock",
    )
    .when(When::ListedPorts),
    check(
        "sendmmsg",
        &[case(&[any(3, MSG_FASTOPEN)], Refuse(Errno::EOPNOTSUPP))],
        Allow,
        "with listed ports no TCP fast open, which connects without asking Landlock",
    )
    .when(When::ListedPorts),
    check(
        "setsockopt",
        &[case(&[is(1, &[IPPROTO_TCP]), is(2, &[TCP_FASTOPEN_CONNECT, TCP_ULP])], NO_OPTION)],
        Allow,
        "with listed ports TCP stays plain TCP: no deferred connect, no SMC laid over it",
    )
    .when(When::ListedPorts),
    check(
        "prlimit64",
        &[case(&[is(0, &[0])], Allow)],
        DENY,
        "a process's own limits, as glibc asks for them; those of PID 1 would make it stumble",
    ),
    check("clone", &[case(&[any(0, NAMESPACES)], DENY)], Allow, "processes and threads, but no new namespace"),
    check(
        "unshare",
        &[case(&[any(0, !THREAD_PARTS)], DENY), case(&[Test::Any { word: Word::High(0), mask: u32::MAX }], DENY)],
        Allow,
        "a thread may part from its siblings' files; a new namespace would bring capabilities within it",
    ),
    check(
        "chmod fchmod",
        &[case(&[any(1, SET_ID)], DENY)],
        Allow,
        "no setuid or setgid file may be left in a root that the host also sees",
    ),
    check("fchmodat", &[case(&[any(2, SET_ID)], DENY)], Allow, "no setuid or setgid file, as for chmod"),
    check("creat", &[case(&[any(1, SET_ID)], DENY)], Allow, "no file may be born setuid or setgid"),
    check(
        "open",
        &[case(&[any(1, CREATES), any(2, SET_ID)], DENY)],
        Allow,
        "files by name; none may be born setuid or setgid",
    ),
    check(
        "openat",
        &[case(&[any(2, CREATES), any(3, SET_ID)], DENY)],
        Allow,
        "files by name; none may be born setuid or setgid",
    ),
    check(
        "mknod",
        &[case(&[any(1, SET_ID)], DENY), case(&[masked(1, S_IFMT, PLAIN_NODES)], Allow)],
        DENY,
        "files, FIFOs and sockets; devices are the launcher's",
    ),
    check(
        "mknodat",
        &[case(&[any(2, SET_ID)], DENY), case(&[masked(2, S_IFMT, PLAIN_NODES)], Allow)],
        DENY,
        "files, FIFOs and sockets; devices are the launcher's",
    ),
    check(
        "memfd_create",
        &[case(&[any(1, MFD_NOEXEC_SEAL)], Allow)],
        DENY,
        "with listed programs an anonymous file must be sealed against execution: it lies on a mount inside the \
         kernel, which Landlock exempts and no mount flag reaches",
    )
    .when(When::ListedExecutables),
    check(
        "ioctl",
        &[
            // TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD, TIOCVHANGUP, NS_GET_USERNS, NS_GET_PARENT, USERFAULTFD_IOC_NEW
            case(&[is(1, &[0x5412, 0x541C, 0x541D, 0x5423, 0x5437, 0xB701, 0xB702, 0xAA00])], DENY),
            // KD* and VT_*: there is no console in a cell, and a program is told so.
            case(&[masked(1, 0xFFFF_FF00, &[0x4B00, 0x5600])], Refuse(Errno::ENOTTY)),
        ],
        Allow,
        "devices and terminals, but no typing into a terminal, no line discipline, no console, no climbing out of \
         a namespace",
    ),
    check(
        "fcntl",
        // F_SETLEASE, F_NOTIFY, F_SETDELEG
        &[case(&[is(1, &[1024, 1026, 1040])], DENY)],
        Allow,
        "descriptors and locks; leases and directory notices would let an agent stall or watch those who share its files",
    ),
    check(
        "personality",
        // PER_LINUX, PER_LINUX32, UNAME26, ADDR_NO_RANDOMIZE (gdb, setarch -R), a query
        &[case(&[is(0, &[0, 8, 0x2_0000, 0x2_0008, 0x4_0000, 0x4_0008, u32::MAX])], Allow)],
        DENY,
        "what setarch and gdb ask for; other personalities loosen memory protection or revive old bugs",
    ),
    check(
        "seccomp",
        &[case(&[is(0, &[SECCOMP_SET_MODE_FILTER]), any(1, SECCOMP_FILTER_FLAG_NEW_LISTENER)], DENY)],
        Allow,
        "a program may filter itself further (the stricter answer always wins); a listener would let it hand \
         descriptors into other processes",
    ),
    check(
        "prctl",
        &[case(&[is(0, OWN_OPTIONS)], Allow), case(&[is(0, REFUSED_OPTIONS)], DENY)],
        Refuse(Errno::EINVAL),
        "a thread's own name, signals, dumpability, timers and promises; unknown options answer EINVAL as on an older kernel",
    ),
];

const OWN_OPTIONS: &[u32] = &[
    1,
    2,
    3,
    4, // PDEATHSIG, DUMPABLE: the PID namespace, not this signal, is what ends processes
    7,
    8,
    23,
    27,
    47, // GET/SET_KEEPCAPS, CAPBSET_READ, GET_SECUREBITS, CAP_AMBIENT: there is no capability to keep
    15,
    16,
    25,
    29,
    30, // NAME, GET_TSC, TIMERSLACK
    21,
    22,
    38,
    39, // SECCOMP, NO_NEW_PRIVS
    36,
    37,
    40,
    41,
    42, // CHILD_SUBREAPER, GET_TID_ADDRESS, THP_DISABLE
    50,
    51,
    54,
    55,
    56,
    60,
    61,
    63,
    64, // SVE, pointer authentication, tagged addresses, SME
    52,
    53,
    65,
    66, // SPECULATION_CTRL, MDWE: promises that only narrow
    0x4155_5856,
    0x5356_4D41, // GET_AUXV, SET_VMA (names for memory areas)
    0x5961_6D61, // SET_PTRACER: crash handlers call it; it means nothing while ptrace is refused
];

/// CAPBSET_DROP, SET_TSC, SET_SECUREBITS, TASK_PERF_EVENTS_*, MCE_KILL, MM, IO_FLUSHER, SYSCALL_USER_DISPATCH, SCHED_CORE,
/// MEMORY_MERGE: they act on the machine, forge what `/proc` tells, or serve emulators and exploits.
const REFUSED_OPTIONS: &[u32] = &[24, 26, 28, 31, 32, 33, 35, 57, 59, 62, 67];
