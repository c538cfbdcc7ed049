//! What lies outside every root is not there, by whatever road one goes.

use crate::support::{Scratch, Yard};
use libc::{EACCES, ENOENT, EPERM, EROFS, EXDEV};

/// A yard with a secret beside the workspace, readable by everybody.
fn yard() -> Yard {
    let yard = Yard::away("[filesystem]\nread_only_roots = [\"{beside}/data\"]");
    yard.beside.file("secret", "token");
    yard.beside.file("data/file", "text");
    yard.workspace.file("own", "text");
    yard
}

/// FS-01, FS-02, FS-22.
#[test]
fn a_file_outside_every_root_does_not_exist() {
    let yard = yard();
    let up = "../".repeat(40);
    yard.denied(&[
        ("read {b}/secret", ENOENT),
        ("read {b}/data/../secret", ENOENT),
        (&format!("read {up}{{b}}/secret"), ENOENT),
        ("stat {b}/secret", ENOENT),
        ("access {b}/secret", ENOENT),
        ("handle {b}/secret", ENOENT),
        ("append {b}/secret", ENOENT),
        ("truncate {b}/secret", ENOENT),
    ]);
    yard.inside(&[("read {w}/own", 0), ("read {b}/data/file", 0), ("stat {b}/data", 0), ("enter {b}/data", 0)]);
}

/// FS-22: between the roots there are directories, but they are the cell's own and hold only the way to the roots.
#[test]
fn the_way_to_a_root_shows_nothing_but_the_way() {
    let yard = yard();
    let names = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let inside = yard.shell(&yard.fill("ls -A {b}"));
    assert_eq!(names(&inside.stdout), ["data", "probe"]);
    yard.inside(&[("create {b}/new", EROFS), ("mkdir {b}/new", EROFS)]);
    yard.outside(&[("stat {b}/secret", 0), ("create {b}/new", 0)]);
}

/// FS-03.
#[test]
fn a_link_to_the_outside_leads_nowhere() {
    let yard = yard();
    std::os::unix::fs::symlink(yard.beside.path().join("secret"), yard.workspace.path().join("old")).expect("a link");
    yard.denied(&[("read {w}/old", ENOENT), ("append {w}/old", ENOENT), ("read {w}/old", ENOENT)]);
    yard.inside(&[
        ("symlink {b}/secret {w}/link", 0),
        ("read {w}/link", ENOENT),
        ("write {w}/link", EROFS),
        ("readlink {w}/link", 0),
        ("symlink {w}/own {w}/good", 0),
        ("read {w}/good", 0),
    ]);
    assert_eq!(std::fs::read(yard.beside.path().join("secret")).expect("the secret"), b"token+");
}

/// FS-04.
#[test]
fn magic_links_stay_inside() {
    let yard = yard();
    let cases = [
        ("read /proc/self/root/{b}/secret", ENOENT),
        ("read /proc/self/cwd/../../../../../../../../{b}/secret", ENOENT),
        ("read /dev/fd/../../../{b}/secret", ENOENT),
        ("read /proc/thread-self/root/{b}/secret", ENOENT),
    ];
    yard.denied(&cases);
    // PID 1 cannot be looked into at all.
    yard.inside(&[
        ("read /proc/1/root/{b}/secret", EACCES),
        ("readlink /proc/1/root", EACCES),
        ("readlink /proc/1/cwd", EACCES),
        ("read /proc/self/root/{w}/own", 0),
    ]);
}

/// FS-06, FS-07.
#[test]
fn a_hard_link_cannot_bring_a_file_in() {
    let yard = yard();
    yard.denied(&[("link {b}/secret {w}/a", ENOENT), ("link {b}/data/file {w}/b", EXDEV)]);
    yard.inside(&[("link {w}/own {w}/c", 0), ("link /usr/bin/env {w}/d", EXDEV)]);
}

/// FS-08.
#[test]
fn a_directory_held_open_and_moved_away_leads_nowhere() {
    let yard = Yard::away("[filesystem]\nallowed_roots = [\"{workspace}\", \"{beside}/other\"]");
    yard.beside.file("secret", "token");
    yard.beside.directory("other/deep/er");
    yard.workspace.directory("a/b");
    let up = "../".repeat(12);
    let words = |from: &str, to: &str, path: &str| format!("walk-out {from} {to} {up}{path}");
    let secret = yard.fill("{b}/secret");
    let out = words("{w}/a/b", "{b}/other/b", &secret);
    let within = words("{b}/other/deep/er", "{b}/other/er", &secret);
    let home = words("{b}/other/er", "{b}/other/er", &yard.fill("{b}/other"));
    yard.inside(&[(&out, ENOENT), (&within, ENOENT), (&home, 0)]);
    assert!(yard.workspace.path().join("a/b").is_dir(), "between two roots nothing moves: they are two mounts");
    yard.outside(&[(&out, 0)]);
}

/// FS-09.
#[test]
fn a_file_handle_opens_nothing() {
    let yard = yard();
    let cases = ["by-handle {w}/own", "by-handle {b}/data", "by-handle /usr"];
    yard.inside(&cases.map(|case| (case, EPERM)));
    yard.inside(
        &["shocker /", "shocker /usr", "shocker {w}", "shocker /proc", "shocker /tmp"].map(|case| (case, EPERM)),
    );
    let root = if crate::support::is_root() { 0 } else { EPERM };
    yard.outside(&[("by-handle {w}/own", root)]);
}

/// FS-15.
#[test]
fn a_nameless_file_gets_a_name_only_in_a_read_write_root() {
    let yard = yard();
    yard.inside(&[
        ("temporary-link {w} {w}/named", 0),
        ("temporary-link {w} /usr/lib/named", EROFS),
        ("temporary-link {w} {b}/data/named", EROFS),
        ("temporary-link {w} /tmp/named", EXDEV),
        ("temporary-as {b}/data 600", EROFS),
        ("temporary-as /usr/lib 600", EROFS),
    ]);
    yard.outside(&[("temporary-link {w} {b}/data/named", 0), ("temporary-as {b}/data 600", 0)]);
}

/// FS-18.
#[test]
fn state_policy_and_other_workspaces_are_out_of_sight() {
    let yard = yard();
    let other = Scratch::new();
    other.file("theirs", "text");
    let state = yard.beside.file("state/stockade/test/audit.jsonl", "{}");
    let mut words: Vec<String> = ["{b}/policy.toml", "{b}/state", "{b}/state/stockade"].map(|p| yard.fill(p)).into();
    words.extend([other.path().display().to_string(), other.path().join("theirs").display().to_string()]);
    words.push(state.display().to_string());
    words.push(crate::support::stockade().display().to_string());
    let cases: Vec<String> = words.iter().map(|path| format!("stat {path}")).collect();
    let cases: Vec<(&str, i32)> = cases.iter().map(|case| (case.as_str(), ENOENT)).collect();
    yard.denied(&cases);
    yard.inside(&[
        ("stat /var/lib", ENOENT),
        ("stat /run/user", ENOENT),
        ("stat /root", ENOENT),
        ("stat /srv", ENOENT),
    ]);
}

/// FS-19.
#[test]
fn the_mount_table_names_only_what_the_policy_names() {
    let yard = yard();
    let other = Scratch::new();
    let table = yard.run(&["/bin/cat", "/proc/self/mountinfo"]).stdout;
    assert!(table.contains(&yard.fill(" {w} ")), "control: the workspace is in it");
    let policy = yard.fill("{b}/policy.toml");
    for foreign in [other.path().to_str().expect("text"), &policy, "/var/lib", "/root", "oldroot", "put_old"] {
        assert!(!table.contains(foreign), "{foreign} is in\n{table}");
    }
    let roots = [yard.fill("{w}"), yard.fill("{b}/data"), yard.fill("{b}/probe")];
    for line in table.lines() {
        let source = line.split(' ').nth(3).expect("the fourth word is the source");
        let known = ["/etc/", "/usr", "/bin", "/sbin", "/lib", "/proc", "/.masks/", "/mnt"];
        let devices =
            ["/null", "/zero", "/full", "/random", "/urandom", "/tty", "/tmp", "/var-tmp", "/home", "/shm", "/"];
        // The workspace may lie on a filesystem that is mounted elsewhere on the host: its end is what counts.
        let root = roots.iter().any(|root| root.ends_with(source));
        assert!(
            root || devices.contains(&source) || known.iter().any(|known| source.starts_with(known)),
            "{source} in\n{table}"
        );
    }
}
