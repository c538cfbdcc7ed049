//! PL-10, PL-13: whose file is read, and how much of it.

use std::fs;
use std::os::unix::fs::symlink;

use nix::sys::stat::Mode;
use nix::unistd::{Uid, chown, geteuid, mkfifo};
use stockade::policy::{Operator, Overrides, Policy};

use crate::scratch::Scratch;

#[test]
fn a_policy_that_others_could_rewrite_is_refused() {
    let stranger = Uid::from_raw(if geteuid().is_root() { 65534 } else { geteuid().as_raw() });
    type Spoil<'a> = &'a dyn Fn(&Scratch, &mut Operator);
    let cases: [(&str, Spoil<'_>, Option<&str>); 10] = [
        ("an ordinary file", &|_, _| (), None),
        (
            "a sticky directory",
            &|s, _| {
                s.chmod("policies", 0o1777);
            },
            None,
        ),
        (
            "world-writable",
            &|s, _| {
                s.chmod("policies/p.toml", 0o646);
            },
            Some("can be written by others"),
        ),
        (
            "group-writable",
            &|s, _| {
                s.chmod("policies/p.toml", 0o664);
            },
            Some("can be written by others"),
        ),
        (
            "in a world-writable directory",
            &|s, _| {
                s.chmod("policies", 0o777);
            },
            Some("its directory `{tmp}/policies` can be written by others"),
        ),
        (
            "below a world-writable directory",
            &|s, _| {
                s.chmod("", 0o777);
            },
            Some("its directory `{tmp}` can be written by others"),
        ),
        (
            "somebody else's",
            &|s, operator| {
                chown(&s.path("policies/p.toml"), Some(stranger), None).expect("root may, and oneself may");
                operator.uid = if geteuid().is_root() { 0 } else { stranger.as_raw() + 1 };
            },
            Some("belongs to"),
        ),
        (
            "a link",
            &|s, _| {
                fs::rename(s.path("policies/p.toml"), s.path("policies/real.toml")).expect("own files");
                symlink("real.toml", s.path("policies/p.toml")).expect("a link");
            },
            Some("is a symbolic link"),
        ),
        (
            "a pipe nobody writes to",
            &|s, _| {
                fs::remove_file(s.path("policies/p.toml")).expect("own file");
                mkfifo(&s.path("policies/p.toml"), Mode::S_IRUSR).expect("a pipe");
            },
            Some("is not a regular file"),
        ),
        (
            "a directory",
            &|s, _| {
                fs::remove_file(s.path("policies/p.toml")).expect("own file");
                fs::create_dir(s.path("policies/p.toml")).expect("a directory");
            },
            Some("is not a regular file"),
        ),
    ];
    for (name, spoil, expected) in cases {
        let scratch = Scratch::new();
        scratch.write("policies/p.toml", "");
        let mut operator = scratch.operator();
        spoil(&scratch, &mut operator);
        let path = scratch.path("policies/p.toml");
        let found = Policy::load_as(&operator, path.to_str(), None, &Overrides::default())
            .map_err(|error| scratch.mask(&error.to_string()));
        match (expected, found) {
            (None, Ok(_)) => {}
            (Some(part), Err(error)) if error.contains(part) => {}
            (_, found) => panic!("{name}: {found:?}"),
        }
    }
}

#[test]
fn a_file_too_large_or_too_deep_is_one_short_error() {
    let roots =
        |count: usize| format!("[filesystem]\nread_only_roots = [{}]\n", vec!["\"{workspace}\""; count].join(", "));
    let promises = format!("[[expect]]\ndenied = [{}]\n", vec!["\"read /x\""; 4097].join(","));
    let cases = [
        ("most bytes", format!("#{}", "x".repeat(256 * 1024 - 1)), None),
        ("a byte more", format!("#{}", "x".repeat(256 * 1024)), Some("more than the 262144")),
        ("most roots", roots(256), None),
        ("a root more", roots(257), Some("257 entries, more than the 256")),
        ("too many promises", promises, Some("more than 4096 promises")),
        ("nested too deep", format!("agent = {}{}", "[".repeat(5000), "]".repeat(5000)), Some("recurs")),
        ("a huge number", format!("[limits]\nmemory = 1{}\n", "0".repeat(5000)), Some("overflow")),
        ("a byte order mark", "\u{feff}[limits]\ncpus = 1\n".to_owned(), None),
        ("carriage returns", "[limits]\r\ncpus = 1\r\n".to_owned(), None),
        (
            "a fault after carriage returns",
            "[limits]\r\ncpu = 1\r\n".to_owned(),
            Some(":2:1: unknown key `cpu`\n  |\n2 | cpu = 1\n  | ^^^\n"),
        ),
    ];
    for (name, text, expected) in cases {
        match (expected, Scratch::new().load(&text)) {
            (None, Ok(_)) => {}
            (Some(part), Err(error)) if error.contains(part) && error.len() < 1000 => {}
            (_, found) => panic!("{name}: {found:?}"),
        }
    }
    let scratch = Scratch::new();
    fs::write(scratch.path("policies/p.toml"), b"# caf\xe9\n").expect("a file");
    let error = scratch.load_with("policies/p.toml", None, &Overrides::default()).expect_err("Latin-1");
    assert!(error.contains("line 1 is not UTF-8"), "{error}");
}
