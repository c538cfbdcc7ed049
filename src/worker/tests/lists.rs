//! Listing: order, pages, names of any bytes.

use super::room::{Room, code};
use crate::worker::ask::{Code, Kind, List, Listing, Read};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

fn ask(depth: u32, limit: u32, cursor: Option<String>) -> List {
    List { path: String::new(), depth: Some(depth), limit: Some(limit), cursor }
}

fn paths(listing: &Listing) -> Vec<String> {
    listing.entries.iter().map(|entry| entry.path.clone()).collect()
}

/// All pages, one after the other.
fn all(room: &Room, path: &str, depth: u32, limit: u32) -> Vec<String> {
    let mut found = Vec::new();
    let mut cursor = None;
    loop {
        let page = room.list(path, &ask(depth, limit, cursor)).expect("a page");
        assert!(page.entries.len() <= limit as usize);
        assert_eq!(page.truncated, page.next_cursor.is_some());
        found.extend(paths(&page));
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => return found,
        }
    }
}

fn tree(room: &Room) {
    for dir in ["a/deep/er", "b", "a-b", "z/y"] {
        fs::create_dir_all(room.path(dir)).expect(dir);
    }
    for file in ["a/1", "a/2", "a/deep/3", "a/deep/er/4", "b/5", "a-b/6", "z/y/7", "top", ".hidden"] {
        room.put(file, file);
    }
}

#[test]
fn a_walk_is_in_path_order_and_as_deep_as_asked() {
    let room = Room::new();
    tree(&room);
    let one = [".hidden", "a", "a-b", "b", "top", "z"];
    let two = [".hidden", "a", "a/1", "a/2", "a/deep", "a-b", "a-b/6", "b", "b/5", "top", "z", "z/y"];
    assert_eq!(all(&room, ".", 1, 100), one);
    assert_eq!(all(&room, ".", 2, 100), two);
    assert_eq!(all(&room, "a", 9, 100), ["a/1", "a/2", "a/deep", "a/deep/3", "a/deep/er", "a/deep/er/4"]);
}

#[test]
fn pages_of_any_size_add_up_to_the_whole() {
    let room = Room::new();
    tree(&room);
    for number in 0..40 {
        room.put(&format!("b/n{number}"), "");
    }
    let whole = all(&room, ".", 5, 10_000);
    for limit in 1..60 {
        assert_eq!(all(&room, ".", 5, limit), whole, "pages of {limit}");
    }
}

#[test]
fn a_cursor_stands_for_a_place_and_not_for_an_entry() {
    let room = Room::new();
    for name in ["a", "b", "c", "d"] {
        room.put(name, "");
    }
    let page = room.list(".", &ask(1, 2, None)).expect("a page");
    assert_eq!(paths(&page), ["a", "b"]);
    fs::remove_file(room.path("b")).expect("b goes");
    room.put("0-new", "");
    room.put("bb", "");
    let rest = room.list(".", &ask(1, 9, page.next_cursor)).expect("a page");
    assert_eq!(paths(&rest), ["bb", "c", "d"]);
}

#[test]
fn the_reply_has_room_for_so_much() {
    let mut room = Room::new();
    room.terms.reply_bytes = 2000;
    for number in 0..100 {
        room.put(&format!("{number:02}{}", "x".repeat(200)), "");
    }
    let page = room.list(".", &ask(1, 100, None)).expect("a page");
    assert!(page.truncated && (2..10).contains(&page.entries.len()), "{}", page.entries.len());
    assert_eq!(all(&room, ".", 1, 100).len(), 100);
}

#[test]
fn entries_say_what_they_are_and_links_are_not_followed() {
    let room = Room::new();
    fs::create_dir(room.path("dir")).expect("a directory");
    room.put("dir/inside", "");
    symlink("dir", room.path("link")).expect("a link");
    symlink("..", room.path("dir/up")).expect("a link");
    let found = room.entries(".", 50);
    let told: Vec<_> = found.iter().map(|entry| (entry.path.as_str(), entry.kind)).collect();
    let expected = [("dir", Kind::Dir), ("dir/inside", Kind::File), ("dir/up", Kind::Symlink), ("link", Kind::Symlink)];
    assert_eq!(told, expected);
    assert!(found.iter().all(|entry| entry.mode.is_some() && entry.mtime_ms.is_some() && entry.error.is_none()));
    assert_eq!(all(&room, "link", 1, 9), ["link/inside", "link/up"]);
}

#[test]
fn any_name_is_listed_unambiguously_and_can_be_used_again() {
    let room = Room::new();
    let long = [b'l'; 255];
    let names: [&[u8]; 11] = [
        b"new\nline",
        b"\x1b[31mred",
        b"not\xffutf8",
        b"also\\xffnot",
        b"%41",
        b"-rf",
        b"*",
        b" ",
        b"caf\xc3\xa9",
        &long,
        b"file:",
    ];
    for name in names {
        fs::write(room.dir.join(OsStr::from_bytes(name)), name).expect("any name");
    }
    let entries = room.entries(".", 1);
    assert_eq!(entries.len(), names.len());
    for entry in &entries {
        let page = room.page(&entry.path, Read { encoding: crate::worker::ask::Encoding::Base64, ..Read::default() });
        let by_name = entry.name_bytes.clone();
        if let Some(bytes) = by_name {
            assert_eq!(page.content, bytes);
            assert!(entry.path.starts_with("file:///") && entry.path.ends_with("not%FFutf8"), "{}", entry.path);
        }
        let json = serde_json::to_string(entry).expect("JSON");
        assert!(!json.contains(['\n', '\u{1b}']));
    }
    assert_eq!(entries.iter().filter(|entry| entry.name_bytes.is_some()).count(), 1);
    let mut contents: Vec<String> =
        entries.iter().map(|entry| room.page(&entry.path, Read::default()).content).collect();
    contents.sort();
    contents.dedup();
    assert_eq!(contents.len(), names.len());
}

#[test]
fn a_directory_that_is_not_text_is_listed_and_walked() {
    let room = Room::new();
    let dir = room.dir.join(OsStr::from_bytes(b"d\xfe"));
    fs::create_dir(&dir).expect("any name");
    fs::write(dir.join("x"), "inside").expect("a file");
    let entries = room.entries(".", 2);
    assert_eq!(entries.len(), 2);
    assert_eq!(room.page(&entries[1].path, Read::default()).content, "inside");
    assert_eq!(all(&room, &entries[0].path, 1, 5), [entries[1].path.clone()]);
}

#[test]
fn a_directory_that_may_not_be_read_says_so_and_the_walk_goes_on() {
    use std::os::unix::fs::PermissionsExt;
    let room = Room::new();
    fs::create_dir(room.path("closed")).expect("a directory");
    room.put("open", "");
    fs::set_permissions(room.path("closed"), fs::Permissions::from_mode(0o700)).expect("a mode");
    let Some(entries) = super::room::as_nobody(&room, || room.entries(".", 3)) else {
        return;
    };
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[0].error.as_ref().map(|failure| failure.code), Some(Code::PathNotAllowed));
    assert_eq!(entries[1].error, None);
}

#[test]
fn what_cannot_be_listed_is_refused() {
    let room = Room::new();
    room.put("file", "");
    assert_eq!(code(room.list("file", &ask(1, 1, None))), Code::InvalidArgument);
    assert_eq!(code(room.list("missing", &ask(1, 1, None))), Code::NotFound);
    assert_eq!(code(room.list("file/x", &ask(1, 1, None))), Code::NotFound);
    for bad in [ask(0, 1, None), ask(129, 1, None), ask(1, 0, None), ask(1, 10_001, None)] {
        assert_eq!(code(room.list(".", &bad)), Code::InvalidArgument);
    }
    for cursor in ["", "!!", "a b"] {
        assert_eq!(code(room.list(".", &ask(1, 1, Some(cursor.into())))), Code::InvalidArgument);
    }
}
