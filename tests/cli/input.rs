//! Bad input: one clear line, a hint, and no half-made cell.

use crate::ends::groups_of;
use crate::support::{Scratch, is_root, stockade};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

/// Flags that are refused, and what is said about them. `DIR` is a fresh directory.
const REFUSED: &[(&[&str], &str)] = &[
    (
        &["--policy", "nope"],
        "error: `nope`: no shipped policy has this name\n\
         hint: shipped are `default`, `read-only`, `coder`, `repl`, `debugger`, `build`, `git-read`, `reverse` or `networked`; \
         a file is named by its path, such as `./nope.toml`\n",
    ),
    (
        &["--policy", "DIR/nope.toml"],
        "error: `DIR/nope.toml`: cannot be read: No such file or directory (os error 2)\n\
         hint: `stockade policy list` names the shipped ones, `stockade policy init FILE` writes a new one\n",
    ),
    (
        &["--policy", "DIR/relative.toml"],
        "error: DIR/relative.toml:2:18: `src` is not an absolute path\n  |\n2 | allowed_roots = [\"src\"]\n  |                  ^^^^^\n\
         hint: write `{workspace}/src`, `~/…` or an absolute path\n",
    ),
    (
        &["--rw", "/"],
        "error: `--rw /`: `/` is a system directory, and cannot be read-write\nhint: grant the directory of one project instead\n",
    ),
    (
        &["--workspace", "/"],
        "error: `--workspace /`: is a system directory\nhint: name the directory of one project: `--workspace DIR`\n",
    ),
    (
        &["--workspace", "/usr/bin"],
        "error: `--workspace /usr/bin`: is a system directory\nhint: name the directory of one project: `--workspace DIR`\n",
    ),
    (
        &["--ro", "DIR/missing"],
        "error: `--ro DIR/missing`: `DIR/missing`: no such directory\n\
         hint: create it, or end the path with `?` to skip it when it is missing\n",
    ),
    (
        &["--ro", "DIR/relative.toml"],
        "error: `--ro DIR/relative.toml`: `DIR/relative.toml`: is not a directory\n\
         hint: a root is a directory; name the one that holds the file\n",
    ),
    (
        &["--memory", "12x"],
        "error: `--memory 12x`: `12x` is not a size\n\
         hint: write a size as `16K`, `512M` or `2G`; units are K, M, G and T, binary\n",
    ),
    (&["--cpus", "many"], "error: `--cpus many`: is not a number\nhint: write `2` or `0.5`\n"),
    (&["--processes", "0"], "error: `--processes 0`: 0 is out of bounds\nhint: accepted: 1 to 65536\n"),
    (
        &["--timeout", "5"],
        "error: `--timeout 5`: `5` is not a duration\n\
         hint: give it a unit: `5s` is seconds; units are ms, s, m, h and d\n",
    ),
    (&["--network", "some"], "error: `--network some`: is not a mode\nhint: accepted: `none`, `host` or `proxy`\n"),
    (&["--env", "NAME"], "error: `--env NAME`: has no `=`\nhint: write `--env NAME=VALUE`\n"),
    (
        &["--cwd", "/etc"],
        "error: `/etc` is outside every root of the policy\nhint: use a directory below `DIR`, `/tmp` or `/home/agent`\n",
    ),
];

/// Exit code and stderr of `stockade run` in a fresh directory; nothing may run, and no cgroup may be left.
fn complain(directory: &Scratch, flags: &[&str]) -> (i32, String) {
    let path = directory.path().to_str().expect("text");
    let mut command = Command::new(stockade());
    command.arg("run").args(flags.iter().map(|word| word.replace("DIR", path))).current_dir(path);
    command.args(["--", "/bin/echo", "ran"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("stockade starts");
    let broker = child.id();
    let output = child.wait_with_output().expect("stockade ends");
    let code = output.status.code().expect("stockade exits");
    if code != 0 {
        assert_eq!(output.stdout, b"", "{flags:?}: something ran");
    }
    assert_eq!(groups_of(broker), Vec::<std::path::PathBuf>::new(), "{flags:?}: a half-made cell");
    (code, String::from_utf8(output.stderr).expect("UTF-8").replace(path, "DIR"))
}

fn directory() -> Scratch {
    let directory = Scratch::new();
    let policy = directory.file("relative.toml", "[filesystem]\nallowed_roots = [\"src\"]\n");
    std::fs::set_permissions(policy, std::fs::Permissions::from_mode(0o600)).expect("a mode");
    directory
}

#[test]
fn what_is_refused_is_one_error_and_one_hint() {
    let directory = directory();
    for (flags, expected) in REFUSED {
        assert_eq!(complain(&directory, flags), (125, (*expected).to_owned()), "{flags:?}");
    }
    assert_eq!(complain(&directory, &[]), (0, String::new()), "control");
}

#[test]
fn an_unreadable_root_is_refused_unless_the_caller_may_read_all() {
    let directory = directory();
    let closed = directory.directory("closed");
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).expect("a mode");
    let (code, text) = complain(&directory, &["--ro", "DIR/closed"]);
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    if is_root() {
        assert_eq!((code, text.as_str()), (0, ""));
        return;
    }
    let expected = "error: `--ro DIR/closed`: `DIR/closed`: cannot be read: Permission denied (os error 13)\n\
                    hint: give a directory that you can read yourself\n";
    assert_eq!((code, text.as_str()), (125, expected));
    assert_eq!(complain(&directory, &["--ro", "DIR/closed"]), (0, String::new()), "control");
}

#[test]
fn words_that_stockade_does_not_know_are_2_and_name_the_nearest() {
    let directory = directory();
    for (flags, error, tip) in [
        (&["--memry", "1G"][..], "error: unexpected argument '--memry' found", "--memory"),
        (&["--bogus"], "error: unexpected argument '--bogus' found", "--bogus"),
        (&["--json", "--tty"], "error: the argument '--json' cannot be used with '--tty'", "--json"),
    ] {
        let (code, text) = complain(&directory, flags);
        assert_eq!((code, text.lines().next()), (2, Some(error)), "{flags:?}");
        assert!(text.lines().skip(1).any(|line| line.contains(tip)), "{flags:?}: {text}");
    }
}

#[test]
fn a_missing_command_is_asked_for() {
    let output = Command::new(stockade()).args(["run", "--"]).output().expect("stockade starts");
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("required") && text.contains("<CMD>..."), "{text}");
}
