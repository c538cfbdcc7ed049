//! An explicit `allowed` list: nothing else runs, neither a system's program nor a file that the agent wrote.

use crate::support::{Scratch, Yard};
use crate::{ENCODED, LOADER, try_way};
use std::fs;
use std::path::Path;

/// Enough to try things with; `base64` is not in it. The probe stands for an allowed program that is not a shell.
const LIST: &str = "\"bash\", \"cat\", \"cp\", \"ln\", \"chmod\", \"env\", \"python3\", \"{beside}/probe/probe\"";

fn listing(more: &str) -> Yard {
    let yard = Yard::with(&format!("[commands]\nallowed = [{LIST}{more}]"));
    plant(&yard.workspace);
    yard
}

fn open() -> Yard {
    let yard = Yard::new();
    plant(&yard.workspace);
    yard
}

/// A compiled program and a script in the workspace, made from outside so that the agent need not.
fn plant(workspace: &Scratch) {
    for directory in ["bin", "other"] {
        workspace.directory(directory);
        fs::copy("/usr/bin/base64", workspace.path().join(directory).join("encode")).expect("a copy");
        let script = workspace.file(&format!("{directory}/script"), "#!/bin/bash\necho ran\n");
        make_executable(&script);
    }
}

fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode");
}

/// Ways to run a program outside the list, and what comes of it.
const WAYS: &[(&str, i32)] = &[
    ("base64 /etc/hostname", 126),
    ("/usr/bin/base64 /etc/hostname", 126),
    ("/proc/self/root/usr/bin/base64 /etc/hostname", 126),
    ("env base64 /etc/hostname", 126),
    ("ln -s /usr/bin/base64 /tmp/other; /tmp/other /etc/hostname", 126),
    ("LOADER /usr/bin/base64 /etc/hostname", 127),
    ("PROBE execve /usr/bin/base64 /etc/hostname", libc::EACCES),
    ("PROBE execveat /usr/bin/base64 /etc/hostname", libc::EACCES),
    (
        "python3 -c 'import os, sys\ntry: os.execv(\"/usr/bin/base64\", [\"base64\", \"/etc/hostname\"])\nexcept OSError as e: sys.exit(e.errno)'",
        libc::EACCES,
    ),
    // What the agent has, it can read and copy; it cannot run it.
    ("other/encode /etc/hostname", 126),
    ("LOADER other/encode /etc/hostname", 127),
    ("cp other/encode /tmp/copy; chmod +x /tmp/copy; /tmp/copy /etc/hostname", 126),
    ("cp other/encode /tmp/copy; LOADER /tmp/copy /etc/hostname", 127),
    ("cp other/encode /dev/shm/copy; chmod +x /dev/shm/copy; /dev/shm/copy /etc/hostname", 126),
    ("cp other/encode ~/copy; chmod +x ~/copy; ~/copy /etc/hostname", 126),
    ("cp other/encode /var/tmp/copy; chmod +x /var/tmp/copy; /var/tmp/copy /etc/hostname", 126),
    ("PROBE execve other/encode /etc/hostname", libc::EACCES),
    ("PROBE execveat other/encode /etc/hostname", libc::EACCES),
    ("PROBE execute-copy-in-memory other/encode /etc/hostname", libc::EPERM),
];

#[test]
fn a_program_outside_the_list_runs_by_no_way() {
    let (listing, open) = (listing(""), open());
    for (script, code) in WAYS {
        let outcome = try_way(&listing, script);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (*code, ""), "{script}: {outcome:?}");
        let control = try_way(&open, script);
        assert_eq!((control.code, control.stdout.as_str()), (0, ENCODED), "control: {script}: {control:?}");
    }
}

#[test]
fn scripts_of_the_agents_own_do_not_run_by_name() {
    let (listing, open) = (listing(""), open());
    for script in ["other/script", "cp other/script /tmp/s; chmod +x /tmp/s; /tmp/s"] {
        let outcome = try_way(&listing, script);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (126, ""), "{script}: {outcome:?}");
        assert_eq!(try_way(&open, script).stdout, "ran\n", "control: {script}");
    }
    // As the README says: an allowed interpreter can do what its language can.
    assert_eq!(try_way(&listing, "bash other/script").stdout, "ran\n");
}

#[test]
fn a_script_of_the_system_outside_the_list_does_not_run_by_name() {
    let (listing, open) = (listing(""), open());
    // `ldd` is a script for the allowed bash, so nothing but the list stands in its way.
    for script in ["ldd --version >/dev/null", "/usr/bin/ldd --version >/dev/null"] {
        assert_eq!(try_way(&listing, script).code, 126, "{script}");
        assert_eq!(try_way(&open, script).code, 0, "control: {script}");
    }
    assert_eq!(listing.probe(&["execveat", "/usr/bin/ldd"]), libc::EACCES);
}

#[test]
fn no_private_directory_holds_pages_that_can_be_executed() {
    let (listing, open) = (listing(""), open());
    for place in ["/tmp", "/var/tmp", "/dev/shm", "/home/agent", "other"] {
        let script = format!("cp other/encode {place}/copy; PROBE map-executable {place}/copy");
        assert_eq!(try_way(&listing, &script).code, libc::EPERM, "{place}");
        assert_eq!(try_way(&open, &script).code, 0, "control: {place}");
    }
    assert_eq!(try_way(&listing, "PROBE map-executable /bin/cat").code, 0, "control: an allowed program");
}

#[test]
fn a_pattern_in_the_list_makes_files_of_a_root_executable() {
    let listing = listing(", \"{workspace}/bin/*\"");
    for way in ["bin/encode", "LOADER bin/encode", "PROBE execve bin/encode", "PROBE execveat bin/encode"] {
        let inside = try_way(&listing, &format!("{way} /etc/hostname"));
        assert_eq!((inside.code, inside.stdout.as_str()), (0, ENCODED), "{way}: {inside:?}");
        let outside = try_way(&listing, &format!("{} /etc/hostname", way.replace("bin/", "other/")));
        assert_ne!(outside.code, 0, "beside the pattern: {way}: {outside:?}");
        assert_eq!(outside.stdout, "", "beside the pattern: {way}: {outside:?}");
    }
    assert_eq!(try_way(&listing, "bin/script").stdout, "ran\n");
    assert_eq!(try_way(&listing, "cp other/encode bin/new; chmod +x bin/new; bin/new /etc/hostname").stdout, ENCODED);
}

#[test]
fn an_allowed_file_in_a_writable_root_cannot_become_another_program() {
    let listing = listing(", \"{workspace}/bin/encode\"");
    assert_eq!(try_way(&listing, "bin/encode /etc/hostname").stdout, ENCODED, "control: it runs");
    let file = listing.workspace.path().join("bin/encode").display().to_string();
    let other = listing.workspace.path().join("other/encode").display().to_string();
    assert_eq!(listing.probe(&["write", &file]), libc::EROFS);
    assert_eq!(listing.probe(&["remove", &file]), libc::EBUSY);
    assert_eq!(listing.probe(&["rename", &other, &file]), libc::EXDEV);
    let (bin, moved) = (listing.workspace.path().join("bin"), listing.workspace.path().join("moved"));
    let (bin, moved) = (bin.display().to_string(), moved.display().to_string());
    assert_eq!(listing.probe(&["rename", &bin, &moved]), libc::EBUSY, "nor can the way to it be put aside");
    assert_eq!(listing.probe(&["write", &other]), 0, "control: its neighbour can be written");
}

/// A compiled program below `/usr/lib` or `/usr/libexec`, which no list names.
fn deep_program() -> String {
    let found = std::process::Command::new("find")
        .args([
            "/usr/lib",
            "/usr/libexec",
            "-xdev",
            "-type",
            "f",
            "-perm",
            "-111",
            "!",
            "-name",
            "*.so*",
            "-size",
            "-4M",
        ])
        .output()
        .expect("find starts");
    let list = String::from_utf8_lossy(&found.stdout).into_owned();
    let is_dynamic = |path: &&str| {
        fs::read(path).is_ok_and(|bytes| {
            bytes.starts_with(b"\x7fELF") && bytes.windows(LOADER.len()).any(|part| part == LOADER.as_bytes())
        })
    };
    list.lines().find(is_dynamic).expect("a compiled program below /usr/lib").to_owned()
}

#[test]
fn programs_below_the_library_directories_cannot_be_run_through_the_loader() {
    let (listing, program) = (listing(""), deep_program());
    assert_eq!(listing.probe(&["read", &program]), libc::EACCES, "{program}");
    assert_eq!(listing.probe(&["execve", &program]), libc::EACCES, "{program}");
    let outcome = try_way(&listing, &format!("LOADER {program} < /dev/null"));
    assert_eq!((outcome.code, outcome.stdout.as_str()), (127, ""), "{outcome:?}");
    assert!(outcome.stderr.contains("Permission denied"), "{outcome:?}");
    let open = Yard::new();
    assert_eq!(open.probe(&["read", &program]), 0, "control: {program}");
    assert_eq!(open.probe(&["map-executable", &program]), 0, "control: {program}");
}

#[test]
fn libraries_and_data_stay_readable_under_a_list() {
    let listing = listing("");
    let outcome = try_way(&listing, "python3 -c 'import sqlite3, ssl, ctypes, json; print(\"loaded\")'");
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "loaded\n"), "{outcome:?}");
    assert_eq!(listing.probe(&["list", "/usr/bin"]), 0);
}

#[test]
fn a_script_whose_interpreter_is_not_allowed_is_refused_at_the_start() {
    let yard = Yard::with("[commands]\nallowed = [\"bash\", \"cat\", \"{beside}/probe/tool\"]");
    let tool = yard.beside.file("probe/tool", "#!/usr/bin/awk -f\n");
    make_executable(&tool);
    let outcome = yard.run(&["cat", "/etc/hostname"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (125, ""), "{outcome:?}");
    let interpreter = Path::new("/usr/bin/awk").canonicalize().expect("awk");
    let (tool, interpreter) = (tool.display(), interpreter.display());
    let expected = format!(
        "error: `{tool}` is allowed but is a script for `{interpreter}`, which is not\n\
         hint: add `{interpreter}` to `allowed`, knowing that it can then be run directly too\n"
    );
    assert_eq!(outcome.stderr, expected);

    let yard = Yard::with("[commands]\nallowed = [\"bash\", \"cat\", \"awk\", \"{beside}/probe/tool\"]");
    make_executable(&yard.beside.file("probe/tool", "#!/usr/bin/awk -f\nBEGIN { print \"ran\" }\n"));
    let tool = yard.beside.path().join("probe/tool").display().to_string();
    assert_eq!(yard.run(&[&tool]).stdout, "ran\n", "control");
}
