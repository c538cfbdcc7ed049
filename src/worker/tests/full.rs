//! No room left, at every step of a write: the file stays what it was, and nothing lies around.

use super::room::{Room, code, on_small_disk, other_self, other_selfs_directory, refused, text};
use crate::worker::ask::{Change, Code, Write};
use std::fs;

const PAGE: usize = 4096;

/// Fills the disk until so many pages are free.
fn leave_free(room: &Room, pages: u64) {
    let _ = fs::remove_file(room.path("ballast"));
    let free = nix::sys::statfs::statfs(&room.dir).expect("the disk").blocks_free();
    let ballast = usize::try_from(free.saturating_sub(pages)).expect("a small disk") * PAGE;
    fs::write(room.path("ballast"), vec![1; ballast]).expect("ballast");
}

#[test]
fn a_full_disk_leaves_the_old_file_at_every_step() {
    let room = Room::new();
    on_small_disk(&room, "size=256k,nr_inodes=64", || {
        let old = vec![b'o'; 3 * PAGE];
        let new = vec![b'n'; 6 * PAGE];
        for (name, links) in [("plain", 1), ("linked", 2)] {
            let mut outcomes = [0, 0];
            for free in 0..10 {
                room.put(name, &old);
                if links == 2 {
                    let _ = fs::hard_link(room.path(name), room.path("other"));
                }
                leave_free(&room, free);
                for append in [false, true] {
                    room_for_old(&room, name, &old, free);
                    let ask = Write { append, ..Write::default() };
                    match room.write(name, new.clone(), ask) {
                        Ok(_) => outcomes[0] += 1,
                        Err(failure) => {
                            outcomes[1] += 1;
                            assert_eq!((failure.code, &failure.details["errno"]), (Code::IoError, &"ENOSPC".into()));
                            assert_eq!(room.bytes(name), old, "{name} with {free} pages free");
                        }
                    }
                    assert!(room.names().iter().all(|name| !name.contains(".tmp")), "{:?}", room.names());
                }
            }
            assert!(outcomes.iter().all(|count| *count > 0), "{name}: {outcomes:?}");
            let _ = fs::remove_file(room.path("other"));
            fs::remove_file(room.path(name)).expect("the file goes");
        }
    });
}

/// The file as it was, and so many pages free.
fn room_for_old(room: &Room, name: &str, old: &[u8], free: u64) {
    let _ = fs::remove_file(room.path("ballast"));
    room.put(name, old);
    leave_free(room, free);
}

#[test]
fn a_disk_without_free_names_leaves_the_old_file() {
    let room = Room::new();
    on_small_disk(&room, "size=256k,nr_inodes=6", || {
        room.put("a", "old");
        let mut number = 0;
        while fs::write(room.path(&format!("filler{number}")), "").is_ok() {
            number += 1;
        }
        let failures = [
            refused(room.write("a", "new", Write::default())),
            refused(room.write("fresh", "new", Write::default())),
            refused(room.edit("a", &[text("old", "new")])),
            refused(room.write("d/e/fresh", "new", Write { create_parents: true, ..Write::default() })),
        ];
        assert!(failures.iter().all(|failure| failure.code == Code::IoError), "{failures:?}");
        assert_eq!(room.text("a"), "old");
        fs::remove_file(room.path("filler0")).expect("room for one");
        room.write("a", "new", Write::default()).expect("written");
        assert_eq!(room.text("a"), "new");
        assert_eq!(room.names().len(), number);
    });
}

#[test]
fn an_edit_on_a_full_disk_changes_nothing() {
    let room = Room::new();
    on_small_disk(&room, "size=128k", || {
        let old = "line\n".repeat(2000);
        room.put("a", &old);
        for free in 0..3 {
            leave_free(&room, free);
            let all = Change { count: Some(0), ..text("line", "longer line") };
            assert_eq!(code(room.edit("a", &[all])), Code::IoError);
            assert_eq!(room.text("a"), old);
        }
    });
}

#[test]
fn the_limit_on_file_sizes_is_told_and_does_not_kill() {
    use nix::sys::resource::{Resource, setrlimit};
    let this = "worker::tests::full::the_limit_on_file_sizes_is_told_and_does_not_kill";
    if let Some(dir) = other_selfs_directory() {
        let mut room = std::mem::ManuallyDrop::new(Room::at(dir));
        room.put("a", "old");
        room.put("large", vec![b'x'; 6000]);
        setrlimit(Resource::RLIMIT_FSIZE, 8192, 8192).expect("a limit");
        assert_eq!(code(room.write("a", vec![0; 8193], Write::default())), Code::TooLarge);
        assert_eq!(code(room.write("new", vec![0; 8193], Write::default())), Code::TooLarge);
        room.terms.max_file_bytes = 5000;
        let append = Write { append: true, ..Write::default() };
        assert_eq!(code(room.write("large", vec![0; 4000], append)), Code::TooLarge);
        room.write("a", vec![b'n'; 5000], Write::default()).expect("within the limit");
        return;
    }
    let room = Room::new();
    let status = other_self(this, &room.dir).status().expect("it runs");
    assert!(status.success(), "{status}");
    assert_eq!((room.bytes("a"), room.bytes("large").len()), (vec![b'n'; 5000], 6000));
    assert_eq!(room.names(), ["a", "large"]);
}
