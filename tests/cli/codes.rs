//! Exit codes: the command's own, 128+n, 124, 126, 127; and 125 when stockade itself refuses.

use crate::support::Yard;
use std::os::unix::fs::PermissionsExt;

const SHELL: &[(&str, i32)] = &[
    ("true", 0),
    ("exit 1", 1),
    ("exit 3", 3),
    ("exit 124", 124),
    ("exit 255", 255),
    ("kill -HUP $$", 129),
    ("kill -INT $$", 130),
    ("kill -KILL $$", 137),
    ("kill -SEGV $$", 139),
    ("kill -TERM $$", 143),
    ("kill -USR1 $$", 138),
];

#[test]
fn the_commands_own_exit_code_and_signal_are_passed_on() {
    let yard = Yard::new();
    for (line, code) in SHELL {
        let outcome = yard.shell(line);
        assert_eq!((outcome.code, outcome.stdout.as_str(), outcome.stderr.as_str()), (*code, "", ""), "{line}");
    }
}

#[test]
fn a_timeout_is_124_whatever_the_command_makes_of_it() {
    let yard = Yard::new().flag("--timeout").flag("300ms");
    for line in ["sleep 1000", "trap 'exit 0' TERM; sleep 1000 & wait", "trap '' TERM; sleep 1000"] {
        assert_eq!(yard.shell(line).code, 124, "{line}");
    }
    assert_eq!(yard.shell("exit 9").code, 9, "control");
}

/// A file in the workspace, its mode, and what running it comes to.
const UNRUNNABLE: &[(&str, &str, u32, i32, &str)] = &[
    ("plain", "echo hi\n", 0o644, 126, "error: `./plain`: Permission denied\n"),
    ("garbage", "neither", 0o755, 126, "error: `./garbage`: Exec format error\n"),
    ("stray", "#!/nonexistent/shell\n", 0o755, 127, "error: `./stray`: No such file or directory\n"),
    ("empty", "", 0o755, 126, "error: `./empty`: Exec format error\n"),
];

#[test]
fn what_cannot_be_executed_is_126_or_127_and_never_success() {
    let yard = Yard::new();
    for (name, text, mode, code, error) in UNRUNNABLE {
        let path = yard.workspace.file(name, text);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(*mode)).expect("a mode");
        let outcome = yard.run(&[&format!("./{name}")]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (*code, ""), "{name}: {outcome:?}");
        assert!(outcome.stderr.starts_with(error), "{name}: {outcome:?}");
        assert_eq!(outcome.stderr.lines().filter(|line| line.starts_with("hint: ")).count(), 1, "{name}: {outcome:?}");
    }
    let path = yard.workspace.file("good", "#!/bin/sh\necho hi\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    assert_eq!(yard.run(&["./good"]).stdout, "hi\n", "control");
}

#[test]
fn a_directory_is_not_executable_and_a_missing_name_is_not_found() {
    let yard = Yard::new();
    yard.workspace.directory("directory");
    for (program, code) in [("./directory", 126), ("./missing", 127), ("no-such-program", 127), ("/missing/x", 127)] {
        let outcome = yard.run(&[program]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (code, ""), "{program}: {outcome:?}");
        assert!(outcome.stderr.starts_with(&format!("error: `{program}`: ")), "{outcome:?}");
    }
}

#[test]
fn arguments_that_the_kernel_would_not_take_are_126_and_the_bound_is_125() {
    let yard = Yard::new();
    // One word may be 128 KiB less one byte (execve(2)); together the plan takes a megabyte.
    let word = "x".repeat((128 << 10) - 100);
    assert_eq!(yard.run(&["true", &word]).code, 0, "control");
    let many: Vec<&str> = std::iter::once("true").chain(std::iter::repeat_n(word.as_str(), 9)).collect();
    let outcome = yard.run(&many);
    assert_eq!(outcome.code, 125, "{}", outcome.stderr);
    assert!(outcome.stderr.starts_with("error: the command line and its environment are too long\nhint: at most "));
}
