//! What a pattern means, and how what it found is shown.

use super::super::found::Cut;
use super::super::{EntryKind, Syntax};
use super::{Case, Match, Request, Tree, all, lines, pages, paths, raw};

#[test]
fn a_pattern_for_names_is_a_glob_when_it_looks_like_one() {
    let tree = Tree::with(&[("src/a.rs", ""), ("src/d/mod.rs", ""), ("x.rs.txt", ""), ("Read.me", "")]);
    let table: [(&str, Syntax, &[&str]); 8] = [
        ("*.rs", Syntax::Glob, &["src/a.rs", "src/d/mod.rs"]),
        ("src/**/mod.rs", Syntax::Glob, &["src/d/mod.rs"]),
        ("src/*", Syntax::Glob, &["src/a.rs", "src/d"]),
        ("*.ME", Syntax::Glob, &[]),
        ("*.{me,txt}", Syntax::Glob, &["Read.me", "x.rs.txt"]),
        (r"\.rs$", Syntax::Regex, &["src/a.rs", "src/d/mod.rs"]),
        ("^src/.*rs", Syntax::Regex, &["src/a.rs", "src/d/mod.rs"]),
        ("read", Syntax::Regex, &["Read.me"]),
    ];
    for (pattern, syntax, expected) in table {
        let request = tree.names(pattern);
        let (_, page) = pages(&request, 10).unwrap();
        assert_eq!(
            (paths(&request), page.read_as),
            (expected.iter().map(|&path| path.into()).collect(), syntax),
            "{pattern}"
        );
    }
}

#[test]
fn entries_have_their_type_and_size_and_links_are_not_followed() {
    let tree = Tree::with(&[("file", "12345"), ("dir/x", "")]);
    std::os::unix::fs::symlink("dir", tree.0.join("link")).unwrap();
    nix::unistd::mkfifo(&tree.0.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let found = all(&tree.names(""));
    let kinds: Vec<(&str, EntryKind)> = found
        .iter()
        .map(|found| match found {
            Match::Entry(entry) => (entry.path.as_str(), entry.kind),
            Match::Line(line) => panic!("{line:?} is no entry"),
        })
        .collect();
    let expected = [
        ("dir", EntryKind::Directory),
        ("dir/x", EntryKind::File),
        ("file", EntryKind::File),
        ("link", EntryKind::Symlink),
        ("pipe", EntryKind::Other),
    ];
    assert_eq!(kinds, expected);
    assert!(matches!(&found[2], Match::Entry(entry) if entry.size == 5));
}

#[test]
fn case_is_smart_unless_said_otherwise() {
    let tree = Tree::with(&[("a", "needle\nNeedle\n")]);
    let count = |pattern: &str, case| lines(&Request { case, ..tree.request(pattern) }).len();
    assert_eq!([count("needle", Case::Smart), count("Needle", Case::Smart)], [2, 1]);
    assert_eq!([count("needle", Case::Sensitive), count("NEEDLE", Case::Insensitive)], [1, 2]);
}

#[test]
fn a_single_file_is_searched_whatever_it_is_called_or_holds() {
    let tree = Tree::with(&[("d/.hid", "x\0x\nab x\n")]);
    let found = lines(&Request { path: Some("d/.hid".into()), ..tree.request("ab") });
    assert_eq!((found[0].path.as_str(), found[0].line, found[0].column), ("d/.hid", 2, 1));
}

#[test]
fn a_binary_file_is_left_and_counted() {
    let tree = Tree::with(&[("bin", "\0needle\n"), ("text", "needle\n")]);
    let (found, page) = pages(&tree.request("needle"), 10).unwrap();
    assert_eq!((found.len(), page.skipped_binary, page.searched_files), (1, 1, 2));
}

#[test]
fn text_that_is_not_utf8_is_shown_and_flagged() {
    let tree = Tree::new();
    tree.write("a", b"\xff needle \xc3\xa9\r\nneedle\n");
    let found = lines(&tree.request("needle"));
    assert_eq!((found[0].text.as_str(), found[0].invalid_utf8, found[0].column), ("\u{fffd} needle é", true, 3));
    assert_eq!((found[1].text.as_str(), found[1].invalid_utf8), ("needle", false));
}

#[test]
fn a_long_line_is_cut_around_its_match() {
    let tree = Tree::new();
    let line = "é".repeat(3000) + "needle" + &"z".repeat(5000);
    tree.write("a", line.as_bytes());
    let found = lines(&tree.request("needle")).remove(0);
    assert_eq!((found.column, found.truncated, found.text.chars().count()), (6001, true, 500));
    let start = found.text_column.unwrap() as usize - 1;
    assert!(line[start..].starts_with(&found.text) && found.text.contains("needle"));
    assert!(!Cut::new("ü".repeat(500).as_bytes(), 0).is_cut);
    assert!(Cut::new("ü".repeat(501).as_bytes(), 0).is_cut);
}

#[test]
fn strange_names_can_be_told_apart_and_read_back() {
    let tree = Tree::new();
    let names: [&[u8]; 6] = [b"-rf", b"*", b"a\nb", b"esc\x1b[31m", b"bad\xff\\", b"bad\\xff\\\\"];
    for name in names {
        tree.write(raw(name), b"needle");
    }
    tree.write("n".repeat(255), b"needle");
    let found = lines(&tree.request("needle"));
    assert_eq!(found.len(), 7);
    let bad = found.iter().find(|line| line.path.starts_with("file://")).unwrap();
    assert!(bad.path.ends_with("/bad%FF%5C"), "{}", bad.path);
    for name in ["-rf", "*", "a\nb", "esc\x1b[31m", r"bad\xff\\"] {
        let exact = found.iter().filter(|line| line.path == name).count();
        assert_eq!(exact, 1, "{name:?}");
    }
    let again = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<Vec<super::Line>>(&again).unwrap(), found);
}
