//! Open files, the size of one file, and the private tmpfs: its bytes and its inodes.

use crate::ends::{json, printed, probe};
use crate::support::Yard;

const MIB: u64 = 1 << 20;

#[test]
fn files_beyond_the_limit_cannot_be_opened() {
    let yard = Yard::with("[limits]\nopen_files = 64");
    let outcome = probe(&yard, &["open"]);
    assert_eq!(outcome.code, libc::EMFILE);
    // 0, 1 and 2 count; nothing else was open.
    assert_eq!(printed(&outcome.stdout, "count"), 61);
    assert_eq!(yard.probe(&["open-in", "20"]), libc::EMFILE, "in every process");
    assert_eq!(yard.probe(&["raise-limit", &libc::RLIMIT_NOFILE.to_string()]), libc::EPERM);

    let outcome = probe(&Yard::with("[limits]\nopen_files = 256"), &["open"]);
    assert_eq!((outcome.code, printed(&outcome.stdout, "count")), (libc::EMFILE, 253), "control");
}

#[test]
fn descriptors_inside_messages_are_bounded_by_the_same_limit() {
    let yard = Yard::with("[limits]\nopen_files = 64");
    let outcome = probe(&yard, &["in-flight"]);
    assert_eq!(outcome.code, libc::ETOOMANYREFS, "{outcome:?}");
    let larger = probe(&Yard::with("[limits]\nopen_files = 256"), &["in-flight"]);
    assert_eq!(larger.code, libc::ETOOMANYREFS, "{larger:?}");
    assert!(printed(&larger.stdout, "count") > printed(&outcome.stdout, "count"), "control");
}

#[test]
fn a_file_beyond_the_size_limit_is_refused_with_efbig() {
    let yard = Yard::with("[limits]\nfile_size = \"1M\"");
    for place in ["/tmp", "/home/agent", yard.workspace.path().to_str().expect("text")] {
        let path = format!("{place}/file");
        let outcome = probe(&yard, &["fill", &path, "2"]);
        assert_eq!((outcome.code, printed(&outcome.stdout, "bytes")), (libc::EFBIG, MIB), "{place}");
        assert_eq!(yard.probe(&["fill", &path, "1"]), 0, "control: {place}");
    }
    for (script, complaint) in [
        ("fallocate -l 100G big", "File too large"),
        ("truncate -s 100G big", "File too large"),
        ("dd if=/dev/zero of=big bs=1M count=2", "File too large"),
    ] {
        let outcome = yard.shell(&format!("trap '' XFSZ; {script}"));
        assert!(outcome.code == 1 && outcome.stderr.contains(complaint), "{script}: {outcome:?}");
    }
    assert_eq!(yard.shell("fallocate -l 1M small").code, 0, "control");
    assert_eq!(yard.probe(&["raise-limit", &libc::RLIMIT_FSIZE.to_string()]), libc::EPERM);
    assert_eq!(Yard::with("[limits]\nfile_size = \"2M\"").probe(&["fill", "/tmp/file", "2"]), 0, "control");
}

#[test]
fn the_private_directories_together_hold_no_more_than_tmp_size() {
    let yard = Yard::with("[filesystem]\ntmp_size = \"8M\"");
    for place in ["/tmp", "/var/tmp", "/dev/shm", "/home/agent"] {
        let outcome = probe(&yard, &["fill", &format!("{place}/file"), "64"]);
        assert_eq!(outcome.code, libc::ENOSPC, "{place}: {outcome:?}");
        let reached = printed(&outcome.stdout, "bytes");
        assert!((7 * MIB..=8 * MIB).contains(&reached), "{place}: {reached}");
        assert_eq!(yard.probe(&["fill", &format!("{place}/file"), "4"]), 0, "control: {place}");
    }
    let probe = yard.probe_path();
    let script = format!(
        "{probe} fill /tmp/a 3 && {probe} fill /dev/shm/b 2 && {probe} fill /home/agent/c 1 || exit 1; {probe} fill /var/tmp/d 6"
    );
    let outcome = yard.shell(&script);
    assert_eq!(outcome.code, libc::ENOSPC, "{outcome:?}");
}

#[test]
fn a_full_tmpfs_is_no_space_left_and_never_out_of_memory() {
    // Larger than the cell's memory: a policy like this must not turn a full disk into a killed command.
    let yard = Yard::with("[filesystem]\ntmp_size = \"32M\"\n[limits]\nmemory = \"96M\"");
    let path = yard.probe_path();
    for place in ["/tmp/file", "/dev/shm/file"] {
        let (code, result) = json(&yard, &[&path, "fill", place, "512"]);
        assert_eq!((code, result["reason"].as_str()), (libc::ENOSPC, Some("exit")), "{place}: {result}");
    }
}

#[test]
fn empty_files_run_out_too() {
    let yard = Yard::with("[filesystem]\ntmp_inodes = 100");
    for place in ["/tmp", "/dev/shm", "/home/agent", "/var/tmp"] {
        let outcome = probe(&yard, &["create-many", place]);
        assert_eq!(outcome.code, libc::ENOSPC, "{place}: {outcome:?}");
        let reached = printed(&outcome.stdout, "count");
        // The private directories and the way to the workspace are files too.
        assert!((80..=100).contains(&reached), "{place}: {reached}");
    }
    let more = probe(&Yard::with("[filesystem]\ntmp_inodes = 1000"), &["create-many", "/tmp"]);
    assert!(more.code == libc::ENOSPC && printed(&more.stdout, "count") > 900, "control: {more:?}");
}

#[test]
fn the_rest_of_the_tree_cannot_be_filled_at_all() {
    let yard = Yard::new();
    for place in ["/file", "/run/file", "/var/file", "/mnt/file", "/etc/file", "/usr/file"] {
        assert_eq!(yard.probe(&["fill", place, "1"]), libc::EROFS, "{place}");
    }
    for place in ["/dev/file", "/dev/pts/file", "/proc/file"] {
        assert_ne!(yard.probe(&["fill", place, "1"]), 0, "{place}");
    }
    assert_eq!(yard.probe(&["fill", "/tmp/file", "1"]), 0, "control");
}

#[test]
fn a_tree_deeper_than_any_path_is_no_trouble_at_the_end() {
    let yard = Yard::new();
    let outcome = yard
        .shell("for i in $(seq 300); do mkdir directory-of-20-chars && cd -P directory-of-20-chars || exit 1; done");
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let name = yard.workspace.path().to_owned();
    drop(yard);
    assert!(!name.exists(), "it can be removed from outside");
}
