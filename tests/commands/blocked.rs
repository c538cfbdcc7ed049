//! `blocked`: the program can be neither run nor read, by whatever name.

use crate::support::Yard;
use crate::{ENCODED, try_way};

/// How `base64` could be run, and the exit code when it is blocked: 126 from a shell, 127 from the loader, else errno.
const WAYS: &[(&str, i32)] = &[
    ("base64 /etc/hostname", 126),
    ("/usr/bin/base64 /etc/hostname", 126),
    ("/bin/base64 /etc/hostname", 126),
    ("//usr/./bin/../bin/base64 /etc/hostname", 126),
    ("/proc/self/root/usr/bin/base64 /etc/hostname", 126),
    ("cd /usr/bin && ./base64 /etc/hostname", 126),
    ("printf '#!/bin/sh\\nexec base64 /etc/hostname\\n' > s; chmod +x s; ./s", 126),
    ("printf '#!/usr/bin/base64 /etc/hostname' > s; chmod +x s; ./s 2>/dev/null || (base64 /etc/hostname)", 126),
    ("env base64 /etc/hostname", 126),
    ("echo /etc/hostname | xargs base64", 126),
    ("ln -s /usr/bin/base64 /tmp/other; /tmp/other /etc/hostname", 126),
    ("LOADER /usr/bin/base64 /etc/hostname", 127),
    ("LOADER --preload '' /usr/bin/base64 /etc/hostname", 127),
    ("PROBE execve /usr/bin/base64 /etc/hostname", libc::EACCES),
    ("PROBE execveat /usr/bin/base64 /etc/hostname", libc::EACCES),
    ("PROBE execute-copy-in-memory /usr/bin/base64 /etc/hostname", libc::EACCES),
    (
        "python3 -c 'import os, sys\ntry: os.execv(\"/usr/bin/base64\", [\"base64\", \"/etc/hostname\"])\nexcept OSError as e: sys.exit(e.errno)'",
        libc::EACCES,
    ),
    ("awk 'BEGIN { exit system(\"/usr/bin/base64 /etc/hostname\") }'", 126),
    ("cp /usr/bin/base64 /tmp/copy; /tmp/copy /etc/hostname", 127),
    ("cat /usr/bin/base64 > copy; chmod +x copy; LOADER ./copy /etc/hostname", 127),
    ("exec 9< /usr/bin/base64 && PROBE execve /proc/self/fd/9 /etc/hostname", 1),
];

/// Reads of the file itself.
const READS: &[(&[&str], i32)] = &[
    (&["read", "/usr/bin/base64"], libc::EACCES),
    (&["map-executable", "/usr/bin/base64"], libc::EACCES),
    (&["read", "/proc/self/root/usr/bin/base64"], libc::EACCES),
];

fn blocking() -> Yard {
    Yard::with("[commands]\nblocked = [\"base64\"]")
}

#[test]
fn a_blocked_program_runs_by_no_way() {
    let (blocking, open) = (blocking(), Yard::new());
    for (script, code) in WAYS {
        let outcome = try_way(&blocking, script);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (*code, ""), "{script}: {outcome:?}");
        let control = try_way(&open, script);
        assert_eq!((control.code, control.stdout.as_str()), (0, ENCODED), "control: {script}: {control:?}");
    }
}

#[test]
fn a_blocked_program_cannot_be_read() {
    let (blocking, open) = (blocking(), Yard::new());
    for (attempt, errno) in READS {
        assert_eq!(blocking.probe(attempt), *errno, "{attempt:?}");
        assert_eq!(open.probe(attempt), 0, "control: {attempt:?}");
    }
}

#[test]
fn the_cover_of_a_blocked_program_cannot_be_taken_off() {
    let blocking = blocking();
    for (attempt, errno) in [
        (vec!["chmod", "755", "/usr/bin/base64"], "Read-only file system"),
        (vec!["rm", "-f", "/usr/bin/base64"], "Read-only file system"),
        (vec!["mv", "/usr/bin/base64", "/tmp/x"], "Permission denied"),
        (vec!["ln", "/usr/bin/base64", "/tmp/x"], "Invalid cross-device link"),
    ] {
        let outcome = blocking.run(&attempt);
        assert_eq!(outcome.code, 1, "{attempt:?}: {outcome:?}");
        assert!(outcome.stderr.contains(errno), "{attempt:?}: {outcome:?}");
    }
    assert_eq!(blocking.run(&["chmod", "755", "/tmp"]).code, 0, "control: chmod works");
}

#[test]
fn a_blocked_command_is_refused_by_name_before_anything_is_made() {
    for argv in [&["base64", "x"][..], &["/usr/bin/base64"]] {
        let outcome = blocking().run(argv);
        assert_eq!(outcome.code, 125, "{outcome:?}");
        let expected = format!(
            "error: `{}` is not allowed: `base64` is in `blocked`\nhint: `stockade policy show` prints the command lists in force\n",
            argv.join(" ")
        );
        assert_eq!(outcome.stderr, expected);
    }
    assert_eq!(blocking().run(&["cat", "/etc/hostname"]).code, 0, "control");
}

#[test]
fn blocked_wins_over_allowed() {
    let both = Yard::with("[commands]\nallowed = [\"bash\", \"cat\", \"base64\"]\nblocked = [\"base64\"]");
    let outcome = both.shell("base64 /etc/hostname");
    assert_eq!((outcome.code, outcome.stdout.as_str()), (126, ""), "{outcome:?}");
    assert_eq!(both.shell("cat /etc/hostname").stdout, "stockade\n", "control");
    let allowed = Yard::with("[commands]\nallowed = [\"bash\", \"cat\", \"base64\"]");
    assert_eq!(allowed.shell("base64 /etc/hostname").stdout, ENCODED, "control");
}

#[test]
fn a_pattern_blocks_every_name_it_fits() {
    let yard = Yard::with("[commands]\nblocked = [\"base*\"]");
    for name in ["base32", "base64", "basename"] {
        assert_eq!(yard.shell(&format!("{name} /etc/hostname")).code, 126, "{name}");
        assert_eq!(Yard::new().shell(&format!("{name} /etc/hostname")).code, 0, "control: {name}");
    }
    assert_eq!(yard.shell("bash -c true").code, 0, "control: another name");
}

/// Programs of this machine with another name in another place, as `(name, the other path)`.
fn hard_links() -> Vec<(String, String)> {
    use std::os::unix::fs::MetadataExt;
    let mut known = std::collections::HashMap::new();
    for directory in
        ["/usr/bin", "/usr/local/bin", "/usr/lib/git-core", "/usr/libexec/git-core", "/usr/local/libexec/git-core"]
    {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let Ok(file) = entry.metadata() else { continue };
            if file.is_file() && file.nlink() > 1 {
                known.entry((file.dev(), file.ino())).or_insert_with(Vec::new).push(entry.path());
            }
        }
    }
    let name = |path: &std::path::PathBuf| Some((path.file_name()?.to_str()?.to_owned(), path.to_str()?.to_owned()));
    let pairs = known.values().filter(|names| names.len() > 1 && names[0].parent().is_some_and(|p| p.ends_with("bin")));
    pairs.filter_map(|names| Some((name(&names[0])?.0, name(names.last()?)?.1))).collect()
}

#[test]
fn blocking_one_name_of_a_file_blocks_its_hard_links_too() {
    let mut pairs = hard_links();
    assert!(!pairs.is_empty(), "this machine has no program with two names: install perl or git");
    pairs.truncate(6);
    for (name, other) in &pairs {
        let yard = Yard::with(&format!("[commands]\nblocked = [\"{name}\"]"));
        assert_eq!(yard.probe(&["read", other]), libc::EACCES, "{name} is blocked, {other} is the same file");
        assert_eq!(yard.probe(&["execve", other]), libc::EACCES, "{name} is blocked, {other} is the same file");
        assert_eq!(Yard::new().probe(&["read", other]), 0, "control: {other}");
    }
}

#[test]
fn a_program_in_a_root_can_be_blocked_by_its_path() {
    let yard = Yard::with("[commands]\nblocked = [\"{beside}/probe/tool\"]");
    std::fs::copy(yard.probe_path(), yard.beside.path().join("probe/tool")).expect("a copy");
    let tool = yard.beside.path().join("probe/tool").display().to_string();
    assert_eq!(yard.probe(&["execve", &tool, "read", "/etc/hostname"]), libc::EACCES);
    assert_eq!(yard.probe(&["read", &tool]), libc::EACCES);
    let open = Yard::new();
    std::fs::copy(open.probe_path(), open.beside.path().join("probe/tool")).expect("a copy");
    let tool = open.beside.path().join("probe/tool").display().to_string();
    assert_eq!(open.probe(&["execve", &tool, "read", "/etc/hostname"]), 0, "control");
}
