//! The wall around who a command is: ids, capabilities, limits, environment, and what it leaves when it dies.
//!
//! The cases of `tests/ATTACKS.md`, groups UC and CD.

mod support;

use libc::{EACCES, EINVAL, EPERM, EROFS};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};
use support::{Outcome, Yard, is_root};

/// The uid and gid of the agent inside.
fn inner() -> (u32, u32) {
    if is_root() { (1000, 1000) } else { (nix::unistd::getuid().as_raw(), nix::unistd::getgid().as_raw()) }
}

/// What the probe prints, inside.
fn printed(yard: &Yard, verb: &str) -> String {
    let outcome = yard.run(&[&yard.probe_path(), verb]);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    outcome.stdout
}

/// UC-02: a set-user-id program of the host's root, in a root that the policy grants.
#[test]
fn a_set_user_id_program_gives_nothing() {
    let yard = Yard::away("[filesystem]\nread_only_roots = [\"{beside}/suid\"]");
    let program = yard.beside.directory("suid").join("probe");
    support::cases::copy(yard.probe_path().as_ref(), &program);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o6755)).expect("a mode");
    let (uid, gid) = inner();
    let inside = yard.run(&[program.to_str().expect("text"), "who"]);
    assert_eq!(inside.stdout.split(" [").next(), Some(format!("{uid} {uid} {gid}").as_str()), "{inside:?}");
    if is_root() {
        // Readable on the way there for the user that it is started as.
        let public = support::Scratch::new();
        let copy = public.path().join("probe");
        support::cases::copy(&program, &copy);
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o6755)).expect("a mode");
        let outside = Command::new(copy).arg("who").uid(65534).gid(65534).output().expect("the probe starts");
        let outside = String::from_utf8_lossy(&outside.stdout).into_owned();
        assert!(outside.starts_with("65534 0 0"), "control: outside it makes root: {outside}");
    }
    // Every one that the system has, without the policy's own list in the way.
    let free = Yard::away("[commands]\nblocked = []");
    let line = "find /usr -xdev -perm /6000 -type f | head -40; grep NoNewPrivs /proc/self/status; \
                echo | su -c id 2>&1; id -u";
    let seen = free.shell(line).stdout;
    assert!(seen.contains("NoNewPrivs:\t1"), "{seen}");
    assert!(seen.ends_with(&format!("{uid}\n")) && !seen.contains("uid=0"), "{seen}");
}

/// UC-03.
#[test]
fn nobody_becomes_somebody_else() {
    let yard = Yard::away("");
    let (uid, gid) = inner();
    let own = [format!("set-user {uid}"), format!("set-group {gid}"), format!("set-users {uid}")];
    yard.inside(&own.each_ref().map(|attempt| (attempt.as_str(), 0)));
    let foreign = ["set-user 0", "set-user 65534", "set-users 0", "set-users 4242", "set-group 0", "set-group 4242"];
    // One id is mapped; any other is no id at all.
    yard.inside(&foreign.map(|attempt| (attempt, EINVAL)));
    yard.inside(&[("set-groups 0", EPERM), (&format!("set-groups {gid}"), EPERM)]);
    let root = if is_root() { 0 } else { EPERM };
    yard.outside(&[("set-user 65534", root), ("set-group 65534", root), ("set-groups 65534", root)]);
}

/// UC-04.
#[test]
fn supplementary_groups_stay_outside() {
    let yard = Yard::away("");
    let (uid, gid) = inner();
    let probe = yard.probe_path();
    let mut command = Command::new(&probe);
    if is_root() {
        command.args(["with-groups", "4+27+4242"]);
    } else {
        // An ordinary user cannot take groups on, nor drop those he has: he is started without any.
        command.args(["with-umask", "022"]);
    }
    let wrapped: Vec<_> = command.get_args().map(std::ffi::OsStr::to_owned).collect();
    let run = yard.command();
    command.arg(run.get_program()).args(run.get_args()).args(["--", &probe, "who"]);
    let inside = command.current_dir(yard.workspace.path()).output().expect("stockade starts");
    let groups = if is_root() { String::new() } else { own_groups() };
    assert_eq!(String::from_utf8_lossy(&inside.stdout), format!("{uid} {uid} {gid} [{groups}]\n"), "{inside:?}");
    let outside = Command::new(&probe).args(wrapped).args([&probe, "who"]).output().expect("the probe starts");
    let outside = String::from_utf8_lossy(&outside.stdout).into_owned();
    assert!(!is_root() || outside.ends_with("[4, 27, 4242]\n"), "control: {outside}");
}

/// The test's own groups, as the probe prints them.
fn own_groups() -> String {
    let groups = nix::unistd::getgroups().expect("groups");
    groups.iter().map(|group| group.to_string()).collect::<Vec<_>>().join(", ")
}

/// UC-05, AB-04 for the capability lines.
#[test]
fn there_is_no_capability_and_no_way_to_one() {
    let yard = Yard::away("");
    yard.inside(&[
        ("ambient", EPERM),
        ("capabilities 2097152", EPERM),
        ("capabilities 1", EPERM),
        ("capabilities 0", 0),
    ]);
    let root = if is_root() { 0 } else { EPERM };
    yard.outside(&[("capabilities 1", root), ("capabilities 0", 0)]);
    let status = yard.shell("grep -h '^Cap' /proc/self/status /proc/1/status").stdout;
    assert_eq!(status.lines().count(), 10, "{status}");
    assert!(status.lines().all(|line| line.ends_with("\t0000000000000000")), "{status}");
    assert!(
        yard.shell("grep -h '^NoNewPrivs\\|^Seccomp:' /proc/self/status /proc/1/status | sort -u | tr -d '\\t'").stdout
            == "NoNewPrivs:1\nSeccomp:2\n"
    );
}

/// UC-06, CD-03: by the kernel's numbers, see getrlimit(2).
#[test]
fn hard_limits_are_finite() {
    let yard = Yard::away("[limits]\nopen_files = 512\nfile_size = \"16M\"\nprocesses = 40");
    let limits = printed(&yard, "limits");
    let limit = |number: u32| {
        let line = limits.lines().find(|line| line.starts_with(&format!("{number} "))).expect("a limit");
        line.split(' ').nth(1).expect("a value").parse::<u64>().ok()
    };
    for (what, number, expected) in [
        ("file size", 1, Some(16 << 20)),
        ("core", 4, Some(0)),
        ("open files", 7, Some(512)),
        ("nice", 13, Some(0)),
        ("real-time priority", 14, Some(0)),
    ] {
        assert_eq!(limit(number), expected, "{what}");
    }
    for (what, number) in [("processes", 6), ("locked memory", 8), ("pending signals", 11), ("message queues", 12)] {
        assert!(limit(number).is_some(), "{what} has no limit: {limits}");
    }
    yard.inside(&[("core-limit 0", 0), ("core-limit 1", EPERM), ("core-limit 18446744073709551615", EPERM)]);
    // A file of a byte more than the limit is not written, and a smaller one is.
    let outcome = yard.shell("head -c 17M /dev/zero > big; head -c 16M /dev/zero > fits; stat -c %s big fits");
    assert_eq!(outcome.stdout, "16777216\n16777216\n", "{outcome:?}");
}

/// UC-07, UC-08, PR-14.
#[test]
fn no_process_pushes_itself_forward() {
    let yard = Yard::away("");
    yard.inside(&[
        ("real-time", EPERM),
        ("nice -5", EACCES),
        ("io-class 1", EPERM),
        ("nice 5", 0),
        ("io-class 2", 0),
        ("write /proc/self/oom_score_adj", EROFS),
        ("write /proc/1/oom_score_adj", EACCES),
    ]);
    let root = |errno| if is_root() { 0 } else { errno };
    yard.outside(&[("nice -5", root(EACCES)), ("io-class 1", root(EPERM)), ("write /proc/self/oom_score_adj", 0)]);
    let score = yard.shell("cat /proc/self/oom_score_adj").stdout;
    assert_eq!(score, "500\n", "when memory runs out a cell goes before its broker");
}

/// UC-09.
#[test]
fn the_environment_is_the_policys() {
    let yard = Yard::away("[environment]\npass = [\"LANG\", \"TERM\", \"CANARY_ALLOWED\"]\nset = { CI = \"1\" }");
    let secrets = [
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "AWS_SECRET_KEY",
        "GITHUB_TOKEN",
        "SSH_AUTH_SOCK",
        "BASH_ENV",
        "ENV",
        "PYTHONPATH",
        "GIT_SSH_COMMAND",
        "DBUS_SESSION_BUS_ADDRESS",
        "XDG_RUNTIME_DIR",
        "STOCKADE_LOG",
        "IFS",
    ];
    let mut command = yard.command();
    command.env("LANG", "C.UTF-8").env("CANARY_ALLOWED", "canary").env("HOME", "/root").env("USER", "operator");
    for name in secrets {
        // A preload that is not there would only make noise; what counts is whether it arrives.
        command.env(name, if name.starts_with("LD_") { "/nowhere/canary.so" } else { "canary" });
    }
    let output = command.args(["--", "/usr/bin/env"]).output().expect("stockade starts");
    let seen = String::from_utf8_lossy(&output.stdout).into_owned();
    let names: Vec<&str> = seen.lines().filter_map(|line| line.split('=').next()).collect();
    let expected = ["CANARY_ALLOWED", "CI", "HOME", "LANG", "LOGNAME", "PATH", "SHELL", "USER"];
    let mut sorted: Vec<&str> = names.iter().copied().filter(|name| *name != "TERM").collect();
    sorted.sort_unstable();
    assert_eq!(sorted, expected, "{seen}");
    for line in ["HOME=/home/agent", "USER=agent", "CANARY_ALLOWED=canary", "CI=1"] {
        assert!(seen.lines().any(|found| found == line), "{line} in {seen}");
    }
}

/// UC-09: nor does PID 1 hold what the command does not get.
#[test]
fn pid_1_holds_no_environment() {
    let yard = Yard::away("");
    yard.inside(&[("read /proc/1/environ", EACCES), ("read /proc/1/mem", EACCES), ("read /proc/self/environ", 0)]);
    let mut command = yard.command();
    command.env("CANARY_TOKEN", "canary-4711").args(["--", "/bin/sh", "-c", "grep -aq canary-4711 /proc/1/cmdline"]);
    let found = Outcome::of(&mut command);
    assert_eq!(found.code, 1, "{found:?}");
}

/// UC-10: variables meant to take over a program reach the command alone.
#[test]
fn variables_for_the_command_touch_neither_launcher_nor_pid_1() {
    let yard = Yard::away("");
    let script = yard.workspace.file("hook.sh", "echo hooked\n");
    let hook = format!("BASH_ENV={}", script.display());
    let mut command = yard.command();
    let outcome = Outcome::of(command.args(["--env", &hook, "--", "/bin/true"]));
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, ""), "no shell stands between: {outcome:?}");
    let mut command = yard.command();
    let outcome = Outcome::of(command.args(["--env", &hook, "--", "/bin/bash", "-c", "true"]));
    assert_eq!(outcome.stdout, "hooked\n", "control: the command itself obeys it");
    // The loader complains once for every program that it preloads for.
    let mut command = yard.command();
    let preload = "LD_PRELOAD=/nowhere/canary.so";
    let outcome = Outcome::of(command.args(["--env", preload, "--", "/bin/true"]));
    assert_eq!(outcome.stderr.matches("canary.so").count(), 1, "{outcome:?}");
}

/// UC-10, BX-10: stockade starts no helper that could be put in its way by `PATH`.
#[test]
fn no_program_is_looked_up_in_the_callers_path() {
    let yard = Yard::away("");
    let names = [
        "bwrap",
        "newuidmap",
        "newgidmap",
        "mount",
        "umount",
        "systemd-run",
        "sh",
        "bash",
        "ip",
        "setpriv",
        "stockade",
    ];
    let trap = format!("#!/bin/sh\necho $0 >> {}/sprung\n", yard.beside.path().display());
    for name in names {
        let path = yard.beside.file(&format!("path/{name}"), &trap);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode");
    }
    let mut command = yard.command();
    command.env("PATH", yard.beside.path().join("path")).args(["--", "bash", "-c", "echo $PATH"]);
    let outcome = Outcome::of(&mut command);
    assert!(outcome.code == 0 && outcome.stdout.starts_with("/usr/local/sbin:"), "{outcome:?}");
    assert!(!yard.beside.path().join("sprung").exists());
    let control = Command::new("/bin/sh").args(["-c", "mount"]).env("PATH", yard.beside.path().join("path")).status();
    assert!(
        control.expect("a shell").success() && yard.beside.path().join("sprung").exists(),
        "control: the trap works"
    );
}

/// CD-01.
#[test]
fn a_crash_leaves_no_core_file() {
    let yard = Yard::away("");
    let probe = yard.probe_path();
    let outcome = yard.run(&[&probe, "crash"]);
    assert_eq!(outcome.code, 128 + libc::SIGSEGV, "{outcome:?}");
    let outcome = yard.shell("ulimit -c unlimited; kill -SEGV $$");
    assert_eq!(outcome.code, 128 + libc::SIGSEGV, "{outcome:?}");
    let left: Vec<_> = fs::read_dir(yard.workspace.path()).expect("the workspace").flatten().collect();
    assert!(left.is_empty(), "{left:?}");
    let mut command = yard.command();
    let told = Outcome::of(command.args(["--json", "--", &probe, "crash"]));
    assert!(told.stdout.contains("\"reason\":\"signal\"") && told.stdout.contains("SEGV"), "{told:?}");
    let outside = Command::new(&probe).arg("crash").current_dir(yard.beside.path()).status().expect("the probe");
    let (_, hard) = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_CORE).expect("a limit");
    assert_eq!(outside.core_dumped(), hard > 0, "control: outside it leaves one where it may");
}

/// CD-02: the broker and the launcher, which know every agent's affairs, leave none either.
#[test]
fn a_crash_of_stockade_itself_leaves_no_core_file() {
    let yard = Yard::away("");
    let mut command = yard.command();
    command.args(["--timeout", "20s", "--", "/bin/sh", "-c", "echo up; exec sleep 1000"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("stockade starts");
    let mut up = [0; 3];
    std::io::Read::read_exact(child.stdout.as_mut().expect("a pipe"), &mut up).expect("it is up");
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).expect("its children");
    let launcher: i32 = children.split_whitespace().next().expect("a launcher").parse().expect("a pid");
    let name = fs::read_to_string(format!("/proc/{launcher}/comm")).expect("its name");
    assert_eq!(name, "stockade-launch\n");
    for pid in [launcher, child.id() as i32] {
        let limits = fs::read_to_string(format!("/proc/{pid}/limits")).expect("its limits");
        let core = limits.lines().find(|line| line.starts_with("Max core file size")).expect("a limit");
        assert_eq!(core.split_whitespace().nth(5), Some("0"), "hard limit of {pid}: {core}");
    }
    let broker = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(broker, nix::sys::signal::Signal::SIGABRT).expect("our own child");
    let ended = child.wait().expect("it ends");
    assert_eq!((ended.signal(), ended.core_dumped()), (Some(libc::SIGABRT), false));
    assert_eq!(fs::read_dir(yard.workspace.path()).expect("the workspace").count(), 0);
}

/// What is passed to a process may be the host's own: only what was made for it is given away.
#[test]
fn trying_a_policy_leaves_the_hosts_devices_their_owner() {
    use std::os::unix::fs::MetadataExt;
    let owner = || fs::metadata("/dev/null").map(|found| (found.uid(), found.gid())).expect("a device");
    let before = owner();
    let workspace = support::Scratch::new();
    for words in [&["policy", "check", "default", "--live", "--workspace"][..], &["run", "--workspace"]] {
        let mut command = Command::new(support::stockade());
        command.args(words).arg(workspace.path());
        if words[0] == "run" {
            command.args(["--", "/bin/true"]);
        }
        let output = command.stdin(Stdio::null()).output().expect("stockade starts");
        assert!(output.status.success(), "{output:?}");
    }
    assert_eq!(owner(), before);
}
