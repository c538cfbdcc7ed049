//! Moving: a rename, or a copy across mounts.

use super::room::{Room, code, on_small_disk, refused};
use crate::worker::ask::Code;
use crate::worker::files::draft::Existing;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

#[test]
fn a_move_replaces_only_when_asked() {
    let room = Room::new();
    room.put("a", "A");
    room.put("b", "B");
    let failure = refused(room.relocate("a", "b", Existing::Keep));
    assert_eq!(failure.code, Code::AlreadyExists);
    assert!(failure.message.contains("`overwrite`"), "{failure}");
    assert_eq!((room.text("a"), room.text("b")), ("A".into(), "B".into()));
    assert!(!room.relocate("a", "b", Existing::Replace).expect("moved").copied);
    assert_eq!((room.text("b"), room.names()), ("A".into(), vec!["b".to_owned()]));
    room.relocate("b", "c", Existing::Keep).expect("moved");
    fs::create_dir(room.path("d")).expect("a directory");
    room.relocate("d", "e", Existing::Keep).expect("a directory moves too");
    assert_eq!(room.names(), ["c", "e"]);
}

#[test]
fn what_cannot_be_moved_is_refused_with_words() {
    let room = Room::new();
    room.put("f", "F");
    fs::create_dir_all(room.path("d/sub")).expect("a directory");
    fs::create_dir(room.path("empty")).expect("a directory");
    let cases = [
        ("missing", "x", Existing::Replace, Code::NotFound),
        ("f", "none/x", Existing::Replace, Code::NotFound),
        ("f", "d", Existing::Replace, Code::AlreadyExists),
        ("f", "d", Existing::Keep, Code::AlreadyExists),
        ("d", "f", Existing::Replace, Code::AlreadyExists),
        ("empty", "d", Existing::Replace, Code::AlreadyExists),
        ("d", "d/sub/x", Existing::Keep, Code::InvalidArgument),
        ("f", "f/x", Existing::Keep, Code::NotFound),
        ("/", "x", Existing::Keep, Code::PathNotAllowed),
        ("/proc", "x", Existing::Keep, Code::PathNotAllowed),
        (".", "x", Existing::Keep, Code::PathNotAllowed),
        ("d/..", "x", Existing::Keep, Code::PathNotAllowed),
    ];
    for (from, to, existing, expected) in cases {
        let failure = refused(room.relocate(from, to, existing));
        assert_eq!(failure.code, expected, "{from} to {to}: {failure}");
    }
    assert_eq!((room.text("f"), room.names()), ("F".into(), vec!["d".into(), "empty".into(), "f".to_owned()]));
}

#[test]
fn names_of_one_file_are_told_apart() {
    let room = Room::new();
    room.put("a", "A");
    fs::hard_link(room.path("a"), room.path("b")).expect("a link");
    assert_eq!(code(room.relocate("a", "a", Existing::Keep)), Code::AlreadyExists);
    room.relocate("a", "./a", Existing::Replace).expect("to itself");
    assert_eq!(room.names(), ["a", "b"]);
    room.relocate("a", "b", Existing::Replace).expect("moved");
    assert_eq!((room.names(), room.text("b")), (vec!["b".to_owned()], "A".into()));
    symlink("b", room.path("link")).expect("a link");
    room.relocate("link", "moved", Existing::Keep).expect("the link itself moves");
    assert!(fs::symlink_metadata(room.path("moved")).expect("the link").is_symlink());
}

#[test]
fn across_mounts_a_file_is_copied_whole_and_then_removed() {
    let (disk, outside) = (Room::new(), Room::new());
    outside.put("a", "A");
    outside.put("taken", "T");
    fs::set_permissions(outside.path("a"), fs::Permissions::from_mode(0o640)).expect("a mode");
    symlink("somewhere", outside.path("link")).expect("a link");
    fs::create_dir(outside.path("dir")).expect("a directory");
    nix::unistd::mkfifo(&outside.path("fifo"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let before = fs::metadata(outside.path("a")).expect("the file");
    on_small_disk(&disk, "size=64k", || {
        let from = |name: &str| outside.path(name).to_string_lossy().into_owned();
        assert!(disk.relocate(&from("a"), "b", Existing::Keep).expect("moved").copied);
        let after = fs::metadata(disk.path("b")).expect("the copy");
        assert_eq!(
            (after.mode(), after.mtime_nsec(), disk.text("b")),
            (before.mode(), before.mtime_nsec(), "A".into())
        );
        assert_eq!(code(disk.relocate(&from("taken"), "b", Existing::Keep)), Code::AlreadyExists);
        assert_eq!(disk.text("b"), "A");
        disk.relocate(&from("taken"), "b", Existing::Replace).expect("moved");
        assert_eq!(disk.text("b"), "T");
        disk.relocate(&from("link"), "link", Existing::Keep).expect("moved");
        assert_eq!(fs::read_link(disk.path("link")).expect("a link").to_str(), Some("somewhere"));
        let failure = refused(disk.relocate(&from("dir"), "dir", Existing::Keep));
        assert_eq!(failure.code, Code::InvalidArgument);
        assert!(failure.message.contains("another mount"), "{failure}");
        assert_eq!(code(disk.relocate(&from("fifo"), "fifo", Existing::Keep)), Code::NotAFile);
        outside.put("big", vec![1; 100_000]);
        assert_eq!(code(disk.relocate(&from("big"), "big", Existing::Keep)), Code::IoError);
        assert_eq!(disk.names(), ["b", "link"]);
        assert_eq!(outside.names(), ["big", "dir", "fifo"]);
        let giant = fs::File::create(outside.path("big")).expect("a file");
        giant.set_len(1 << 40).expect("a sparse file");
        assert_eq!(code(disk.relocate(&from("big"), "big", Existing::Keep)), Code::TooLarge);
        assert_eq!(code(disk.relocate(".", &from("x"), Existing::Keep)), Code::PathNotAllowed);
        let mount_point = disk.dir.to_string_lossy().into_owned();
        assert_eq!(code(outside.relocate(&mount_point, "x", Existing::Keep)), Code::PathNotAllowed);
    });
}
