//! Writing: what a file keeps, what is refused, what is handed back for the backup.

use super::room::{Room, as_nobody, code, refused};
use crate::sys::attributes;
use crate::worker::ask::{Ask, Code, Restore, Told, Write};
use crate::worker::files::open::sha256;
use crate::worker::perform;
use std::fs::{self, File, Permissions};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

fn mode(room: &Room, name: &str) -> u32 {
    fs::metadata(room.path(name)).expect(name).mode() & 0o7777
}

fn set_mode(room: &Room, name: &str, mode: u32) {
    fs::set_permissions(room.path(name), Permissions::from_mode(mode)).expect(name);
}

#[test]
fn a_new_file_is_created_and_an_old_one_handed_back() {
    let room = Room::new();
    let first = room.write("a", "one", Write::default()).expect("written");
    assert_eq!((first.bytes, first.created, first.atomic), (3, true, true));
    assert_eq!((first.sha256, first.previous), (Some(sha256(b"one")), None));
    let second = room.write("a", b"\xff\0".to_vec(), Write::default()).expect("written");
    let previous = second.previous.expect("what was there");
    assert_eq!((second.created, previous.size, previous.content.as_deref()), (false, 3, Some(&b"one"[..])));
    assert_eq!(room.bytes("a"), b"\xff\0");
    room.write("a", "", Write::default()).expect("emptied");
    assert_eq!((room.bytes("a"), room.names()), (vec![], vec!["a".to_owned()]));
}

#[test]
fn mode_owner_and_attributes_stay() {
    let room = Room::new();
    room.put("a", "old");
    set_mode(&room, "a", 0o751);
    let file = File::open(room.path("a")).expect("the file");
    let kept = attributes::set(file.as_fd(), c"user.colour", b"blue");
    if kept.is_err() {
        println!("skipped: this filesystem keeps no attributes");
    }
    if nix::unistd::geteuid().is_root() {
        std::os::unix::fs::chown(room.path("a"), Some(1234), Some(4321)).expect("another owner");
        set_mode(&room, "a", 0o751);
    }
    let before = fs::metadata(room.path("a")).expect("the file");
    let written = room.write("a", "new", Write::default()).expect("written");
    let after = fs::metadata(room.path("a")).expect("the file");
    assert!(written.atomic && before.ino() != after.ino());
    assert_eq!((before.mode(), before.uid(), before.gid()), (after.mode(), after.uid(), after.gid()));
    if kept.is_ok() {
        let file = File::open(room.path("a")).expect("the file");
        assert_eq!(attributes::value(file.as_fd(), c"user.colour").expect("the attribute"), b"blue");
    }
}

#[test]
fn a_mode_may_be_given_but_no_setuid() {
    let room = Room::new();
    room.write("a", "x", Write { mode: Some(0o640), ..Write::default() }).expect("written");
    assert_eq!(mode(&room, "a"), 0o640);
    room.write("a", "y", Write { mode: Some(0o700), ..Write::default() }).expect("written");
    assert_eq!(mode(&room, "a"), 0o700);
    for bits in [0o4755, 0o2755, 0o1777, 0o10000] {
        assert_eq!(code(room.write("a", "z", Write { mode: Some(bits), ..Write::default() })), Code::InvalidArgument);
    }
    assert_eq!(room.text("a"), "y");
    set_mode(&room, "a", 0o6755);
    room.write("a", "z", Write::default()).expect("written");
    assert_eq!(mode(&room, "a"), 0o755);
}

#[test]
fn a_symlink_stays_and_its_target_is_written() {
    let room = Room::new();
    fs::create_dir(room.path("d")).expect("a directory");
    room.put("d/real", "old");
    symlink("d/middle", room.path("link")).expect("a link");
    symlink("real", room.path("d/middle")).expect("a link");
    room.write("link", "new", Write::default()).expect("written");
    assert_eq!(room.text("d/real"), "new");
    assert!(fs::symlink_metadata(room.path("link")).expect("the link").is_symlink());
    assert!(fs::symlink_metadata(room.path("d/middle")).expect("the link").is_symlink());
    symlink("d/fresh", room.path("dangling")).expect("a link");
    let written = room.write("dangling", "made", Write::default()).expect("written");
    assert!(written.created && room.text("d/fresh") == "made");
    symlink("none/fresh", room.path("lost")).expect("a link");
    assert_eq!(code(room.write("lost", "x", Write::default())), Code::NotFound);
}

#[test]
fn hard_links_are_kept_by_writing_in_place() {
    let room = Room::new();
    room.put("a", "a longer old text");
    fs::hard_link(room.path("a"), room.path("b")).expect("a link");
    let written = room.write("a", "short", Write::default()).expect("written");
    assert!(!written.atomic);
    assert_eq!(written.previous.and_then(|previous| previous.content).as_deref(), Some(&b"a longer old text"[..]));
    assert_eq!((room.text("a"), room.text("b")), ("short".into(), "short".into()));
    let append = Write { append: true, mode: Some(0o600), ..Write::default() };
    room.write("b", " and more", append).expect("written");
    assert_eq!((room.text("a"), mode(&room, "a")), ("short and more".into(), 0o600));
    assert_eq!(fs::metadata(room.path("a")).expect("the file").nlink(), 2);
}

#[test]
fn appending_goes_on_past_what_can_be_held() {
    let mut room = Room::new();
    room.terms.max_file_bytes = 10;
    let append = || Write { append: true, ..Write::default() };
    let new = room.write("log", "12345", append()).expect("written");
    assert!(new.created && new.atomic);
    let small = room.write("log", "67890", append()).expect("written");
    assert_eq!((small.bytes, small.atomic, small.sha256.is_some()), (10, true, true));
    let large = room.write("log", "abc", append()).expect("written");
    assert_eq!((large.bytes, large.atomic, large.sha256), (13, false, None));
    let large = room.write("log", "def", append()).expect("written");
    assert_eq!(large.previous.map(|previous| (previous.size, previous.content)), Some((13, None)));
    assert_eq!(room.text("log"), "1234567890abcdef");
    assert_eq!(code(room.write("log", "x".repeat(11), append())), Code::TooLarge);
    assert_eq!(code(room.write("new", "x".repeat(11), Write::default())), Code::TooLarge);
    let replaced = room.write("log", "small", Write::default()).expect("a large file may be replaced");
    assert_eq!(replaced.previous.and_then(|previous| previous.content), None);
    assert_eq!((room.text("log"), room.names()), ("small".into(), vec!["log".to_owned()]));
}

#[test]
fn a_stale_hash_is_a_conflict_that_names_the_actual_one() {
    let room = Room::new();
    room.put("a", "now");
    let given = |hash: &str| Write { if_sha256: Some(hash.into()), ..Write::default() };
    let failure = refused(room.write("a", "x", given(&sha256(b"then"))));
    assert_eq!((failure.code, failure.details["actual_sha256"].as_str()), (Code::Conflict, Some(&*sha256(b"now"))));
    assert_eq!(code(room.write("b", "x", given(&sha256(b"")))), Code::Conflict);
    assert_eq!(code(room.write("a", "x", given("abc"))), Code::InvalidArgument);
    assert_eq!((room.text("a"), room.names()), ("now".into(), vec!["a".to_owned()]));
    room.write("a", "x", given(&sha256(b"now").to_uppercase())).expect("the right hash");
}

#[test]
fn parents_are_made_when_asked_and_go_when_the_write_fails() {
    let room = Room::new();
    assert_eq!(code(room.write("p/q/a", "x", Write::default())), Code::NotFound);
    let parents = || Write { create_parents: true, ..Write::default() };
    room.write("p/q/a", "x", parents()).expect("written");
    let hash = Some(sha256(b"?"));
    assert_eq!(code(room.write("n/m/a", "x", Write { if_sha256: hash, ..parents() })), Code::Conflict);
    assert_eq!(room.names(), ["p"]);
    assert_eq!(code(room.write("p/q/a/b", "x", parents())), Code::AlreadyExists);
}

#[test]
fn what_a_shell_may_not_write_is_not_replaced_either() {
    let room = Room::new();
    room.put("theirs", "old");
    room.put("locked", "old");
    fs::create_dir(room.path("closed")).expect("a directory");
    let told = as_nobody(&room, || {
        let theirs = room.write("theirs", "new", Write::default());
        let new = room.write("closed/new", "x", Write::default());
        room.write("own", "1", Write::default()).expect("an own file");
        set_mode(&room, "own", 0o444);
        [theirs, new, room.write("own", "2", Write::default())].map(code)
    });
    if let Some(told) = told {
        assert_eq!(told, [Code::PathNotAllowed; 3]);
        assert_eq!((room.text("theirs"), room.text("own")), ("old".into(), "1".into()));
    }
}

#[test]
fn a_file_of_another_owner_that_may_be_written_keeps_its_owner() {
    let room = Room::new();
    room.put("shared", "a longer old text");
    set_mode(&room, "shared", 0o666);
    let closed = room.path("closed");
    fs::create_dir(&closed).expect("a directory");
    room.put("closed/open", "old");
    set_mode(&room, "closed/open", 0o666);
    let Some(written) = as_nobody(&room, || {
        ["shared", "closed/open"].map(|name| room.write(name, "new", Write::default()).expect("written"))
    }) else {
        return;
    };
    assert!(written.iter().all(|written| !written.atomic));
    for name in ["shared", "closed/open"] {
        let after = fs::metadata(room.path(name)).expect("the file");
        assert_eq!((room.text(name).as_str(), after.uid(), after.mode() & 0o777), ("new", 0, 0o666));
    }
    assert_eq!(room.names(), ["closed", "shared"]);
}

#[test]
fn a_file_that_can_be_written_and_not_read_is_replaced_without_backup() {
    let room = Room::new();
    let told = as_nobody(&room, || {
        room.write("a", "old", Write::default()).expect("written");
        set_mode(&room, "a", 0o200);
        let append = room.write("a", "x", Write { append: true, ..Write::default() });
        (code(append), room.write("a", "new", Write::default()).expect("written"))
    });
    if let Some((append, written)) = told {
        assert_eq!((append, written.previous.and_then(|previous| previous.content)), (Code::PathNotAllowed, None));
        assert_eq!((room.text("a"), mode(&room, "a")), ("new".into(), 0o200));
    }
}

#[test]
fn a_running_program_is_replaced() {
    let room = Room::new();
    fs::copy("/bin/sleep", room.path("program")).expect("a program");
    let mut child = std::process::Command::new(room.path("program")).arg("60").spawn().expect("it runs");
    let written = room.write("program", "new", Write { mode: Some(0o644), ..Write::default() });
    child.kill().expect("it ends");
    child.wait().expect("it ended");
    assert!(written.is_ok_and(|written| written.atomic));
    assert_eq!(room.text("program"), "new");
}

#[test]
fn a_backup_is_put_back_with_its_mode() {
    let room = Room::new();
    room.put("a", "broken");
    let ask = Restore { path: "a".into(), content: b"good".to_vec(), mode: 0o640 };
    let Told::Restore(written) = perform(&room.terms, &Ask::Restore(ask)).expect("restored") else {
        panic!("an answer to something else");
    };
    assert_eq!(written.previous.and_then(|previous| previous.content).as_deref(), Some(&b"broken"[..]));
    assert_eq!((room.text("a"), mode(&room, "a")), ("good".into(), 0o640));
    let ask = Restore { path: "a".into(), content: vec![], mode: 0o4755 };
    assert_eq!(code(perform(&room.terms, &Ask::Restore(ask))), Code::InvalidArgument);
}

#[test]
fn abandoned_drafts_are_cleaned_and_young_ones_left() {
    use std::time::{Duration, SystemTime};
    let room = Room::new();
    let age = |name: &str, seconds: u64| {
        room.put(name, "draft");
        let then = SystemTime::now() - Duration::from_secs(seconds);
        File::options().write(true).open(room.path(name)).and_then(|file| file.set_modified(then)).expect(name);
    };
    age(".stockade-0123456789abcdef.tmp", 120);
    age(".stockade-fedcba9876543210.tmp", 5);
    age(".stockade-notes.tmp", 120);
    room.write("a", "x", Write::default()).expect("written");
    assert_eq!(room.names(), [".stockade-fedcba9876543210.tmp", ".stockade-notes.tmp", "a"]);
}

#[test]
fn requests_survive_the_wire() {
    let ask = Ask::Write(Write { path: "a".into(), content: vec![0, 255, b'x'], ..Write::default() });
    let json = serde_json::to_string(&ask).expect("JSON");
    let Ask::Write(back) = serde_json::from_str(&json).expect("the same") else {
        panic!("{json}");
    };
    assert_eq!((back.content, back.append, back.mode), (vec![0, 255, b'x'], false, None));
    assert!(serde_json::from_str::<Ask>(r#"{"write":{"path":"a","content":"!"}}"#).is_err());
    assert!(serde_json::from_str::<Ask>(r#"{"write":{"path":"a","content":"","owner":1}}"#).is_err());
}
