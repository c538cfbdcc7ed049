//! Which directory a root leads to, and which one can be the workspace.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use stockade::policy::Overrides;

use crate::scratch::Scratch;

#[test]
fn a_root_is_canonicalised_once() {
    let scratch = Scratch::new();
    symlink(scratch.path("work/sub"), scratch.path("link")).expect("a link");
    for (written, expected) in [
        ("{tmp}/work", "work"),
        ("{tmp}/work/", "work"),
        ("{tmp}//work//sub", "work/sub"),
        ("{tmp}/work/../work/./sub", "work/sub"),
        ("{tmp}/link", "work/sub"),
        ("{workspace}", "work"),
        ("{workspace}/sub", "work/sub"),
        ("~/.ssh", "home/.ssh"),
        ("{workspace}?", "work"),
    ] {
        let policy = scratch.load(&format!("[filesystem]\nallowed_roots = [\"{written}\"]\n")).expect(written);
        let paths: Vec<_> = policy.filesystem.grants.iter().map(|grant| grant.path.clone()).collect();
        assert_eq!(paths, [scratch.path(expected)], "{written}");
    }
}

#[test]
fn a_missing_root_is_skipped_only_with_a_question_mark() {
    let scratch = Scratch::new();
    let optional = "[filesystem]\nread_only_roots = [\"{tmp}/later?\", \"{workspace}\"]\n";
    assert_eq!(scratch.load(optional).expect("skipped").filesystem.grants.len(), 1);
    fs::create_dir(scratch.path("later")).expect("a directory");
    assert_eq!(scratch.load(optional).expect("found").filesystem.grants.len(), 2);
}

#[test]
fn a_link_that_an_agent_planted_is_not_followed() {
    let scratch = Scratch::new();
    let text = "[filesystem]\nallowed_roots = [\"{workspace}\"]\nread_only_roots = [\"{workspace}/data\"]\n";
    fs::create_dir(scratch.path("work/data")).expect("a directory");
    scratch.load(text).expect("a real directory is fine");
    fs::remove_dir(scratch.path("work/data")).expect("an empty directory");
    symlink(scratch.path("home/.ssh"), scratch.path("work/data")).expect("a link");
    let error = scratch.load(text).expect_err("a link out of the workspace");
    assert!(error.contains("leads out of the read-write root `{tmp}/work`, to `{tmp}/home/.ssh`"), "{error}");
}

#[test]
fn a_workspace_is_one_project() {
    let scratch = Scratch::new();
    let load = |workspace: &Path| scratch.load_with("default", Some(workspace), &Overrides::default());
    assert_eq!(load(&scratch.path("work")).expect("a project").workspace, scratch.path("work"));
    assert_eq!(load(Path::new("sub")).expect("relative to the current directory").workspace, scratch.path("work/sub"));
    for (workspace, part) in [
        (Path::new("/"), "`--workspace /`: is a system directory"),
        (Path::new("/etc"), "is a system directory"),
        (Path::new("/usr/../tmp"), "is a system directory"),
        (&scratch.path("home"), "is your home directory"),
        (&scratch.path(""), "holds your home directory"),
        (&scratch.path("a-file"), "is not a directory"),
        (&scratch.path("gone"), "no such directory"),
    ] {
        let error = load(workspace).expect_err("not a project");
        assert!(error.contains(part) && error.contains("\nhint: "), "{}: {error}", workspace.display());
    }
}

/// PL-08. Runs itself again where it may mount: the policy's directory appears inside the workspace.
#[test]
fn a_directory_mounted_twice_is_still_the_same() {
    const CHILD: &str = "STOCKADE_TEST_MOUNTED";
    let text = "[filesystem]\nallowed_roots = [\"{workspace}/sub\"]\n";
    if std::env::var_os(CHILD).is_some() {
        let scratch = Scratch::new();
        scratch.load(text).expect("an ordinary directory");
        let (from, to) = (scratch.path("policies"), scratch.path("work/sub"));
        let bind = Command::new("mount").arg("--bind").args([from, to]).status();
        assert!(bind.expect("mount").success());
        println!("answer: {:?}", scratch.load(text).map(|_| ()));
        let back = Command::new("umount").arg(scratch.path("work/sub")).status();
        assert!(back.expect("umount").success());
        return;
    }
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount"]);
    command.arg(std::env::current_exe().expect("this test"));
    command.args(["--exact", "roots::a_directory_mounted_twice_is_still_the_same"]);
    let output = command.arg("--nocapture").env(CHILD, "1").output().expect("unshare");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("holds this policy"), "{text}{errors}");
}
