//! A worker that is killed at any moment leaves each file old or new.

use super::room::{Dice, Room, other_self, other_selfs_directory, text};
use crate::worker::ask::Write;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A version of a file: its number in every line, so that a mix shows.
fn version(number: usize) -> String {
    format!("version {number}\n").repeat(400 + number % 7 * 300)
}

/// The number, if the text is one whole version.
fn number(text: &str) -> Option<usize> {
    let number = text.lines().next()?.strip_prefix("version ")?.parse().ok()?;
    (text == version(number)).then_some(number)
}

/// What is killed: whole versions follow each other in two files.
fn write_for_ever(dir: PathBuf) {
    let room = std::mem::ManuallyDrop::new(Room::at(dir));
    for round in 0.. {
        println!("\nwriting");
        let name = ["a", "b"][round % 2];
        let now = number(&room.text(name)).expect("a whole version");
        let next = Write { mode: Some(0o640), ..Write::default() };
        if round % 3 == 0 {
            room.write(name, version(now + 1), next).expect("written");
        } else {
            let all = crate::worker::ask::Change {
                count: Some(0),
                ..text(&format!("version {now}\n"), &format!("version {}\n", now + 7))
            };
            room.edit(name, &[all]).expect("edited");
        }
    }
}

#[test]
fn a_kill_at_any_moment_leaves_old_or_new() {
    let this = "worker::tests::killed::a_kill_at_any_moment_leaves_old_or_new";
    if let Some(dir) = other_selfs_directory() {
        write_for_ever(dir);
    }
    let room = Room::new();
    room.put("a", version(0));
    room.put("b", version(0));
    let mut dice = Dice::new(11);
    let mut in_the_middle = 0;
    for round in 0..60 {
        let mut child = other_self(this, &room.dir).stdout(Stdio::piped()).spawn().expect("it runs");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        // Some writes are done, and one has begun.
        let begun =
            lines.by_ref().filter(|line| line.as_ref().is_ok_and(|line| line == "writing")).nth(1 + dice.below(4));
        assert!(begun.is_some(), "round {round}");
        if round % 2 == 0 {
            spin(dice.below(12_000), || true);
        } else {
            let before = room.names().len();
            spin(50_000, || room.names().len() <= before);
            spin(dice.below(300), || true);
        }
        child.kill().expect("it is killed");
        let status = child.wait().expect("it ended");
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9), "round {round}: {status}");
        in_the_middle += usize::from(room.names().len() > 2 + in_the_middle);
        for name in ["a", "b"] {
            assert!(number(&room.text(name)).is_some(), "round {round}: {name} is neither old nor new");
        }
    }
    let reached = ["a", "b"].map(|name| number(&room.text(name)).expect("a version"));
    assert!(reached.iter().all(|number| *number > 0), "nothing was ever written: {reached:?}");
    assert!(in_the_middle > 0, "no kill fell into a write");
    drafts_go(&room);
}

/// Busy for so many microseconds at most, or until something is no longer so: a kill needs a finer clock than sleep's.
fn spin(most: usize, go_on: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_micros(most as u64);
    while Instant::now() < until && go_on() {
        std::hint::spin_loop();
    }
}

/// What the kills left is a draft by name, and the next write a minute later removes it.
fn drafts_go(room: &Room) {
    for name in room.names() {
        assert!(["a", "b"].contains(&name.as_str()) || name.starts_with(".stockade-"), "{name}");
        let then = std::time::SystemTime::now() - Duration::from_secs(61);
        File::options().write(true).open(room.path(&name)).and_then(|file| file.set_modified(then)).expect("its time");
    }
    room.write("a", "last", Write::default()).expect("written");
    assert_eq!(room.names(), ["a", "b"]);
    assert!(fs::read_dir(&room.dir).is_ok());
}
