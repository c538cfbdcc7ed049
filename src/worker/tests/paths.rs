//! Paths that are none, and what a path that is not there is called.

use super::room::{Room, code, lines, refused, text};
use crate::path::CellPath;
use crate::worker::ask::{Ask, Code, MakeDir, Read, Restore, Write};
use crate::worker::failure::Failure;
use crate::worker::files::draft::Existing;
use crate::worker::perform;
use std::fs;
use std::os::unix::fs::symlink;

/// What every operation says of a path.
fn everything(room: &Room, path: &str) -> Vec<Failure> {
    let list = crate::worker::ask::List { path: String::new(), depth: None, limit: None, cursor: None };
    let restore = Ask::Restore(Restore { path: path.into(), content: vec![], mode: 0o600 });
    vec![
        refused(room.read(Read { path: Some(path.into()), ..Read::default() })),
        refused(room.list(path, &list)),
        refused(room.stat(path)),
        refused(room.write(path, "x", Write::default())),
        refused(room.edit(path, &[text("a", "b"), lines(1, 1, "")])),
        refused(room.relocate(path, "elsewhere", Existing::Keep)),
        refused(room.relocate("there", path, Existing::Keep)),
        refused(perform(&room.terms, &Ask::MakeDir(MakeDir { path: path.into(), parents: None }))),
        refused(perform(&room.terms, &restore)),
    ]
}

#[test]
fn a_path_that_can_be_none_is_an_invalid_argument_everywhere() {
    let room = Room::new();
    room.put("there", "x");
    room.put("a", "cut at NUL");
    let long = "x/".repeat(2049);
    for path in
        ["", "a\0b", "a\0", "file://host/a", "file:///a%0", "file:///a%zz", "file:///a%00", &long, &"n".repeat(300)]
    {
        for failure in everything(&room, path) {
            assert_eq!(failure.code, Code::InvalidArgument, "{path:.20}: {failure}");
        }
    }
    assert_eq!((room.text("there"), room.text("a")), ("x".into(), "cut at NUL".into()));
    assert_eq!(room.names(), ["a", "there"]);
}

#[test]
fn other_spellings_of_a_path_are_the_kernels_business() {
    let room = Room::new();
    fs::create_dir(room.path("d")).expect("a directory");
    room.put("d/f", "x");
    let whole = room.path("d/f");
    let whole = whole.to_str().expect("text");
    for path in ["d/f", "./d/f", "d//f", "d/./f", "d/../d/f", whole, &format!("file://{whole}"), &format!("/{whole}")] {
        assert_eq!(room.page(path, Read::default()).content, "x", "{path}");
    }
    assert_eq!(code(room.read(Read { path: Some("d/f/".into()), ..Read::default() })), Code::NotFound);
    assert_eq!(code(room.read(Read { path: Some("d/f/x".into()), ..Read::default() })), Code::NotFound);
}

#[test]
fn directories_cannot_be_written_as_files() {
    let room = Room::new();
    fs::create_dir(room.path("d")).expect("a directory");
    room.put("f", "x");
    for path in ["d", "d/", "d/.", "d/..", ".", "..", "/", "new/", "f/"] {
        let told = code(room.write(path, "x", Write::default()));
        assert_eq!(told, Code::NotAFile, "{path}");
    }
    assert_eq!(room.names(), ["d", "f"]);
}

#[test]
fn outside_every_root_is_not_allowed_and_inside_is_not_found() {
    let mut room = Room::new();
    room.terms.roots = vec![CellPath::new(&room.dir)];
    symlink("/nowhere/at/all", room.path("out")).expect("a link");
    symlink("nothing", room.path("in")).expect("a link");
    let read = |path: &str| refused(room.read(Read { path: Some(path.into()), ..Read::default() }));
    let beside = format!("{}-sibling/secret", room.dir.display());
    let up = format!("../{}-sibling/secret", room.dir.file_name().expect("a name").to_string_lossy());
    for path in ["/nowhere/secret", "out", &beside, &up] {
        let failure = read(path);
        assert_eq!(failure.code, Code::PathNotAllowed, "{failure}");
        assert!(failure.message.contains("outside every root"), "{failure}");
    }
    assert_eq!(read("in").code, Code::NotFound);
    assert!(read("in").message.contains("symbolic link to `nothing`"));
    assert_eq!(read("missing").code, Code::NotFound);
    assert_eq!(code(room.write("out", "x", Write::default())), Code::PathNotAllowed);
    let parents = Write { create_parents: true, ..Write::default() };
    room.write("in", "made", parents).expect("a link inside may lead to a new file");
    assert_eq!(room.text("nothing"), "made");
}

#[test]
fn mkdir_makes_what_is_missing() {
    let room = Room::new();
    let make =
        |path: &str, parents: Option<bool>| perform(&room.terms, &Ask::MakeDir(MakeDir { path: path.into(), parents }));
    let told = |created| crate::worker::ask::Told::MakeDir(crate::worker::ask::MadeDir { created });
    assert_eq!(make("a/b/c", None).expect("made"), told(true));
    assert_eq!(make("a/b/c/", None).expect("there"), told(false));
    assert_eq!(make("x/../y", None).expect("made"), told(true));
    assert!(room.path("y").is_dir());
    assert_eq!(code(make("a", Some(false))), Code::AlreadyExists);
    assert_eq!(code(make("p/q", Some(false))), Code::NotFound);
    room.put("file", "");
    symlink("nowhere", room.path("dangling")).expect("a link");
    for path in ["file", "file/below", "dangling", "dangling/below"] {
        assert_eq!(code(make(path, None)), Code::AlreadyExists, "{path}");
    }
    assert_eq!(make("/", None).expect("there"), told(false));
}
