//! Descriptors: a command has three, and they are its own.

use crate::support::{Outcome, Yard};
use libc::{ENOENT, ESRCH};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

/// FD-02, FD-03, FD-10: whatever stockade itself was started with.
#[test]
fn a_command_has_its_three_pipes_and_nothing_else() {
    let yard = Yard::away("");
    let probe = yard.probe_path();
    let stockade = yard.command();
    let mut command = Command::new(&probe);
    command.args(["with-open", &yard.fill("{b}")]).arg(stockade.get_program()).args(stockade.get_args());
    command.args(["--", &probe, "descriptors"]).current_dir(yard.workspace.path()).stdin(Stdio::null());
    let output = command.output().expect("stockade starts");
    let seen = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = seen.lines().collect();
    assert_eq!(lines.len(), 3, "{seen}");
    for (number, line) in lines.iter().enumerate() {
        assert!(line.starts_with(&format!("{number} pipe:[")), "{seen}");
    }
    let outside = Command::new(&probe).args(["with-open", "/", &probe, "descriptors"]).output().expect("the probe");
    let outside = String::from_utf8_lossy(&outside.stdout).into_owned();
    assert!(
        ["7 /", "8 anon_inode", "9 socket", "200 /"].iter().all(|open| outside.contains(open)),
        "control: {outside}"
    );
}

/// FD-02, FD-08: the command's ends are never those of stockade's own caller, be they files, sockets or pipes.
#[test]
fn standard_streams_are_not_the_callers() {
    let yard = Yard::away("");
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    let file = std::fs::File::create(yard.beside.path().join("log")).expect("a file");
    let inode = |fd: &dyn AsFd| nix::sys::stat::fstat(fd.as_fd()).expect("open").st_ino;
    let socket = inode(&theirs);
    let mut command = yard.command();
    command.args(["--", &yard.probe_path(), "descriptors"]).stdin(std::os::fd::OwnedFd::from(theirs)).stderr(file);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let pipe = inode(&writer);
    let mut child = command.stdout(writer).spawn().expect("stockade starts");
    drop(command);
    drop(ours);
    let seen = std::io::read_to_string(reader).expect("its output");
    assert!(child.wait().expect("stockade ends").success());
    assert_eq!(seen.lines().filter(|line| line.contains(" pipe:[")).count(), 3, "{seen}");
    for foreign in [socket, pipe] {
        assert!(!seen.contains(&format!("[{foreign}]")), "{seen}");
    }
}

/// FD-04: its own output is all there is to read back.
#[test]
fn reading_the_output_back_finds_only_ones_own() {
    let yard = Yard::away("");
    let probe = yard.probe_path();
    let outcome = yard.run(&[&probe, "read-output-back"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (libc::EAGAIN, ""), "nothing was written yet: {outcome:?}");
    let outcome = yard.run_with_input(&["/bin/sh", "-c", "cat /dev/stdin >/dev/stdout; echo e >/dev/stderr"], b"in");
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("in", "e\n"), "control: it may open its own");
}

/// FD-05, SG-04.
#[test]
fn the_kernel_cannot_be_made_to_signal_the_host() {
    let yard = Yard::away("");
    // Higher than any pid that a small cell has.
    let mut host = Command::new("sleep").arg("1000").spawn().expect("a host process");
    let attempt = format!("write-output-owner {}", host.id());
    assert!(host.id() > 64, "control: no such pid in the cell");
    yard.inside(&[(&attempt, ESRCH), ("write-output-owner 1", 0)]);
    yard.outside(&[(&attempt, 0)]);
    host.kill().expect("our own child");
    host.wait().expect("our own child");
}

/// FD-06: a non-blocking output loses nothing, and stays the command's own affair.
#[test]
fn a_command_that_makes_its_output_nonblocking_harms_nobody() {
    const BYTES: usize = 1 << 20;
    let yard = Yard::away("");
    let mut command = yard.command();
    command.args(["--", &yard.probe_path(), "nonblocking-output", &BYTES.to_string()]);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let ours = writer.try_clone().expect("a second end");
    let child = command.stdout(writer).stderr(Stdio::piped()).spawn().expect("stockade starts");
    drop(command);
    let reading = std::thread::spawn(move || {
        let (mut reader, mut bytes) = (reader, vec![0; BYTES]);
        std::io::Read::read_exact(&mut reader, &mut bytes).map(|()| bytes)
    });
    let output = child.wait_with_output().expect("stockade ends");
    assert!(output.status.success(), "{output:?}");
    let bytes = reading.join().expect("a reader").expect("every byte arrived");
    assert!(bytes.iter().all(|byte| *byte == b'x'));
    let flags = nix::fcntl::fcntl(&ours, nix::fcntl::FcntlArg::F_GETFL).expect("open");
    assert_eq!(flags & libc::O_NONBLOCK, 0, "our own end blocks as before: {}", ours.as_raw_fd());
}

/// FD-03: a terminal is the cell's own, and the only thing a command with one has open.
#[test]
fn a_terminal_is_the_cells_own() {
    let yard = Yard::away("").flag("--tty");
    let probe = yard.probe_path();
    let outcome: Outcome = yard.run(&[&probe, "descriptors"]);
    let seen: Vec<&str> = outcome.stdout.lines().map(str::trim_end).collect();
    assert_eq!(seen, ["0 /dev/pts/0", "1 /dev/pts/0", "2 /dev/pts/0"], "{outcome:?}");
    yard.inside_terminal();
}

impl Yard {
    /// No other terminal is in sight.
    fn inside_terminal(&self) {
        let seen = self.shell("ls /dev/pts | tr '\\n' ' '").stdout;
        assert_eq!(seen.trim(), "0 ptmx");
        let host = std::fs::metadata("/dev/pts").expect("the host's terminals").dev();
        let inside = self.shell("stat -c %d /dev/pts").stdout;
        assert_ne!(inside.trim(), host.to_string(), "another devpts than the host's");
        self.outside(&[("stat /dev/pts/no-such", ENOENT)]);
    }
}
