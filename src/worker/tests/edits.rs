//! Edits of files: what changes, what does not, and what is said when nothing fits.

use super::room::{Room, anchor, code, lines, refused, text};
use crate::worker::ask::{Change, Code, Edit};
use crate::worker::files::open::sha256;
use std::time::{Duration, Instant};

fn counted(old: &str, new: &str, count: u64) -> Change {
    Change { count: Some(count), ..text(old, new) }
}

/// The file before, the edits, the file after.
fn check(before: &str, edits: &[Change], after: &str) {
    let room = Room::new();
    room.put("a", before);
    let edited = room.edit("a", edits).unwrap_or_else(|failure| panic!("{before:?}: {failure}"));
    assert_eq!(room.text("a"), after, "{before:?} with {edits:?}");
    assert_eq!(edited.sha256, sha256(after.as_bytes()));
}

#[test]
fn text_is_replaced_in_order() {
    check("one two one", &[text("two", "2")], "one 2 one");
    check("one two", &[text("one", "two"), counted("two", "x", 2)], "x x");
    check("aaaa", &[counted("aa", "b", 2)], "bb");
    check("aaaaa", &[counted("aa", "aaa", 0)], "aaaaaaa");
    check("a\r\nb\r\n", &[text("a\nb", "a\nc\nb")], "a\r\nc\r\nb\r\n");
    check("a\r\nb\nc", &[text("b\n", "d\n")], "a\r\nd\nc");
    check("no newline", &[text("newline", "end")], "no end");
    check("gone", &[text("gone", "")], "");
}

#[test]
fn lines_are_replaced_by_their_first_numbers() {
    check("1\n2\n3\n", &[lines(3, 3, "C"), lines(1, 1, "A\nB")], "A\nB\n2\nC\n");
    check("1\n2\n3\n", &[lines(2, 2, "")], "1\n3\n");
    check("1\n2\n3\n", &[lines(2, 1, "new")], "1\nnew\n2\n3\n");
    check("1\n2\n", &[lines(3, 2, "3\n")], "1\n2\n3\n");
    check("1\n2", &[lines(2, 2, "two\n")], "1\ntwo");
    check("1\n2", &[lines(3, 2, "3")], "1\n2\n3");
    check("1\n2", &[lines(2, 2, ""), lines(3, 2, "3")], "1\n3");
    check("1\n2", &[lines(2, 2, "")], "1\n");
    check("", &[lines(1, 0, "first")], "first\n");
    check("1\r\n2\r\n", &[lines(1, 1, "a\nb")], "a\r\nb\r\n2\r\n");
    check("1\r\n2\n", &[lines(1, 1, "a"), lines(2, 2, "b")], "a\r\nb\n");
    check("1\n2\n3\n", &[text("two", "TWO"), lines(2, 2, "two")], "1\nTWO\n3\n");
}

#[test]
fn anchors_put_text_beside_a_line() {
    let file = "fn a() {\n    x\n}\n";
    check(file, &[anchor("    x", 1, "    y")], "fn a() {\n    x\n    y\n}\n");
    check(file, &[anchor("fn a", 0, "// why")], "// why\nfn a() {\n    x\n}\n");
    check(file, &[anchor("x", 2, "// end\n")], "fn a() {\n    x\n}\n// end\n");
    check(file, &[anchor("}", -1, "first")], "fn a() {\nfirst\n    x\n}\n");
    check("a\nab\n", &[anchor("a", 1, "-")], "a\n-\nab\n");
    check("a\r\nb", &[anchor("b", 1, "c")], "a\r\nb\r\nc");
}

#[test]
fn other_encodings_come_out_as_they_went_in() {
    let room = Room::new();
    room.put("bom", "\u{feff}a\r\nb\r\n");
    room.edit("bom", &[lines(1, 1, "x"), text("b", "é")]).expect("edited");
    assert_eq!(room.text("bom"), "\u{feff}x\r\né\r\n");
    let wide = |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_be_bytes).collect() };
    room.put("wide", wide("\u{feff}a😀\r\nb"));
    let edited = room.edit("wide", &[text("😀\n", "é\n\n")]).expect("edited");
    assert_eq!(room.bytes("wide"), wide("\u{feff}aé\r\n\r\nb"));
    assert!(edited.diff.contains("-a😀") && edited.diff.contains("+aé"), "{}", edited.diff);
    room.put("latin", b"caf\xe9 one\n\x00\xff");
    room.edit("latin", &[text("one", "zwei")]).expect("edited");
    assert_eq!(room.bytes("latin"), b"caf\xe9 zwei\n\x00\xff");
}

#[test]
fn a_diff_tells_what_changed() {
    let room = Room::new();
    room.put("a", "1\n2\n3\n4\n5\n6\n7\n8\n9");
    let edited = room.edit("a", &[lines(9, 9, "nine"), text("2", "two")]).expect("edited");
    let expected = "--- a\n+++ a\n@@ -1,9 +1,9 @@\n 1\n-2\n+two\n 3\n 4\n 5\n 6\n 7\n 8\n-9\n\
        \\ No newline at end of file\n+nine\n\\ No newline at end of file\n";
    assert_eq!((edited.diff.as_str(), edited.diff_truncated, edited.replacements), (expected, false, 2));
    room.put("big", "old line\n".repeat(20_000));
    let edited = room.edit("big", &[counted("old", "new", 0)]).expect("edited");
    assert!(edited.diff_truncated && edited.diff.len() <= 64 << 10 && edited.diff.ends_with("[diff cut here]\n"));
    assert_eq!(edited.replacements, 20_000);
}

#[test]
fn a_dry_run_tells_and_writes_nothing() {
    let room = Room::new();
    room.put("a", "old\n");
    let ask = |dry_run, if_sha256: Option<String>| Edit {
        path: "a".into(),
        edits: vec![text("old", "new")],
        dry_run,
        if_sha256,
    };
    let dry = room.edit_as(ask(true, None)).expect("a dry run");
    assert_eq!((dry.written, dry.sha256.clone(), dry.previous.is_none()), (false, sha256(b"new\n"), true));
    assert_eq!(room.text("a"), "old\n");
    assert_eq!(code(room.edit_as(ask(false, Some(sha256(b"other"))))), Code::Conflict);
    let wet = room.edit_as(ask(false, Some(sha256(b"old\n")))).expect("edited");
    assert_eq!((wet.written, wet.sha256, wet.diff), (true, dry.sha256, dry.diff));
    assert_eq!(wet.previous.and_then(|previous| previous.content).as_deref(), Some(&b"old\n"[..]));
    let before = std::fs::metadata(room.path("a")).and_then(|found| found.modified()).expect("a time");
    assert!(!room.edit("a", &[text("new", "new")]).expect("nothing to do").written);
    assert_eq!(std::fs::metadata(room.path("a")).and_then(|found| found.modified()).expect("a time"), before);
}

#[test]
fn a_wrong_count_is_told_with_the_lines() {
    let room = Room::new();
    room.put("a", "x\ny\nx x\n");
    let failure = refused(room.edit("a", &[text("y", "z"), text("x", "w")]));
    assert_eq!(failure.code, Code::EditNoMatch);
    assert_eq!(failure.details["lines"], serde_json::json!([1, 3, 3]));
    assert_eq!((&failure.details["occurrences"], &failure.details["edit"]), (&3.into(), &1.into()));
    assert!(failure.message.contains("`edits[1]`") && failure.message.contains("lines 1, 3, 3"), "{failure}");
    assert_eq!(code(room.edit("a", &[counted("x", "w", 2)])), Code::EditNoMatch);
    room.put("b", "ax\nbx\n");
    let failure = refused(room.edit("b", &[anchor("x", 1, "w")]));
    assert_eq!((failure.code, &failure.details["lines"]), (Code::EditNoMatch, &serde_json::json!([1, 2])));
    assert_eq!(room.text("a"), "x\ny\nx x\n");
}

#[test]
fn no_match_shows_the_nearest_text_and_how_it_differs() {
    let room = Room::new();
    let file =
        "fn first() {\n    let a = 1;\n}\n\nfn second() {\n\tlet total = compute(1, 2);\n\tprintln!(\"{total}\");\n}\n";
    room.put("a", file);
    let cases = [
        ("fn first() {\r\n    let a = 1;\r\n}", 1, "line endings"),
        ("    let total = compute(1, 2);\n    println!(\"{total}\");", 6, "white space"),
        ("fn second() {\n\tlet total = compute(3, 4, 5);\n", 5, "text"),
        ("let totl = compute(1,  3);", 6, "text"),
    ];
    for (old, line, differs) in cases {
        let failure = refused(room.edit("a", &[text(old, "x")]));
        let nearest = &failure.details["nearest"];
        assert_eq!(failure.code, Code::EditNoMatch);
        assert_eq!((&nearest["line"], &nearest["differs_in"]), (&line.into(), &differs.into()), "{old}: {failure}");
        assert!(nearest["text"].as_str().is_some_and(|text| file.contains(text)), "{nearest}");
        assert!(nearest["diff"].as_str().is_some_and(|diff| diff.contains("@@")), "{nearest}");
    }
    let failure = refused(room.edit("a", &[text("QQQQ\u{1F600}", "x")]));
    assert!(failure.message.contains("nor anything like it") && !failure.details.contains_key("nearest"));
    assert_eq!(room.text("a"), file);
}

#[test]
fn looking_for_the_nearest_text_takes_bounded_time() {
    let mut room = Room::new();
    room.terms.max_file_bytes = 64 << 20;
    room.put("lines", "some line of code that is rather like the others {};\n".repeat(60_000));
    room.put("one", "x".repeat(3 << 20));
    let old = "some line of c0de that is like nothing else\n".repeat(500);
    for name in ["lines", "one"] {
        for old in [&old, "some lime of code"] {
            let began = Instant::now();
            assert_eq!(code(room.edit(name, &[text(old, "y")])), Code::EditNoMatch);
            assert!(began.elapsed() < Duration::from_secs(15), "{name}: {:?}", began.elapsed());
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let room = Room::new();
    room.put("a", "1\n2\n3\n");
    let both = Change { start_line: Some(1), ..text("1", "x") };
    let no_new = Change { old_text: Some("1".into()), ..Change::default() };
    let half = Change { start_line: Some(1), new_text: Some("x".into()), ..Change::default() };
    let cases: Vec<Vec<Change>> = vec![
        vec![],
        vec![both],
        vec![no_new],
        vec![half],
        vec![Change { new_text: Some("x".into()), ..Change::default() }],
        vec![text("", "x")],
        vec![lines(0, 1, "x")],
        vec![lines(3, 1, "x")],
        vec![lines(1, 4, "x")],
        vec![lines(5, 4, "x")],
        vec![lines(1, u64::MAX, "x")],
        vec![lines(u64::MAX, u64::MAX, "x")],
        vec![lines(1, 2, "x"), lines(2, 3, "y")],
        vec![lines(2, 1, "x"), lines(2, 1, "y")],
        vec![lines(1, 3, "x"), lines(2, 1, "y")],
        vec![anchor("1", 9, "x")],
        vec![anchor("1", -1, "x")],
        vec![anchor("1", i64::MAX, "x")],
        vec![anchor("1", i64::MIN, "x")],
        vec![anchor("1\n", 1, "x")],
        vec![anchor("", 1, "x")],
        vec![text("1", "x"); 1001],
        vec![text("1", "one"), lines(9, 9, "x")],
    ];
    for edits in cases {
        let failure = refused(room.edit("a", &edits));
        assert_eq!(failure.code, Code::InvalidArgument, "{failure}");
        assert_eq!(room.text("a"), "1\n2\n3\n");
    }
    check("1\n2\n", &[lines(1, 0, "x"), lines(1, 1, "y"), lines(2, 1, "z")], "x\ny\nz\n2\n");
}

#[test]
fn an_edit_that_grows_past_the_bound_is_refused() {
    let mut room = Room::new();
    room.terms.max_file_bytes = 1000;
    room.put("a", "x");
    let double: Vec<Change> = (0..60).map(|_| counted("x", "xx", 0)).collect();
    assert_eq!(code(room.edit("a", &double)), Code::TooLarge);
    assert_eq!(code(room.edit("a", &[lines(1, 1, &"y".repeat(1001))])), Code::TooLarge);
    assert_eq!(code(room.edit("a", &[anchor("x", 1, &"y".repeat(1001))])), Code::TooLarge);
    assert_eq!(room.text("a"), "x");
    room.put("large", "x".repeat(1001));
    assert_eq!(code(room.edit("large", &[text("x", "y")])), Code::TooLarge);
    assert_eq!(code(room.edit("missing", &[text("x", "y")])), Code::NotFound);
    assert_eq!(room.names(), ["a", "large"]);
}
