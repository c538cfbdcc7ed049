//! Changes at once: they follow each other, none is lost and none is half.

use super::room::{Dice, Room, code, text};
use crate::worker::ask::{Code, Read, Write};
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn edits_of_one_file_at_once_are_all_there() {
    let room = Room::new();
    room.put("a", "end\n");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let room = &room;
            scope.spawn(move || {
                for number in 0..50 {
                    let line = format!("{thread}:{number}\nend\n");
                    room.edit("a", &[text("end\n", &line)]).expect("an edit");
                }
            });
        }
    });
    let found = room.text("a");
    assert_eq!(found.lines().count(), 201);
    for thread in 0..4 {
        let own = found.lines().filter(|line| line.starts_with(&format!("{thread}:")));
        let numbers: Vec<&str> = own.filter_map(|line| line.split_once(':')).map(|(_, number)| number).collect();
        assert_eq!(numbers, (0..50).map(|number| number.to_string()).collect::<Vec<_>>());
    }
}

#[test]
fn a_reader_sees_old_or_new_and_never_half() {
    let room = Room::new();
    let versions = [vec![b'a'; 40_000], vec![b'b'; 70_000]];
    room.put("a", &versions[0]);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..150 {
                room.write("a", versions[number % 2].clone(), Write::default()).expect("written");
            }
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            let seen = fs::read(room.path("a")).expect("the file is always there");
            assert!(versions.contains(&seen), "{} bytes", seen.len());
        }
    });
    assert_eq!(room.names(), ["a"]);
}

#[test]
fn many_who_create_one_file_make_it_once() {
    let room = Room::new();
    for round in 0..20 {
        let name = format!("f{round}");
        let created: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|thread| {
                    let (room, name) = (&room, &name);
                    scope.spawn(move || {
                        room.write(name, format!("{thread}"), Write::default()).expect("written").created
                    })
                })
                .collect();
            threads.into_iter().map(|thread| usize::from(thread.join().expect("a thread"))).sum()
        });
        assert_eq!(created, 1);
        assert_eq!(room.text(&name).len(), 1);
    }
}

#[test]
fn a_link_that_swaps_never_moves_a_write() {
    let room = Room::new();
    for dir in ["one", "two"] {
        fs::create_dir(room.path(dir)).expect("a directory");
        room.put(&format!("{dir}/f"), "old");
    }
    symlink("one", room.path("link")).expect("a link");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut dice = Dice::new(7);
            while !done.load(Ordering::Relaxed) {
                let target = *dice.pick(&["one", "two"]);
                symlink(target, room.path("next")).expect("a link");
                fs::rename(room.path("next"), room.path("link")).expect("it takes the place");
            }
        });
        for number in 0..300 {
            match room.write("link/f", format!("new {number}"), Write::default()) {
                Ok(written) => assert!(!written.created && written.atomic),
                Err(failure) => assert_eq!(failure.code, Code::Conflict, "{failure}"),
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    for dir in ["one", "two"] {
        assert_eq!(super::room::names(&room.path(dir)), ["f"]);
    }
}

#[test]
fn a_name_that_turns_into_something_else_is_refused_and_never_hangs() {
    let room = Room::new();
    let done = AtomicBool::new(false);
    let path = room.path("a");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let _ = fs::write(&path, "file");
                let _ = fs::remove_file(&path);
                nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).ok();
                let _ = fs::remove_file(&path);
                let _ = symlink("/dev/zero", &path);
                let _ = fs::remove_file(&path);
            }
        });
        for _ in 0..2000 {
            if let Err(failure) = room.read(Read { path: Some("a".into()), ..Read::default() }) {
                assert!([Code::NotFound, Code::NotAFile].contains(&failure.code), "{failure}");
            }
        }
        for _ in 0..100 {
            if let Err(failure) = room.edit("a", &[text("file", "edited")]) {
                let codes = [Code::NotFound, Code::NotAFile, Code::Conflict, Code::EditNoMatch];
                assert!(codes.contains(&failure.code), "{failure}");
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_stale_writer_is_told_and_a_fresh_one_wins() {
    let room = Room::new();
    let first = room.write("a", "1", Write::default()).expect("written");
    let with = |hash: &Option<String>| Write { if_sha256: hash.clone(), ..Write::default() };
    let second = room.write("a", "2", with(&first.sha256)).expect("written");
    assert_eq!(code(room.write("a", "3", with(&first.sha256))), Code::Conflict);
    room.write("a", "3", with(&second.sha256)).expect("written");
    assert_eq!(room.text("a"), "3");
}
