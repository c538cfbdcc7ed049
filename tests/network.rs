//! The network wall: no packet, no socket of the host, no shared memory crosses it, except where the policy says so.

#[expect(dead_code, reason = "some controls are for other walls")]
#[path = "support/controls.rs"]
mod controls;
mod support;

use controls::Outside::{Differs, DiffersForRoot, IfKnown, NotTried, Works, WorksForRoot, WorksWithin};
use controls::{Case, check, try_inside};
use libc::{EACCES, EAFNOSUPPORT, ECONNREFUSED, ENETUNREACH, ENOENT, EOPNOTSUPP, EPERM, EPROTONOSUPPORT};
use nix::sys::signal::Signal;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixDatagram, UnixListener};
use support::{Scratch, Yard};

const HOST: &str = "[network]\nmode = \"host\"";

/// A listener of the host, on loopback.
struct Door {
    listener: TcpListener,
    address: String,
    port: u16,
}

impl Door {
    fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        listener.set_nonblocking(true).expect("a mode");
        let address = listener.local_addr().expect("an address");
        Door { listener, address: address.to_string(), port: address.port() }
    }

    /// How many came in since it was last asked.
    fn visitors(&self) -> usize {
        std::iter::from_fn(|| self.listener.accept().ok()).count()
    }
}

#[test]
fn a_listener_of_the_host_is_out_of_reach() {
    let (yard, door) = (Yard::new(), Door::open());
    let attempts = [format!("connect {}", door.address), format!("fast-open {}", door.address)];
    let attempts = attempts.each_ref().map(String::as_str);
    assert_eq!(try_inside(&yard, &attempts), [ECONNREFUSED; 2]);
    assert_eq!(door.visitors(), 0);
    assert_eq!(try_inside(&Yard::with(HOST), &attempts), [0; 2]);
    assert_eq!(door.visitors(), 2);
}

#[test]
fn an_abstract_socket_of_the_host_is_out_of_reach() {
    let name = format!("stockade-test-{}", std::process::id());
    let listener = UnixListener::bind_addr(&UnixAddr::from_abstract_name(&name).expect("a name")).expect("a listener");
    listener.set_nonblocking(true).expect("a mode");
    let visitors = || std::iter::from_fn(|| listener.accept().ok()).count();
    let words = ["connect-abstract", &name];
    assert_eq!(Yard::new().probe(&words), ECONNREFUSED);
    // In the host's own network namespace Landlock cuts it off.
    assert_eq!(Yard::with(HOST).probe(&words), EPERM);
    assert_eq!(visitors(), 0);
    assert_eq!(Yard::new().probe_outside(&words), 0);
    assert_eq!(visitors(), 1);
}

#[test]
fn a_pathname_socket_outside_the_roots_does_not_exist() {
    let (yard, place) = (Yard::new(), Scratch::new());
    let (stream, datagram) = (place.path().join("stream"), place.path().join("datagram"));
    let _listening = UnixListener::bind(&stream).expect("a listener");
    let _bound = UnixDatagram::bind(&datagram).expect("a socket");
    check(
        &yard,
        &[
            ("NT-14 connect", &format!("connect-unix {}", stream.display()), ENOENT, Works),
            ("NT-14 pair", &format!("reconnect-pair {}", datagram.display()), ENOENT, Works),
        ],
    );
}

#[test]
fn nothing_beyond_loopback_can_be_reached() {
    let attempts =
        ["connect 169.254.169.254:80", "connect 192.0.2.1:80", "send-udp 192.0.2.1:53", "connect [2001:db8::1]:80"];
    assert_eq!(try_inside(&Yard::new(), &attempts), [ENETUNREACH; 4]);
}

fn devices(table: &str) -> Vec<&str> {
    table.lines().skip(2).filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim()).collect()
}

#[test]
fn loopback_is_the_only_device_and_there_is_no_route() {
    let inside = Yard::new().run(&["/bin/cat", "/proc/net/dev"]);
    assert_eq!(devices(&inside.stdout), ["lo"], "{inside:?}");
    let shared = Yard::with(HOST).run(&["/bin/cat", "/proc/net/dev"]);
    let host = std::fs::read_to_string("/proc/net/dev").expect("the host's devices");
    assert_eq!(devices(&shared.stdout), devices(&host), "{shared:?}");
    assert_ne!(devices(&host), ["lo"], "the host itself has nothing but loopback, so this proves nothing");
    assert_eq!(Yard::new().shell("tail -n +2 /proc/net/route").stdout, "");
}

#[test]
fn loopback_works_inside() {
    assert_eq!(try_inside(&Yard::new(), &["loopback 127.0.0.1:0", "loopback [::1]:0"]), [0; 2]);
}

#[test]
fn two_processes_of_a_cell_meet_on_loopback() {
    let yard = Yard::new();
    let line = "coproc \"$0\" serve; read -r port <&${COPROC[0]}; \"$0\" connect 127.0.0.1:$port; echo $?; wait";
    let outcome = yard.run(&["/bin/bash", "-c", line, &yard.probe_path()]);
    assert_eq!((outcome.stdout.as_str(), outcome.code), ("0\n", 0), "{outcome:?}");
}

#[test]
fn two_cells_do_not_meet_on_loopback() {
    let (one, other) = (Yard::new(), Yard::new());
    let fifo = one.workspace.path().join("port");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::from_bits_truncate(0o666)).expect("a FIFO");
    let mut serve = one.command();
    serve.args(["--timeout", "60s", "--", "/bin/bash", "-c", "exec \"$0\" serve >port", &one.probe_path()]);
    let mut server = serve.spawn().expect("stockade starts");
    let mut port = String::new();
    BufReader::new(File::open(&fifo).expect("the server")).read_line(&mut port).expect("a port");
    let answer = other.probe(&["connect", &format!("127.0.0.1:{}", port.trim())]);
    // Had the other cell been answered, the server would have ended with 0; it is still waiting.
    assert_eq!((answer, server.try_wait().expect("a child")), (ECONNREFUSED, None));
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(server.id() as i32), Signal::SIGTERM).expect("it is there");
    assert_eq!(server.wait().expect("a child").code(), Some(128 + Signal::SIGTERM as i32));
}

const FAMILIES: &[Case<'_>] = &[
    ("NT-05 unix", "call socket 1 1 0", 0, Works),
    ("NT-05 inet", "call socket 2 1 0", 0, Works),
    ("NT-05 inet6", "call socket 10 1 0", 0, Works),
    ("NT-05 packet", "call socket 17 3 0", EAFNOSUPPORT, Differs),
    ("NT-05 high bits", "call socket 0x100000011 3 0", EAFNOSUPPORT, Differs),
    ("NT-05 pair", "call socketpair 2 1 0 @8", EAFNOSUPPORT, Differs),
    ("NT-06 route", "call socket 16 3 0", 0, Works),
    ("NT-06 sock_diag", "call socket 16 3 4", EPROTONOSUPPORT, IfKnown),
    ("NT-06 xfrm", "call socket 16 3 6", EPROTONOSUPPORT, IfKnown),
    ("NT-06 audit", "call socket 16 3 9", EPROTONOSUPPORT, IfKnown),
    ("NT-06 netfilter", "call socket 16 3 12", EPROTONOSUPPORT, IfKnown),
    ("NT-06 uevent", "call socket 16 3 15", EPROTONOSUPPORT, Works),
    ("NT-06 generic", "call socket 16 3 16", EPROTONOSUPPORT, Works),
    ("NT-06 crypto", "call socket 16 3 21", EPROTONOSUPPORT, IfKnown),
    ("NT-08 raw", "call socket 2 3 1", EPERM, WorksWithin),
    ("NT-08 raw, high bits", "call socket 2 0x80003 255", EPERM, WorksWithin),
    ("NT-08 raw over IPv6", "call socket 10 3 58", EPERM, WorksWithin),
    ("NT-08 packet of old", "call socket 2 10 0", EPERM, DiffersForRoot),
    ("NT-08 ping", "call socket 2 2 1", EPERM, Differs),
    ("NT-08 mark", "option 1 36 01000000", EPERM, WorksWithin),
    ("NT-08 to a device", "option 1 25 65746830", libc::ENODEV, NotTried),
    ("NT-08 source route", "option 0 4 8307047f00000100", EPERM, WorksForRoot),
    ("NT-08 transparent", "option 0 19 01000000", EPERM, WorksWithin),
    ("NT-13 MPTCP", "call socket 2 1 262", EPROTONOSUPPORT, IfKnown),
    ("NT-13 SCTP", "call socket 2 1 132", EPROTONOSUPPORT, IfKnown),
];

#[test]
fn only_ordinary_kinds_of_sockets_can_be_made() {
    check(&Yard::new(), FAMILIES);
}

/// Every family but Unix, IPv4, IPv6 and netlink; a kernel may lack most, so only AF_PACKET above has a control.
#[test]
fn no_other_family_exists() {
    let others: Vec<u64> = (0..=64).filter(|family| ![1, 2, 10, 16].contains(family)).collect();
    let attempts: Vec<String> = others.iter().map(|family| format!("call socket {family} 5 0")).collect();
    let attempts: Vec<&str> = attempts.iter().map(String::as_str).collect();
    assert_eq!(try_inside(&Yard::new(), &attempts), vec![EAFNOSUPPORT; attempts.len()]);
}

#[test]
fn listed_ports_are_the_only_way_out() {
    let (listed, other) = (Door::open(), Door::open());
    let udp = UdpSocket::bind("127.0.0.1:0").expect("a socket").local_addr().expect("an address");
    let narrow = Yard::with(&format!("{HOST}\nconnect_ports = [{}]", listed.port));
    let attempts = [
        (format!("connect {}", listed.address), 0, 0),
        (format!("connect {}", other.address), EACCES, 0),
        (format!("fast-open {}", other.address), EOPNOTSUPP, 0),
        (format!("fast-open {}", listed.address), EOPNOTSUPP, 0),
        // TCP_FASTOPEN_CONNECT puts the connection off to the first write, which Landlock does not see.
        ("option 6 30 01000000".into(), libc::ENOPROTOOPT, 0),
        (format!("send-udp {udp}"), EPERM, 0),
        ("call socket 10 2 0".into(), EPERM, 0),
        ("call socket 2 1 262".into(), EPROTONOSUPPORT, EPROTONOSUPPORT),
        ("connect 169.254.169.254:80".into(), EACCES, -1),
    ];
    let words: Vec<&str> = attempts.iter().map(|attempt| attempt.0.as_str()).collect();
    assert_eq!(try_inside(&narrow, &words), attempts.each_ref().map(|attempt| attempt.1), "{words:#?}");
    assert_eq!((listed.visitors(), other.visitors()), (1, 0));
    // The same without a list; whether the last address answers is the host's business, so it is left out.
    let (words, expected) = (&words[..8], attempts[..8].iter().map(|attempt| attempt.2).collect::<Vec<_>>());
    assert_eq!(try_inside(&Yard::with(HOST), words), expected, "{words:#?}");
    assert_eq!((listed.visitors(), other.visitors()), (2, 2));
}

#[test]
fn an_empty_list_of_ports_lets_nothing_out() {
    let door = Door::open();
    let narrow = Yard::with(&format!("{HOST}\nconnect_ports = []"));
    assert_eq!(narrow.probe(&["connect", &door.address]), EACCES);
    assert_eq!(door.visitors(), 0);
    assert_eq!(Yard::with(HOST).probe(&["connect", &door.address]), 0);
}

#[test]
fn names_are_reached_through_the_broker_or_not_at_all() {
    let door = Door::open();
    let proxied = Yard::with("[network]\nmode = \"proxy\"\nallow_hosts = [\"localhost\"]");
    assert_eq!(proxied.probe(&["connect", &door.address]), ECONNREFUSED);
    assert_eq!(proxied.probe(&["connect", "192.0.2.1:443"]), ENETUNREACH);
    assert_eq!(door.visitors(), 0);
    assert_eq!(Yard::with(HOST).probe(&["connect", &door.address]), 0);
}

#[test]
fn only_listed_ports_can_be_bound() {
    // Free a moment ago; nobody else is likely to take them in between.
    let free = || Door::open().address;
    let (listed, other) = (free(), free());
    let port = listed.rsplit_once(':').expect("a port").1;
    let narrow = Yard::with(&format!("{HOST}\nbind_ports = [{port}]"));
    let attempts = [format!("bind {listed}"), format!("bind {other}"), "bind 127.0.0.1:0".into()];
    let attempts = attempts.each_ref().map(String::as_str);
    assert_eq!(try_inside(&narrow, &attempts), [0, EACCES, EACCES]);
    assert_eq!(try_inside(&Yard::with(HOST), &attempts), [0; 3]);
}

#[test]
fn shared_memory_and_queues_of_the_host_do_not_exist() {
    let yard = Yard::new();
    let key = (0x5300_0000 + std::process::id()).to_string();
    let name = format!("stockade-test-{}", std::process::id());
    let shared = std::path::Path::new("/dev/shm").join(&name);
    std::fs::write(&shared, "host").expect("POSIX shared memory");
    assert_eq!(yard.probe_outside(&["call", "shmget", &key, "4096", "950"]), 0, "System V shared memory");
    let queue = format!(":{name}");
    assert_eq!(yard.probe_outside(&["call", "mq_open", &queue, "66", "384", "0"]), 0, "a message queue");
    let attempts = [
        format!("call shmget {key} 4096 0"),
        format!("read {}", shared.display()),
        format!("call mq_open {queue} 0 0 0"),
    ];
    let tried = attempts.each_ref().map(String::as_str);
    let inside = try_inside(&yard, &tried);
    let shared_network = try_inside(&Yard::with(HOST), &tried);
    let outside = attempts.each_ref().map(|words| yard.probe_outside(&words.split(' ').collect::<Vec<_>>()));
    std::fs::remove_file(&shared).expect("it is there");
    assert_eq!(yard.probe_outside(&["call", "mq_unlink", &queue]), 0);
    let removed = std::process::Command::new("ipcrm").args(["-M", &key]).status().expect("ipcrm");
    assert!(removed.success());
    assert_eq!((inside, shared_network), (vec![ENOENT; 3], vec![ENOENT; 3]));
    assert_eq!(outside, [0; 3]);
}

#[test]
fn credentials_cannot_be_forged() {
    check(
        &Yard::new(),
        &[
            ("NT-11 the truth", "credentials self self self", 0, Works),
            ("NT-11 PID 1", "credentials 1 self self", EPERM, WorksForRoot),
            ("NT-11 an id of the cell's /etc/passwd", "credentials self 0 self", libc::EINVAL, WorksForRoot),
            ("NT-11 a group", "credentials self self 0", libc::EINVAL, WorksForRoot),
        ],
    );
}
