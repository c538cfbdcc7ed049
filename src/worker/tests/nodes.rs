//! What is no regular file: refused at once, never waited for.

use super::room::{Room, code, refused, text};
use crate::worker::ask::{Code, Kind, Read, Told, Write};
use nix::sys::stat::Mode;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

#[test]
fn pipes_sockets_devices_and_directories_are_refused_at_once() {
    let room = Room::new();
    nix::unistd::mkfifo(&room.path("fifo"), Mode::S_IRWXU).expect("a pipe");
    let _listener = UnixListener::bind(room.path("socket")).expect("a socket");
    symlink("/dev/zero", room.path("zero")).expect("a link");
    symlink("/dev/tty", room.path("tty")).expect("a link");
    symlink("/proc/self/fd/0", room.path("stdin")).expect("a link");
    std::fs::create_dir(room.path("dir")).expect("a directory");
    let began = Instant::now();
    for name in ["fifo", "socket", "zero", "tty", "dir", "/dev/null"] {
        let ask = Read { path: Some(name.into()), ..Read::default() };
        assert_eq!(code(room.read(ask)), Code::NotAFile, "read {name}");
        assert_eq!(code(room.write(name, "x", Write::default())), Code::NotAFile, "write {name}");
        let append = Write { append: true, ..Write::default() };
        assert_eq!(code(room.write(name, "x", append)), Code::NotAFile, "append {name}");
        assert_eq!(code(room.edit(name, &[text("a", "b")])), Code::NotAFile, "edit {name}");
    }
    assert!(room.read(Read { path: Some("stdin".into()), ..Read::default() }).is_err());
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

#[test]
fn files_that_the_kernel_makes_up_are_refused() {
    let room = Room::new();
    for name in ["/proc/self/environ", "/proc/version", "/proc/self/maps", "/sys/kernel/notes"] {
        if std::fs::metadata(name).is_err() {
            println!("skipped: this kernel has no {name}");
            continue;
        }
        let failure = refused(room.read(Read { path: Some(name.into()), ..Read::default() }));
        assert_eq!(failure.code, Code::NotAFile, "{failure}");
        assert!(failure.message.contains("made up by the kernel"), "{failure}");
    }
    room.put("stored", "x");
    assert_eq!(room.page("stored", Read::default()).content, "x");
}

#[test]
fn links_in_a_circle_end() {
    let room = Room::new();
    symlink("b", room.path("a")).expect("a link");
    symlink("a", room.path("b")).expect("a link");
    symlink(".", room.path("self")).expect("a link");
    for failure in [
        refused(room.read(Read { path: Some("a".into()), ..Read::default() })),
        refused(room.write("a", "x", Write::default())),
        refused(room.edit("a", &[text("a", "b")])),
    ] {
        assert_eq!(failure.code, Code::NotFound);
        assert!(failure.message.contains("circle"), "{failure}");
    }
    room.put("file", "x");
    assert_eq!(room.page("self/self/self/file", Read::default()).content, "x");
    let deep = "self/".repeat(41) + "file";
    assert_eq!(code(room.read(Read { path: Some(deep), ..Read::default() })), Code::NotFound);
    let entries = room.entries(".", 100);
    assert_eq!(entries.iter().map(|entry| entry.path.as_str()).collect::<Vec<_>>(), ["a", "b", "file", "self"]);
}

#[test]
fn stat_tells_what_a_path_is() {
    let room = Room::new();
    room.put("file", "12345");
    symlink("file", room.path("link")).expect("a link");
    symlink("nowhere", room.path("dangling")).expect("a link");
    nix::unistd::mkfifo(&room.path("fifo"), Mode::from_bits_truncate(0o640)).expect("a pipe");
    let facts = |name: &str| match room.stat(name).expect(name) {
        Told::Stat(facts) => facts,
        other => panic!("{other:?}"),
    };
    let file = facts("file");
    assert_eq!((file.kind, file.size, file.nlink, file.target), (Kind::File, 5, 1, None));
    assert_eq!(file.mode.len(), 4);
    assert_eq!(file.uid, nix::unistd::geteuid().as_raw());
    let link = facts("link");
    assert_eq!((link.kind, link.target.as_deref(), link.target_type), (Kind::Symlink, Some("file"), Some(Kind::File)));
    assert_eq!(facts("dangling").target_type, None);
    assert_eq!(facts("fifo").kind, Kind::Fifo);
    assert_eq!(facts("/").kind, Kind::Dir);
    assert_eq!(facts("/dev/null").kind, Kind::Char);
    assert_eq!(code(room.stat("missing")), Code::NotFound);
    assert_eq!(code(room.stat("file/")), Code::NotFound);
}

#[test]
fn a_lock_that_a_program_holds_is_waited_for_only_so_long() {
    use nix::fcntl::{Flock, FlockArg};
    let room = Room::new();
    room.put("a", "old");
    let file = std::fs::File::open(room.path("a")).expect("the file");
    let held = Flock::lock(file, FlockArg::LockExclusive).expect("a lock");
    let began = Instant::now();
    assert_eq!(room.page("a", Read::default()).content, "old");
    assert_eq!(code(room.write("a", "new", Write::default())), Code::Conflict);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(room.text("a"), "old");
    drop(held);
    room.write("a", "new", Write::default()).expect("free again");
}
