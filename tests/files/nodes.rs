//! What is no plain file: devices, set-id bits, capabilities and flags on files, watches.

use crate::support::{Yard, is_root};
use libc::{EACCES, ENOENT, ENOSYS, EPERM, EROFS};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};

fn yard() -> Yard {
    let yard = Yard::away("");
    yard.workspace.file("own", "text");
    yard
}

/// FS-10.
#[test]
fn a_device_node_can_be_neither_made_nor_used() {
    let yard = yard();
    yard.inside(&[
        ("node {w}/c c 1 3", EPERM),
        ("node {w}/b b 254 0", EPERM),
        ("node /tmp/mem c 1 1", EPERM),
        ("node /tmp/loop b 7 0", EPERM),
        ("node /tmp/fuse c 10 229", EPERM),
        ("node {w}/pipe p 0 0", 0),
        ("node {w}/socket s 0 0", 0),
    ]);
    // `/dev/null` under another name, put there from outside.
    yard.outside(&[("node {w}/null c 1 3", if is_root() { 0 } else { EPERM })]);
    if is_root() {
        yard.denied(&[("read {w}/null", EACCES), ("append {w}/null", EACCES)]);
    }
    yard.inside(&[("read /dev/null", 0)]);
}

/// FS-11.
#[test]
fn the_devices_are_eight_harmless_ones() {
    let yard = yard();
    let seen = yard.shell("cd /dev && ls -A | sort | tr '\\n' ' '").stdout;
    assert_eq!(seen, "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero ");
    let known: Vec<&str> = seen.split_whitespace().collect();
    let host: Vec<String> = fs::read_dir("/dev")
        .expect("the host's devices")
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_char_device() || kind.is_block_device()))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| !known.contains(&name.as_str()))
        .collect();
    assert!(!host.is_empty(), "control: the host has more");
    let cases: Vec<String> = host.iter().map(|name| format!("stat /dev/{name}")).collect();
    yard.denied(&cases.iter().map(|case| (case.as_str(), ENOENT)).collect::<Vec<_>>());
    yard.inside(
        &["null", "zero", "full", "urandom"]
            .map(|name| format!("write /dev/{name}"))
            .each_ref()
            .map(|case| (case.as_str(), 0)),
    );
}

/// FS-12.
#[test]
fn no_file_gets_a_set_id_bit() {
    let yard = yard();
    yard.inside(&[
        ("chmod {w}/own 4755", EPERM),
        ("chmod {w}/own 2755", EPERM),
        ("chmod {w}/own 6755", EPERM),
        ("fchmod {w}/own 4755", EPERM),
        ("fchmodat2 {w}/own 4755", ENOSYS),
        ("create-as {w}/a 4755", EPERM),
        ("create-as {w}/b 2755", EPERM),
        ("creat-as {w}/c 4755", EPERM),
        ("openat2-as {w}/d 4755", ENOSYS),
        ("temporary-as {w} 4755", EPERM),
        ("node {w}/e 4755 0 0", EPERM),
        ("chmod /tmp 4777", EPERM),
        ("chmod {w}/own 1755", 0),
        ("chmod {w}/own 755", 0),
        ("create-as {w}/f 755", 0),
        ("temporary-as {w} 755", 0),
    ]);
    let set_id = |name: &str| yard.workspace.path().join(name).metadata().is_ok_and(|m| m.mode() & 0o6000 != 0);
    for name in ["own", "a", "b", "c", "d", "e", "f"] {
        assert!(!set_id(name), "{name}");
    }
    yard.shell("cp /bin/sh s; chmod 6755 s; cp --preserve=mode /usr/bin/passwd p; install -m 4755 /bin/sh i; true");
    for name in ["s", "p", "i"] {
        assert!(!set_id(name), "{name}");
    }
    yard.outside(&[("chmod {w}/own 6755", 0)]);
    assert!(set_id("own"), "control");
}

/// FS-12: what was set-user-id before cannot be given another content.
#[test]
fn a_set_id_file_that_is_written_to_loses_its_bit() {
    let yard = yard();
    let path = yard.workspace.path().join("own");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4755)).expect("a mode");
    yard.inside(&[("append {w}/own", 0)]);
    assert_eq!(path.metadata().expect("still there").mode() & 0o7777, 0o755);
}

/// FS-13, FS-14.
#[test]
fn capabilities_and_flags_cannot_be_put_on_a_file() {
    let yard = yard();
    let root = if is_root() { 0 } else { EPERM };
    yard.inside(&[
        ("attribute {w}/own security.capability", EPERM),
        ("attribute {w}/own trusted.x", EPERM),
        ("attribute {w}/own user.x", 0),
        ("immutable {w}/own", EPERM),
    ]);
    yard.outside(&[("attribute {w}/own security.capability", root)]);
    let flags = yard.workspace.file("flags", "text");
    yard.outside(&[("immutable {w}/flags", root)]);
    if is_root() {
        let cleared = std::process::Command::new("chattr").arg("-i").arg(&flags).status().expect("chattr starts");
        assert!(cleared.success());
    }
}

/// FS-16, FS-17: watching single directories is allowed, where they can be seen at all.
#[test]
fn only_what_is_visible_can_be_watched() {
    let yard = yard();
    yard.beside.file("secret", "token");
    yard.denied(&[("watch-all", EPERM), ("watch {b}", 0), ("watch {b}/secret", ENOENT)]);
    yard.inside(&[("watch {w}", 0), ("watch /usr/lib", 0), ("watch {b}/../..", 0)]);
}

/// FS-26: the kernel makes a character device 0:0 for a whiteout and asks nobody; it opens nothing.
#[test]
fn a_whiteout_is_a_node_that_cannot_be_opened() {
    let yard = yard();
    yard.inside(&[
        ("whiteout {w}/own {w}/moved", 0),
        ("read {w}/moved", 0),
        ("read {w}/own", EACCES),
        ("remove {w}/own", 0),
    ]);
}

/// FS-14: whatever an agent leaves, its workspace can be removed.
#[test]
fn a_workspace_can_always_be_removed() {
    let yard = yard();
    yard.shell("mkdir -p a/b/c && touch a/b/c/f && chmod 000 a/b/c/f a/b/c a/b a; mkfifo p; ln -s loop loop");
    // Root passes closed directories; the owner opens them first.
    if !is_root() {
        for name in ["a", "a/b", "a/b/c"] {
            fs::set_permissions(yard.workspace.path().join(name), fs::Permissions::from_mode(0o700)).expect("ours");
        }
    }
    fs::remove_dir_all(yard.workspace.path()).expect("nothing is in the way");
    yard.beside.file("read-only", "");
    assert!(!yard.workspace.path().exists());
}

/// FS-12 again, for the case that matters most: the host's root gets no program from an agent.
#[test]
fn a_file_made_for_roots_workspace_is_never_set_id_root() {
    let yard = yard();
    yard.shell("cp /bin/sh s; chmod u+s s; chmod g+s s; chmod g+s .; mkdir d; chmod 2775 d; true");
    for name in ["s", ".", "d"] {
        let mode = yard.workspace.path().join(name).metadata().expect("it was made").mode();
        assert_eq!(mode & 0o6000, 0, "{name}");
    }
    yard.inside(&[
        ("chown {w}/own 0 0", libc::EINVAL),
        ("chmod /usr/bin/env 4755", EPERM),
        ("touch /usr/bin/env", EROFS),
    ]);
}
