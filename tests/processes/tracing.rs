//! Looking into other processes: not at all, or with the group `debug` into one's own, and never into PID 1 (PT).

use crate::controls::Outside::{Differs, NotTried, Works};
use crate::controls::{Case, check, try_inside};
use crate::support::{Yard, is_root};
use libc::{EACCES, EPERM};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

const DEBUG: &str = "[syscalls]\nallow = [\"debug\"]";

/// Looking into a child of one's own.
const OWN: [&str; 5] = [
    "with-child call ptrace 0x4206 {child} 0 0",
    "with-child call ptrace 16 {child} 0 0",
    "with-child read-memory {child}",
    "with-child take-descriptor {child}",
    "with-child call kcmp {child} {child} 0 0 0",
];

#[test]
fn a_child_can_be_traced_only_with_the_group_debug() {
    let (plain, debugger) = (Yard::new(), Yard::with(DEBUG));
    assert_eq!(try_inside(&plain, &OWN), [EPERM; 5]);
    assert_eq!(try_inside(&debugger, &OWN), [0; 5]);
}

/// Looking into PID 1, which is a copy of the launcher. Tried under `debug`; the controls are the same words on a child, above.
const INIT: &[Case<'_>] = &[
    ("PT seize", "call ptrace 0x4206 1 0 0", EPERM, NotTried),
    ("PT attach", "call ptrace 16 1 0 0", EPERM, NotTried),
    ("PT read memory", "read-memory 1", EPERM, NotTried),
    ("PT take a descriptor", "take-descriptor 1", EPERM, NotTried),
    ("PT compare", "call kcmp 1 1 0 0 0", EPERM, NotTried),
    ("PT mem", "read /proc/1/mem", EACCES, NotTried),
    ("PT mem for writing", "write /proc/1/mem", EACCES, NotTried),
    ("PT environ", "read /proc/1/environ", EACCES, NotTried),
    ("PT auxv", "read /proc/1/auxv", EACCES, NotTried),
    ("PT exe", "read /proc/1/exe", EACCES, NotTried),
    ("PT root", "list /proc/1/root/", EACCES, NotTried),
    ("PT cwd", "list /proc/1/cwd/", EACCES, NotTried),
    ("PT descriptors", "list /proc/1/fd", EACCES, NotTried),
    ("PT a namespace", "read /proc/1/ns/mnt", EACCES, NotTried),
    ("PT self, for contrast", "read /proc/self/environ", 0, Works),
    ("PT self, for contrast", "read /proc/self/exe", 0, Works),
    ("PT self, for contrast", "list /proc/self/fd", 0, Works),
    ("PT self, for contrast", "list /proc/self/root/", 0, Works),
    ("PT nobody", "call ptrace 0x4206 99999999 0 0", libc::ESRCH, NotTried),
];

#[test]
fn pid_1_cannot_be_looked_into_even_by_a_debugger() {
    // Should an attempt work, PID 1 stands still and only the time limit ends the run.
    check(&Yard::with(&format!("{DEBUG}\n[limits]\nwall_time = \"10s\"")), INIT);
}

#[test]
fn pid_1_holds_nothing_of_stockade_s_environment_and_arguments() {
    const CANARIES: [&str; 2] = ["canary-in-the-environment", "canary-in-the-arguments"];
    let yard = Yard::new();
    let mut command = yard.command();
    // The first is not passed on; the second goes to the command alone.
    command.env("STOCKADE_TEST_SECRET", CANARIES[0]).args(["--", "/bin/bash", "-c", "echo ready; read -r _ || exit 0"]);
    command.arg(CANARIES[1]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut stockade = command.spawn().expect("stockade starts");
    let mut ready = String::new();
    BufReader::new(stockade.stdout.take().expect("a pipe")).read_line(&mut ready).expect("a line");
    assert_eq!(ready, "ready\n");
    let launcher = only_child(stockade.id());
    let init = only_child(launcher);
    for pid in [launcher, init] {
        let environ = std::fs::read(format!("/proc/{pid}/environ"));
        if is_root() {
            assert_eq!(found(&environ.expect("root reads it"), &CANARIES), [""; 0], "environment of {pid}");
            let memory = memory(pid);
            assert!(memory.len() > 4096, "nothing was read");
            assert_eq!(found(&memory, &CANARIES), [""; 0], "memory of {pid}");
        } else if pid == init {
            assert_eq!(environ.expect_err("not dumpable").raw_os_error(), Some(EACCES));
        }
    }
    // The control: stockade itself holds both.
    assert_eq!(found(&memory(stockade.id()), &CANARIES), CANARIES);
    drop(stockade.stdin.take());
    assert_eq!(stockade.wait().expect("a child").code(), Some(0));
}

fn only_child(pid: u32) -> u32 {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("children");
    let children: Vec<u32> = children.split_whitespace().map(|pid| pid.parse().expect("a PID")).collect();
    assert_eq!(children.len(), 1, "children of {pid}: {children:?}");
    children[0]
}

fn found<'a>(bytes: &[u8], canaries: &[&'a str]) -> Vec<&'a str> {
    let has = |text: &&str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    canaries.iter().copied().filter(has).collect()
}

/// All writable memory of a process.
fn memory(pid: u32) -> Vec<u8> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("maps");
    let mut file = std::fs::File::open(format!("/proc/{pid}/mem")).expect("memory");
    let mut all = Vec::new();
    for line in maps.lines().filter(|line| line.contains(" rw")) {
        let (start, end) = line.split(' ').next().and_then(|range| range.split_once('-')).expect("a range");
        let address = |text| u64::from_str_radix(text, 16).expect("an address");
        file.seek(SeekFrom::Start(address(start))).expect("a place");
        // A hole in the middle (a guard page) ends this part of it.
        let _ = (&mut file).take(address(end) - address(start)).read_to_end(&mut all);
    }
    all
}

#[test]
fn tracing_a_setuid_program_gives_no_privilege() {
    let program = ["/usr/bin/passwd", "/usr/bin/chfn", "/usr/bin/newgrp"]
        .into_iter()
        .find(|path| std::fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o4000 != 0))
        .expect("this host has no setuid program to try");
    let yard = Yard::with(DEBUG);
    let outcome = yard.run(&[&yard.probe_path(), "traced-exec", program]);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let line = |key: &str| outcome.stdout.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let ids: Vec<&str> = line("Uid:").expect("ids").split_whitespace().collect();
    assert!(ids.iter().all(|id| *id == ids[0]) && ids[0] != "0", "{ids:?}");
    assert_eq!((line("NoNewPrivs:"), line("CapPrm:")), (Some("1"), Some("0000000000000000")));
}

#[test]
fn another_command_is_not_there_to_be_traced() {
    let yard = Yard::with(DEBUG);
    let mut command = yard.command();
    let line = "echo ready; read -r _ || exit 0";
    command.args(["--", "/bin/bash", "-c", line, "other-command-canary"]);
    let mut other = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("stockade starts");
    let mut ready = String::new();
    BufReader::new(other.stdout.take().expect("a pipe")).read_line(&mut ready).expect("a line");
    let search = "cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -c \"^${0%X}$\"";
    let outcome = yard.run(&["/bin/bash", "-c", search, "other-command-canaryX"]);
    assert_eq!(outcome.stdout, "0\n", "{outcome:?}");
    // The control: a search finds what runs beside it in the same cell.
    let beside = format!(
        "coproc bash -c 'echo; read -r _' other-command-canary; read -r _ <&${{COPROC[0]}}; {search}; kill $COPROC_PID"
    );
    let outcome = yard.run(&["/bin/bash", "-c", &beside, "other-command-canaryX"]);
    drop(other.stdin.take());
    assert_eq!(other.wait().expect("a child").code(), Some(0));
    assert_eq!(outcome.stdout, "1\n", "{outcome:?}");
}

/// What a process may set about itself does not let it outlive stockade (PT-03).
#[test]
fn a_cleared_death_signal_leaves_no_orphan() {
    let yard = Yard::new();
    let fifo = yard.workspace.path().join("alive");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::from_bits_truncate(0o666)).expect("a FIFO");
    std::fs::set_permissions(&fifo, std::fs::Permissions::from_mode(0o666)).expect("a mode");
    let line = "exec 9>alive; for i in 1 2 3; do setsid setpriv --pdeathsig clear sleep 1000 & done; \
                echo ready >&9; exec setpriv --pdeathsig clear sleep 1000";
    let mut stockade = yard.command().args(["--", "/bin/bash", "-c", line]).spawn().expect("stockade starts");
    let mut alive = BufReader::new(std::fs::File::open(&fifo).expect("the writers"));
    let mut ready = String::new();
    alive.read_line(&mut ready).expect("a line");
    assert_eq!(ready, "ready\n");
    stockade.kill().expect("SIGKILL");
    stockade.wait().expect("a child");
    // The end of the file comes when the last of them is dead.
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || tell.send(alive.read_to_end(&mut Vec::new()).is_ok()));
    assert_eq!(told.recv_timeout(std::time::Duration::from_secs(10)), Ok(true), "something outlived stockade");
}

#[test]
fn a_handle_on_a_host_process_cannot_be_had() {
    let own = std::process::id();
    check(
        &Yard::with(DEBUG),
        &[
            ("PT-06 open", &format!("call pidfd_open {own} 0"), libc::ESRCH, Works),
            ("PT-06 memory", &format!("read-memory {own}"), libc::ESRCH, Differs),
        ],
    );
}

/// PID 1 would stumble over limits that the command gave it, and the command's end would be told wrong.
#[test]
fn the_limits_of_pid_1_are_not_the_commands_to_set() {
    let set = |pid: &str| format!("import resource; resource.prlimit({pid}, resource.RLIMIT_NOFILE, (64, 64))");
    let yard = Yard::new();
    let outcome = yard.run(&["python3", "-c", &set("1")]);
    assert!(outcome.code == 1 && outcome.stderr.contains("PermissionError"), "{outcome:?}");
    assert_eq!(yard.run(&["python3", "-c", &set("0")]).code, 0, "control: its own");
}
