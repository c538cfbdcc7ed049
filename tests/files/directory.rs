//! The working directory: inside, whatever its name turns into.

use crate::support::Yard;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Lets the swapping thread end, also when the test fails: a scope waits for its threads.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// FD-07, BX-11.
#[test]
fn a_working_directory_is_a_plain_path_in_a_root() {
    let yard = Yard::away("[filesystem]\nhidden = [\"vault\"]");
    yard.workspace.directory("sub");
    yard.workspace.directory("vault");
    yard.workspace.file("file", "text");
    for refused in [
        "/proc/self/fd/3",
        "/proc/self/cwd",
        "/proc/1/root",
        "/dev/fd/0",
        "/",
        "/etc",
        "/usr",
        "{b}",
        "~",
        "{w}/../..",
        "{w}/sub/../..",
        "{w}/vault",
        "{w}/missing",
        "{w}/file",
        "/root",
        "/tmp/../etc",
    ] {
        let path = yard.fill(refused);
        let output = yard.command().args(["--cwd", &path, "--", "/bin/pwd"]).output().expect("stockade starts");
        assert_eq!(output.status.code(), Some(125), "{refused}: {output:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{refused}: {output:?}");
    }
    for fine in ["{w}", "{w}/sub", "/tmp", "/home/agent"] {
        let path = yard.fill(fine);
        let output = yard.command().args(["--cwd", &path, "--", "/bin/pwd"]).output().expect("stockade starts");
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim_end(), path, "{output:?}");
    }
}

/// FD-07: links that the agent planted lead, at most, to another place in its own cell; never into `/proc`.
#[test]
fn a_planted_link_is_no_way_out() {
    let yard = Yard::away("");
    yard.beside.directory("outside");
    for (name, to) in [
        ("magic", "/proc/self/root/proc"),
        ("cwd", "/proc/self/cwd"),
        ("fd", "/proc/self/fd"),
        ("out", yard.beside.path().join("outside").to_str().expect("text")),
        ("loop", "loop"),
    ] {
        symlink(to, yard.workspace.path().join(name)).expect("a link");
        let path = yard.workspace.path().join(name);
        let mut command = yard.command();
        let output = command.arg("--cwd").arg(&path).args(["--", "/bin/pwd", "-P"]).output().expect("stockade starts");
        let seen = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!seen.contains("unreachable") && !seen.starts_with("/proc"), "{name}: {output:?}");
        let expected = if name == "cwd" { Some(0) } else { Some(125) };
        assert_eq!(output.status.code(), expected, "{name}: {output:?}");
    }
}

/// FS-25.
#[test]
fn a_directory_that_is_swapped_while_commands_start_leads_nowhere() {
    let yard = Yard::away("");
    let (there, link) = (yard.workspace.directory("there"), yard.workspace.path().join("link"));
    let outside = yard.beside.directory("outside");
    symlink(&outside, &link).expect("a link");
    let done = AtomicBool::new(false);
    let (mut inside, mut refused) = (0, 0);
    let swaps = std::thread::scope(|scope| {
        let swapper = scope.spawn(|| {
            let mut swaps = 0_u64;
            while !done.load(Ordering::Relaxed) {
                nix::fcntl::renameat2(
                    nix::fcntl::AT_FDCWD,
                    &there,
                    nix::fcntl::AT_FDCWD,
                    &link,
                    nix::fcntl::RenameFlags::RENAME_EXCHANGE,
                )
                .expect("a swap");
                swaps += 1;
            }
            swaps
        });
        let ends = Done(&done);
        let until = Instant::now() + Duration::from_secs(1);
        // A slow machine gets as many tries as a fast one.
        while Instant::now() < until || inside + refused < 4 {
            let mut command = yard.command();
            let output =
                command.arg("--cwd").arg(&there).args(["--", "/bin/pwd", "-P"]).output().expect("stockade starts");
            let seen = String::from_utf8_lossy(&output.stdout).into_owned();
            match output.status.code() {
                Some(0) => {
                    assert!(seen.starts_with(yard.workspace.path().to_str().expect("text")), "{output:?}");
                    inside += 1;
                }
                Some(125) => refused += 1,
                // `pwd` itself lost the race for its name.
                Some(1) => assert!(seen.is_empty(), "{output:?}"),
                _ => panic!("{output:?}"),
            }
        }
        drop(ends);
        swapper.join().expect("the swapper")
    });
    assert!(swaps > 1000, "control: {swaps} swaps, {inside} inside, {refused} refused");
}

/// FS-25, MT-07: a root swapped for a link while its cell is made is mounted as itself or not at all.
#[test]
fn a_root_that_is_swapped_for_a_link_is_never_another_directory() {
    let yard = Yard::away("");
    let (real, link) = (yard.beside.directory("work/real"), yard.beside.path().join("work/link"));
    let outside = yard.beside.file("outside/secret", "token");
    symlink(outside.parent().expect("a directory"), &link).expect("a link");
    let swap = || {
        let here = nix::fcntl::AT_FDCWD;
        nix::fcntl::renameat2(here, &real, here, &link, nix::fcntl::RenameFlags::RENAME_EXCHANGE).expect("a swap");
    };
    let done = AtomicBool::new(false);
    let mut mounted = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                // There and back, so that it is most often what its name says.
                swap();
                swap();
                std::thread::yield_now();
            }
        });
        let ends = Done(&done);
        let until = Instant::now() + Duration::from_secs(1);
        let mut tries = 0;
        while Instant::now() < until || (mounted == 0 && tries < 500) {
            tries += 1;
            let output = yard.command().arg("--rw").arg(&real).args(["--", "/bin/ls", "-A"]).arg(&real).output();
            let output = output.expect("stockade starts");
            // 2: at the moment the operator's word was read it named the other directory, which has its own path.
            assert!(matches!(output.status.code(), Some(0 | 2 | 125)), "{output:?}");
            assert!(output.stdout.is_empty(), "{output:?}");
            mounted += u32::from(output.status.success());
        }
        drop(ends);
    });
    assert!(mounted > 0, "control: it was mounted at least once");
}
