//! Reading by line and byte, in any encoding, within the reply's room.

use super::room::{Room, code, refused};
use crate::worker::ask::{Code, Encoding, Found, Read};
use crate::worker::files::open::sha256;
use crate::worker::files::text::price_of;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

fn by_line(offset: u64, limit: u64) -> Read {
    Read { offset: Some(offset), limit: Some(limit), ..Read::default() }
}

fn by_byte(byte_offset: u64, max_bytes: u64) -> Read {
    Read { byte_offset: Some(byte_offset), max_bytes: Some(max_bytes), ..Read::default() }
}

#[test]
fn a_whole_file_comes_with_its_size_and_hash() {
    let room = Room::new();
    room.put("a", "one\ntwo\n");
    let page = room.page("a", Read::default());
    assert_eq!((page.content.as_str(), page.size, page.truncated), ("one\ntwo\n", 8, false));
    assert_eq!(page.sha256, Some(sha256(b"one\ntwo\n")));
    assert_eq!((page.next_offset, page.next_byte_offset, page.encoding), (None, None, Found::Utf8));
    assert!(page.mtime_ms > 1_500_000_000_000);
}

#[test]
fn lines_are_paged_from_one() {
    let room = Room::new();
    room.put("a", "1\n2\n3\n4");
    let page = room.page("a", by_line(2, 2));
    assert_eq!((page.content.as_str(), page.truncated), ("2\n3\n", true));
    assert_eq!((page.next_offset, page.next_byte_offset), (Some(4), Some(6)));
    assert_eq!(page.sha256, Some(sha256(b"1\n2\n3\n4")));
    let last = room.page("a", by_line(4, 2));
    assert_eq!((last.content.as_str(), last.truncated, last.next_offset), ("4", false, None));
    assert_eq!(room.page("a", by_line(5, 1)).content, "");
    let failure = refused(room.read(Read { path: Some("a".into()), ..by_line(6, 1) }));
    assert_eq!((failure.code, failure.details["lines"].as_u64()), (Code::InvalidArgument, Some(4)));
}

#[test]
fn an_empty_file_has_no_lines_and_is_no_error() {
    let room = Room::new();
    room.put("a", "");
    let page = room.page("a", by_line(1, 5));
    assert_eq!((page.content.as_str(), page.size, page.truncated), ("", 0, false));
    assert_eq!(code(room.read(Read { path: Some("a".into()), ..by_line(2, 1) })), Code::InvalidArgument);
}

#[test]
fn bytes_are_paged_between_characters() {
    let room = Room::new();
    room.put("a", "aé€😀b");
    let mut at = 0;
    let mut all = String::new();
    loop {
        let page = room.page("a", by_byte(at, 1));
        all.push_str(&page.content);
        match page.next_byte_offset {
            Some(next) => {
                assert!(next > at);
                at = next;
            }
            None => break,
        }
    }
    assert_eq!(all, "aé€😀b");
    assert_eq!(code(room.read(Read { path: Some("a".into()), ..by_byte(99, 1) })), Code::InvalidArgument);
}

#[test]
fn bytes_that_are_no_text_are_counted_or_given_in_base64() {
    let room = Room::new();
    room.put("a", b"x\xff\xfey");
    let page = room.page("a", Read::default());
    assert_eq!((page.content.as_str(), page.invalid_utf8), ("x\u{fffd}\u{fffd}y", 2));
    let raw = room.page("a", Read { encoding: Encoding::Base64, ..Read::default() });
    assert_eq!((raw.content.as_str(), raw.encoding, raw.invalid_utf8), ("eP/+eQ==", Found::Base64, 0));
}

#[test]
fn marks_say_the_encoding_and_are_not_shown() {
    let room = Room::new();
    room.put("bom", "\u{feff}a\nb\n");
    let page = room.page("bom", Read::default());
    assert_eq!((page.content.as_str(), page.encoding), ("a\nb\n", Found::Utf8Bom));
    let wide: Vec<u8> = "\u{feff}a\né😀\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    room.put("wide", &wide);
    let page = room.page("wide", by_line(2, 1));
    assert_eq!((page.content.as_str(), page.encoding, page.invalid_utf8), ("é😀\n", Found::Utf16le, 0));
    assert_eq!((page.size, page.sha256), (wide.len() as u64, Some(sha256(&wide))));
    let first = room.page("wide", by_line(1, 1));
    assert_eq!((first.content.as_str(), first.next_offset, first.next_byte_offset), ("a\n", Some(2), Some(6)));
    assert_eq!(room.page("wide", by_byte(6, 100)).content, "é😀\n");
    let raw = room.page("wide", Read { encoding: Encoding::Base64, ..Read::default() });
    assert!(raw.content.starts_with("//5h"));
}

#[test]
fn a_long_line_is_cut_and_goes_on_by_bytes() {
    let mut room = Room::new();
    room.terms.reply_bytes = 1000;
    let line = "x".repeat(2500);
    room.put("a", format!("short\n{line}\nend\n"));
    let page = room.page("a", Read::default());
    assert_eq!((page.content.as_str(), page.next_offset, page.next_byte_offset), ("short\n", Some(2), Some(6)));
    let page = room.page("a", by_line(2, 1));
    assert_eq!((page.content.len(), page.next_offset, page.next_byte_offset), (1000, None, Some(1006)));
    let page = room.page("a", by_byte(2006, 600));
    assert!(page.content.ends_with("x\nend\n"));
}

#[test]
fn one_file_that_fails_leaves_the_others() {
    let room = Room::new();
    room.put("a", "A");
    room.put("b", "B");
    let paths = Some(vec!["a".into(), "missing".into(), ".".into(), "b".into()]);
    let files = room.read(Read { paths, ..Read::default() }).expect("a list");
    let told: Vec<_> = files.iter().map(|file| file.error.as_ref().map(|failure| failure.code)).collect();
    assert_eq!(told, [None, Some(Code::NotFound), Some(Code::NotAFile), None]);
    assert_eq!((files[0].content.as_str(), files[3].content.as_str()), ("A", "B"));
}

#[test]
fn many_files_share_the_room_of_one_reply() {
    let mut room = Room::new();
    room.terms.reply_bytes = 5000;
    let names: Vec<String> = (0..30).map(|number| format!("f{number:02}")).collect();
    for name in &names {
        room.put(name, "\u{1b}\0line\n".repeat(40));
    }
    let files = room.read(Read { paths: Some(names), ..Read::default() }).expect("a list");
    let price: usize = files.iter().map(|file| price_of(&file.content)).sum();
    assert!(price <= 5000, "{price}");
    let cut: Vec<_> = files.iter().filter(|file| file.truncated).collect();
    assert!(cut.len() > 20 && cut.iter().all(|file| file.next_offset.is_some() && file.error.is_none()));
    assert_eq!(files[29].next_offset, Some(1));
}

#[test]
fn a_terabyte_of_nothing_is_read_by_the_page() {
    let room = Room::new();
    let file = File::create(room.path("giant")).expect("a file");
    file.set_len(1 << 40).expect("a sparse file");
    file.write_all_at(b"end", (1 << 40) - 3).expect("its end");
    let began = Instant::now();
    let page = room.page("giant", by_byte((1 << 40) - 5, 100));
    assert_eq!((page.content.as_str(), page.size, page.sha256), ("\0\0end", 1 << 40, None));
    let page = room.page("giant", Read::default());
    assert!(page.truncated && price_of(&page.content) <= 1 << 20);
    assert_eq!(page.next_byte_offset, Some(page.content.len() as u64));
    assert_eq!(code(room.read(Read { path: Some("giant".into()), ..by_line(9, 1) })), Code::TooLarge);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

#[test]
fn a_file_that_changes_meanwhile_gives_sizes_that_fit() {
    let mut room = Room::new();
    room.terms.max_file_bytes = 10_000;
    room.put("a", vec![b'x'; 30_000]);
    let file = File::options().write(true).open(room.path("a")).expect("the file");
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut dice = super::room::Dice::new(3);
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                file.set_len(dice.below(30_000) as u64).expect("it can be cut");
            }
        });
        for _ in 0..2000 {
            let page = room.page("a", by_byte(0, 20_000));
            assert!(page.content.len() as u64 <= page.size && page.truncated == (page.next_byte_offset.is_some()));
            if let Some(hash) = page.sha256 {
                assert!(page.size <= 10_000 && !hash.is_empty());
            }
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn what_makes_no_sense_is_refused_with_the_rule() {
    let room = Room::new();
    room.put("a", "x");
    let path = || Some("a".to_owned());
    let paths = |count: usize| Some(vec!["a".to_owned(); count]);
    let cases = [
        (Read { path: path(), paths: paths(1), ..Read::default() }, "both"),
        (Read::default(), "neither"),
        (Read { paths: paths(0), ..Read::default() }, "1 to 1000"),
        (Read { paths: paths(1001), ..Read::default() }, "1 to 1000"),
        (Read { path: path(), offset: Some(0), ..Read::default() }, "first line is 1"),
        (Read { path: path(), limit: Some(0), ..Read::default() }, "at least 1"),
        (Read { path: path(), max_bytes: Some(0), ..Read::default() }, "at least 1"),
        (Read { path: path(), offset: Some(1), byte_offset: Some(1), ..Read::default() }, "not both"),
    ];
    for (ask, words) in cases {
        let failure = refused(room.read(ask));
        assert_eq!(failure.code, Code::InvalidArgument);
        assert!(failure.message.contains(words), "{}", failure.message);
    }
    assert_eq!(room.read(Read { paths: paths(1000), ..Read::default() }).expect("a list").len(), 1000);
}
