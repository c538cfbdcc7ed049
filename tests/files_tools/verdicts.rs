//! A tool and a shell get the same verdict on the same path, because the same walls judge both.

use crate::desk::Desk;
use crate::support::Scratch;
use serde_json::json;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

const POLICY: &str = "[filesystem]\nread_only_roots = [\"{ground}/ro\"]\nhidden = [\"hidden\"]\n";

fn prepare(ground: &Scratch) {
    for name in ["work/in", "work/dir/f", "work/hidden", "ro/f", "outside/secret"] {
        ground.file(name, "text\n");
    }
    let at = |name: &str| ground.path().join(name);
    for (target, link) in [
        ("in", "work/link-in"),
        ("../outside/secret", "work/link-out"),
        ("../outside/new", "work/link-new"),
        ("../ro/f", "work/link-ro"),
        ("loop", "work/loop"),
        ("/proc/self/environ", "work/link-proc"),
    ] {
        symlink(target, at(link)).expect("a link");
    }
    symlink(at("outside"), at("work/door")).expect("a link");
    nix::unistd::mkfifo(&at("work/fifo"), nix::sys::stat::Mode::S_IRWXU).expect("a FIFO");
    drop(UnixListener::bind(at("work/socket")).expect("a socket"));
}

/// Paths; whether a shell can read them to an end and replace them, apart from nodes that are no files.
const PATHS: &[&str] = &[
    "in",
    "dir/../in",
    "./dir//f",
    "link-in",
    "link-out",
    "link-ro",
    "door/secret",
    "loop",
    "hidden",
    "none",
    "in/below",
    "../ro/f",
    "../outside/secret",
    "../outside",
    "dir",
    "/etc/shadow",
    "/etc/passwd",
    "/root",
    "/var/lib/stockade",
    "/usr/bin/env",
];

/// Nothing that a file tool reads or writes, whatever a shell could do with it.
const NODES: &[&str] = &["fifo", "socket", "/dev/zero", "/dev/null", "/dev/tty", "/proc/self/environ", "link-proc"];

#[test]
fn reading_is_judged_alike() {
    let mut desk = Desk::with(POLICY, prepare);
    for path in PATHS {
        let shell = desk.ok("run", json!({ "argv": ["/bin/cat", "--", path] }));
        let tool = desk.call("fs_read", &json!({ "path": path }));
        assert_eq!(tool["isError"] == true, shell["exit_code"] != 0, "`{path}`: {tool} but {shell}");
        assert!(!tool.to_string().contains("root:x") || *path == "/etc/passwd", "{tool}");
    }
    for path in NODES {
        let (code, message) = desk.refused("fs_read", json!({ "path": path }));
        assert!(["NOT_A_FILE", "PATH_NOT_ALLOWED", "NOT_FOUND"].contains(&&*code), "`{path}` {code}: {message}");
    }
}

#[test]
fn writing_is_judged_alike() {
    let mut desk = Desk::with(POLICY, prepare);
    for path in PATHS.iter().chain(&["new", "link-new", "../ro/new", "../outside/new", "/usr/new", "/etc/passwd"]) {
        let shell = desk.ok("run", json!({ "argv": ["/bin/bash", "-c", "echo text > \"$1\"", "sh", path] }));
        let tool = desk.call("fs_write", &json!({ "path": path, "content": "text\n" }));
        assert_eq!(tool["isError"] == true, shell["exit_code"] != 0, "`{path}`: {tool} but {shell}");
    }
    assert!(!desk.ground.path().join("outside/new").exists(), "a dangling link made a file outside");
    for path in NODES {
        let (code, message) = desk.refused("fs_write", json!({ "path": path, "content": "x" }));
        assert!(["NOT_A_FILE", "PATH_NOT_ALLOWED", "NOT_FOUND"].contains(&&*code), "`{path}` {code}: {message}");
    }
    let secret = std::fs::read_to_string(desk.ground.path().join("outside/secret")).unwrap();
    assert_eq!(secret, "text\n");
}
