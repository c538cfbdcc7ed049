//! Trees made to hang, crash or bloat a search.

use super::{Dice, Request, State, Tree, lines, pages, paths};
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::{Mode, mkdirat};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

#[test]
fn fifos_sockets_and_link_loops_hold_nothing_up() {
    let tree = Tree::with(&[("d/a", "needle")]);
    nix::unistd::mkfifo(&tree.0.join("fifo"), Mode::S_IRWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(tree.0.join("socket")).unwrap();
    symlink("self", tree.0.join("self")).unwrap();
    symlink("..", tree.0.join("d/up")).unwrap();
    symlink("/dev/zero", tree.0.join("zero")).unwrap();
    let (found, page) = pages(&tree.request("needle"), 10).unwrap();
    assert_eq!((found.len(), page.state, page.error_count), (1, State::Done, 0));
    for name in ["fifo", "socket", "zero", "self"] {
        let request = Request { path: Some(name.into()), ..tree.request("x") };
        assert!(pages(&request, 10).is_err(), "{name} was searched");
    }
    let through_link = Request { path: Some("d/up/d".into()), ..tree.request("needle") };
    assert_eq!(paths(&through_link), ["d/up/d/a"], "a link that is named is followed");
}

#[test]
fn what_the_kernel_tells_is_not_searched() {
    let tree = Tree::new();
    for path in ["/proc", "/proc/self/environ", "/sys"] {
        let request = Request { path: Some(path.into()), ..tree.request("x") };
        assert!(pages(&request, 10).unwrap_err().message.contains("what the kernel tells"), "{path}");
    }
}

#[test]
fn a_file_that_shrinks_while_it_is_read_is_no_crash() {
    let tree = Tree::new();
    let path = tree.0.join("shrinking");
    let text = "some hay and a needle\n".repeat(20_000);
    fs::write(&path, &text).unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut dice = Dice(3);
            while !is_over.load(Ordering::Relaxed) {
                let mut file = File::options().write(true).open(&path).unwrap();
                file.set_len(dice.roll(text.len() as u64)).unwrap();
                file.write_all(text.as_bytes()).unwrap();
            }
        });
        for _ in 0..30 {
            let (_, page) = pages(&tree.request("needle"), 1000).unwrap();
            assert!(matches!(page.state, State::Done | State::Limited), "{page:?}");
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_tree_deeper_than_any_path_is_searched_to_its_end() {
    // By number of levels and, with long names, by length of path.
    for (levels, name) in [(1500, "d".to_owned()), (60, "n".repeat(200))] {
        let tree = Tree::new();
        let mut at = open(&tree.0, OFlag::O_PATH, Mode::empty()).unwrap();
        for _ in 0..levels {
            mkdirat(&at, name.as_str(), Mode::S_IRWXU).unwrap();
            at = openat(&at, name.as_str(), OFlag::O_PATH, Mode::empty()).unwrap();
        }
        let bottom = openat(&at, "f", OFlag::O_WRONLY | OFlag::O_CREAT, Mode::S_IRWXU).unwrap();
        File::from(bottom).write_all(b"needle").unwrap();
        let found = lines(&tree.request("needle"));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path, format!("{name}/").repeat(levels) + "f");
        let names = paths(&Request { literal: true, ..tree.names("/f") });
        assert_eq!(names, [found[0].path.as_str()]);
    }
}

#[test]
fn twenty_thousand_files_in_one_directory_are_all_searched() {
    let tree = Tree::new();
    for number in 0..20_000 {
        File::create(tree.0.join(format!("f{number}"))).unwrap();
    }
    tree.write("f19999", b"needle");
    let (found, page) = pages(&tree.request("needle"), 10).unwrap();
    assert_eq!((found.len(), page.searched_files), (1, 20_000));
}

#[test]
fn a_giant_line_is_searched_once_and_cut() {
    let tree = Tree::new();
    let mut text = b"needle first\n".to_vec();
    text.resize(3 << 20, b'z');
    text.extend_from_slice(b" needle last");
    tree.write("a", &text);
    let found = lines(&tree.request("needle"));
    let places: Vec<(u64, u64)> = found.iter().map(|line| (line.line, line.column)).collect();
    assert_eq!(places, [(1, 1), (2, (3 << 20) - 13 + 2)]);
    assert!(found[1].text.chars().count() <= 500 && found[1].text.contains("needle"));
}

#[test]
fn a_sparse_giant_is_left_at_its_first_byte() {
    let tree = Tree::new();
    File::create(tree.0.join("sparse")).unwrap().set_len(1 << 40).unwrap();
    let (_, page) = pages(&tree.request("needle"), 10).unwrap();
    assert_eq!((page.state, page.skipped_binary), (State::Done, 1));
    let named = Request { path: Some("sparse".into()), ..tree.request("needle") };
    let (_, page) = pages(&named, 10).unwrap();
    assert!(page.errors[0].message.contains("has a line of more than"), "{:?}", page.errors);
}

#[test]
fn a_directory_that_may_not_be_read_is_named() {
    let tree = Tree::with(&[("closed/a", "needle"), ("open/a", "needle")]);
    if nix::unistd::geteuid().is_root() {
        eprintln!("skipped: nothing is closed to root");
        return;
    }
    let closed = tree.0.join("closed");
    fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    let (found, page) = pages(&tree.request("needle"), 10).unwrap();
    fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    assert_eq!((found.len(), page.error_count, page.errors[0].path.as_str()), (1, 1, "closed"));
}
