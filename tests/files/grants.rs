//! Roots and the system: what may be written, changed, moved and executed there.

use crate::snapshot;
use crate::support::Yard;
use libc::{EACCES, EBUSY, ENOENT, EOVERFLOW, EROFS, EXDEV};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

fn yard() -> Yard {
    let yard = Yard::away("[filesystem]\nread_only_roots = [\"{beside}/data\"]");
    yard.beside.file("data/file", "text");
    yard.workspace.file("own", "text");
    yard
}

/// FS-21: Landlock knows none of `chmod`, `touch`, `chown` and attributes; the mount alone holds here.
#[test]
fn a_read_only_root_cannot_be_written() {
    let yard = yard();
    yard.denied(&[
        ("read {b}/data/file", 0),
        ("write {b}/data/file", EROFS),
        ("append {b}/data/file", EROFS),
        ("truncate {b}/data/file", EROFS),
        ("chmod {b}/data/file 600", EROFS),
        ("touch {b}/data/file", EROFS),
        ("attribute {b}/data/file user.x", EROFS),
        ("create {b}/data/new", EROFS),
        ("mkdir {b}/data/dir", EROFS),
        ("symlink x {b}/data/link", EROFS),
        ("link {b}/data/file {b}/data/second", EROFS),
        ("node {b}/data/pipe p 0 0", EROFS),
        ("rename {b}/data/file {b}/data/other", EROFS),
        ("remove {b}/data/other", EROFS),
    ]);
    let me = nix::unistd::getuid();
    yard.inside(&[(&format!("chown {{b}}/data/second {me} {me}"), EROFS), ("remove {b}/data/second", EROFS)]);
    yard.inside(&[
        ("append {w}/own", 0),
        ("chmod {w}/own 600", 0),
        ("touch {w}/own", 0),
        ("attribute {w}/own user.x", 0),
        ("rename {w}/own {w}/other", 0),
        ("remove {w}/other", 0),
    ]);
}

/// FS-05.
#[test]
fn the_system_cannot_be_written() {
    let yard = yard();
    for directory in ["/", "/etc", "/usr", "/usr/bin", "/usr/lib", "/bin", "/var", "/home", "/run", "/dev", "/mnt"] {
        yard.inside(&[
            (&format!("create {directory}/stockade-x"), EROFS),
            (&format!("mkdir {directory}/stockade-y"), EROFS),
        ]);
    }
    yard.inside(&[
        ("create /root/x", ENOENT), // tidy: on purpose
        ("create /proc/x", ENOENT),
        ("append /etc/passwd", EROFS),
        ("append /etc/hosts", EROFS),
        ("append /etc/os-release", EACCES),
        ("chmod /usr/bin/env 755", EROFS),
        ("remove /usr/bin/env", EROFS),
        ("rename /usr/bin /usr/bin2", EROFS),
        ("rmdir /mnt", EROFS),
        ("remove /dev/null", EROFS),
        ("remove /bin", EROFS),
    ]);
    yard.inside(
        &["/tmp", "/var/tmp", "/home/agent", "/dev/shm"]
            .map(|own| format!("create {own}/x"))
            .each_ref()
            .map(|case| (case.as_str(), 0)),
    );
}

/// FS-05: the same from a shell that tries everywhere, seen from the host.
#[test]
fn a_cell_leaves_the_host_as_it_was() {
    let tops =
        ["/", "/etc", "/usr", "/usr/bin", "/usr/lib", "/usr/local/bin", "/var", "/home", "/root", "/opt", "/srv"];
    let yard = yard();
    let (host, data) = (snapshot::shallow(&tops), snapshot::tree(&yard.beside.path().join("data")));
    let tried = yard.shell(&yard.fill(
        "for d in / /etc /usr /usr/bin /usr/lib /usr/local/bin /var /home /root /opt /srv {b} {b}/data {w}; do \
         echo x > $d/stockade-x; mkdir $d/stockade-y; ln -s x $d/stockade-z; rm -rf $d/stockade-nothing; \
         chmod 777 $d; touch $d; done; echo done",
    ));
    assert!(tried.stdout.ends_with("done\n"), "{tried:?}");
    assert_eq!(snapshot::shallow(&tops), host);
    assert_eq!(snapshot::tree(&yard.beside.path().join("data")), data);
    assert!(yard.workspace.path().join("stockade-x").is_file(), "control: what is allowed is done");
}

/// No mount point, no dotfile: not for hidden paths, nor for roots in roots, nor for names that are not there.
#[test]
fn nothing_is_left_behind_in_a_root() {
    let yard = Yard::away(
        "[filesystem]\nallowed_roots = [\"{workspace}\", \"{beside}/data/deep/rw\"]\n\
         read_only_roots = [\"{beside}/data\", \"{workspace}/ro\"]\n\
         hidden = [\".env\", \"not/there\", \"secrets/\", \"**/*.pem\"]",
    );
    for file in [".env", "ro/file", "secrets/key", "tls.pem", "src/a.pem"] {
        yard.workspace.file(file, "text");
    }
    for file in ["data/deep/rw/file", "data/.env", "data/secrets/key"] {
        yard.beside.file(file, "text");
    }
    symlink("secrets", yard.workspace.path().join("link")).expect("a link");
    let (work, beside) = (snapshot::tree(yard.workspace.path()), snapshot::tree(yard.beside.path()));
    assert_eq!(yard.shell("cat ro/file && ls -R . >/dev/null; true").stdout, "text");
    assert_eq!(snapshot::tree(yard.workspace.path()), work);
    assert_eq!(snapshot::tree(yard.beside.path()), beside);
}

/// FS-20.
#[test]
fn a_written_program_runs_unless_the_policy_lists_programs() {
    let script = |yard: &Yard| {
        let path = yard.workspace.file("script", "#!/bin/sh\nexit 0\n");
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode");
    };
    let free = yard();
    script(&free);
    free.inside(&[("exec {w}/script", 0)]);
    let listed = Yard::away("[commands]\nallowed = [\"sh\", \"bash\", \"probe\", \"cp\", \"{beside}/probe/probe\"]");
    script(&listed);
    listed.inside(&[("exec {w}/script", EACCES), ("exec /bin/sh", 0), ("read {w}/script", 0)]);
    for place in ["{w}", "/tmp", "/home/agent", "/dev/shm"] {
        let line = listed.fill(&format!("cp /bin/sh {place}/s && {place}/s -c 'echo ran'"));
        let outcome = listed.shell(&line);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (126, ""), "{place}: {outcome:?}");
    }
    assert_eq!(free.shell("cp /bin/sh s && ./s -c 'echo ran'").stdout, "ran\n", "control");
}

/// FS-23: a root inside a root cannot be moved away from over its files, and its parent takes it along.
#[test]
fn a_protected_directory_and_its_parents_cannot_be_moved() {
    let yard = Yard::away("[filesystem]\nread_only_roots = [\"{workspace}/a/ro\"]");
    yard.workspace.file("a/ro/file", "text");
    yard.workspace.file("a/rw", "text");
    yard.inside(&[
        ("rename {w}/a/ro {w}/a/moved", EBUSY),
        ("exchange {w}/a/ro {w}/a/rw", EBUSY),
        ("rmdir {w}/a/ro", EBUSY),
        ("rename {w}/a/ro/file {w}/a/file", EXDEV),
        ("link {w}/a/ro/file {w}/a/file", EXDEV),
        ("append {w}/a/ro/file", EROFS),
        // Else the next cell would look for the rule where it no longer is.
        ("rename {w}/a {w}/b", EBUSY),
        ("append {w}/a/rw", 0),
    ]);
    yard.outside(&[("append {w}/a/ro/file", 0), ("rename {w}/a/ro {w}/a/moved", 0), ("rename {w}/a {w}/b", 0)]);
}

/// FS-24.
#[test]
fn a_protected_directory_cannot_be_replaced() {
    let yard = Yard::away("[filesystem]\nread_only_roots = [\"{workspace}/.git\"]");
    yard.workspace.file(".git/config", "[core]\n");
    let outcome = yard.shell("mv .git .git2; mkdir .git; echo x >.git/config; rm -rf .git; cat .git/config");
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "[core]\n"), "{outcome:?}");
    yard.inside(&[
        ("rename {w}/.git {w}/.git2", EBUSY),
        ("append {w}/.git/config", EROFS),
        ("create {w}/.git/hook", EROFS),
        ("symlink /tmp {w}/.git/x", EROFS),
    ]);
    yard.outside(&[("rename {w}/.git {w}/.git2", 0)]);
    // Missing at the start: the policy does not load, so that nobody believes in a wall that is not there.
    let refused = yard.shell("true");
    assert_eq!(refused.code, 125, "{refused:?}");
    assert!(refused.stderr.contains("no such directory"), "{refused:?}");
}

/// UC-11, FS-12: files made inside belong to the root's owner, whoever that is, and never to root by accident.
#[test]
fn a_new_file_belongs_to_the_owner_of_its_root() {
    let owners: &[u32] = if crate::support::is_root() { &[0, 12345, 65534] } else { &[nix::unistd::getuid().as_raw()] };
    for &owner in owners {
        let yard = yard();
        let gid = if crate::support::is_root() { owner } else { nix::unistd::getgid().as_raw() };
        for path in [yard.workspace.path().to_path_buf(), yard.workspace.path().join("own")] {
            std::os::unix::fs::chown(path, Some(owner), Some(gid)).expect("an owner");
        }
        yard.inside(&[("create {w}/new", 0), ("mkdir {w}/dir", 0), ("append {w}/own", 0), ("symlink x {w}/link", 0)]);
        for name in ["new", "dir", "own", "link"] {
            let found = yard.workspace.path().join(name).symlink_metadata().expect("it was made");
            assert_eq!((found.uid(), found.gid()), (owner, gid), "{name}");
        }
        let seen = yard.shell("stat -c '%U %G' new own . | sort -u").stdout;
        assert_eq!(seen, if crate::support::is_root() { "agent agent\n" } else { seen.as_str() });
        assert!(!seen.contains("nobody"), "{seen}");
    }
}

/// A file of somebody else in the workspace is somebody else's inside too.
#[test]
fn a_foreign_file_in_a_root_is_not_the_agents() {
    if !crate::support::is_root() {
        // An ordinary user cannot make a foreign file, and every mapping is to himself.
        yard().inside(&[("append {w}/own", 0)]);
        return;
    }
    let yard = yard();
    let foreign = yard.workspace.file("foreign", "text");
    std::os::unix::fs::chown(yard.workspace.path(), Some(12345), Some(12345)).expect("an owner");
    fs::set_permissions(&foreign, fs::Permissions::from_mode(0o600)).expect("a mode");
    yard.denied(&[("read {w}/foreign", EACCES), ("append {w}/foreign", EACCES), ("chmod {w}/foreign 644", EOVERFLOW)]);
}

/// UC-11: the operator's umask is not the agent's.
#[test]
fn new_files_are_not_writable_by_others_whatever_the_operators_umask() {
    let yard = yard();
    for mask in ["000", "022", "077"] {
        let mut command = std::process::Command::new(yard.probe_path());
        let stockade = yard.command();
        command.args(["with-umask", mask]).arg(stockade.get_program()).args(stockade.get_args());
        command.args(["--", "/bin/sh", "-c", "umask; rm -f made; touch made"]).current_dir(yard.workspace.path());
        let output = command.output().expect("stockade starts");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "0022\n", "{output:?}");
        let made = yard.workspace.path().join("made").metadata().expect("it was made");
        assert_eq!(made.mode() & 0o7777, 0o644, "{mask}");
    }
}

/// A list that allows the programs of a directory opens nothing that is hidden or read-only below it.
#[test]
fn listed_programs_in_a_root_uncover_nothing() {
    for listed in ["{workspace}/bin/*", "{workspace}/**", "{workspace}/bin/tool"] {
        let yard = Yard::away(&format!(
            "[filesystem]\nhidden = [\"bin/key\"]\nread_only_roots = [\"{{workspace}}/bin/ro\"]\n\
             [commands]\nallowed = [\"sh\", \"bash\", \"{{beside}}/probe/probe\", \"{listed}\"]"
        ));
        for file in ["bin/key", "bin/ro/file", "bin/file"] {
            yard.workspace.file(file, "text");
        }
        let tool = yard.workspace.file("bin/tool", "#!/bin/sh\nexit 0\n");
        fs::set_permissions(tool, fs::Permissions::from_mode(0o755)).expect("a mode");
        yard.inside(&[
            ("exec {w}/bin/tool", 0),
            ("read {w}/bin/key", EACCES),
            ("append {w}/bin/ro/file", EROFS),
            ("append {w}/bin/file", 0),
        ]);
        yard.outside(&[("read {w}/bin/key", 0), ("append {w}/bin/ro/file", 0)]);
    }
}

/// With listed programs the system's directories are put together again, and stay read-only without Landlock too.
#[test]
fn a_rebuilt_system_directory_cannot_be_written_even_without_landlock() {
    let yard = Yard::away(
        "[commands]\nallowed = [\"sh\", \"bash\", \"{beside}/probe/probe\"]\n[enforcement]\nlandlock = \"if-available\"",
    );
    let cases: Vec<String> =
        ["/usr/bin", "/usr/sbin", "/usr/lib", "/usr/local/bin"].map(|at| format!("create {at}/x")).into();
    yard.inside_without_landlock(&cases.iter().map(|case| (case.as_str(), EROFS)).collect::<Vec<_>>());
    yard.inside(&cases.iter().map(|case| (case.as_str(), EROFS)).collect::<Vec<_>>());
    yard.inside_without_landlock(&[("create /tmp/x", 0), ("exec /bin/sh", 0), ("exec /bin/ls", EACCES)]);
}

/// The system is shown to every cell; naming a part of it again changes nothing.
#[test]
fn a_part_of_the_system_can_be_named_as_a_read_only_root() {
    for root in ["/usr", "/usr/share", "/usr/bin"] {
        let yard = Yard::new().flag("--ro").flag(root);
        assert_eq!(yard.probe(&["list", root]), 0, "{root}");
        assert_eq!(yard.probe(&["create", &format!("{root}/new")]), EROFS, "{root}");
    }
}
