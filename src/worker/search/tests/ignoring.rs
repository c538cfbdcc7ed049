//! Which files count: ignore files, hidden ones, globs. The verdicts are `rg`'s.

use super::{Request, Tree, paths};
use std::fs;

/// Each tree holds `x` in every file; which of them are searched?
fn check(files: &[(&str, &str)], globs: &[&str], expected: &[&str]) {
    let tree = Tree::with(files);
    let request = Request { globs: globs.iter().map(|glob| (*glob).into()).collect(), ..tree.request("x") };
    assert_eq!(paths(&request), expected, "{files:?} with {globs:?}");
}

#[test]
fn a_gitignore_counts_inside_a_repository_only() {
    let files = [("a.log", "x"), ("b.rs", "x"), (".gitignore", "*.log")];
    check(&files, &[], &["a.log", "b.rs"]);
    check(&[&files[..], &[(".git/HEAD", "x")]].concat(), &[], &["b.rs"]);
    check(&[&files[..], &[(".jj/x", "x")]].concat(), &[], &["b.rs"]);
}

#[test]
fn ignore_and_rgignore_count_everywhere_and_outweigh_gitignore() {
    check(&[("a.log", "x"), ("b.rs", "x"), (".ignore", "*.log")], &[], &["b.rs"]);
    check(&[("a.log", "x"), (".ignore", "*.log"), (".rgignore", "!a.log")], &[], &["a.log"]);
    check(&[("a.log", "x"), (".git/HEAD", ""), (".gitignore", "*.log"), (".ignore", "!a.log")], &[], &["a.log"]);
}

#[test]
fn rules_hold_below_their_directory_and_nearer_ones_win() {
    let git = (".git/HEAD", "");
    check(
        &[git, (".gitignore", "*.log"), ("d/.gitignore", "!k.log"), ("d/k.log", "x"), ("k.log", "x")],
        &[],
        &["d/k.log"],
    );
    check(&[git, ("d/.gitignore", "/a"), ("d/a", "x"), ("d/e/a", "x"), ("a", "x")], &[], &["a", "d/e/a"]);
    check(&[git, (".gitignore", "out/\n"), ("out/a", "x"), ("d/out", "x"), ("d/e/out/b", "x")], &[], &["d/out"]);
    check(&[git, (".gitignore", "d/*\n!d/k\n"), ("d/a", "x"), ("d/k", "x")], &[], &["d/k"]);
    check(&[git, (".gitignore", "# x\n\n\\#a\n"), ("#a", "x"), ("b", "x")], &[], &["b"]);
    check(&[git, (".git/info/exclude", "secret"), ("secret", "x"), ("b", "x")], &[], &["b"]);
    // A repository inside a repository begins anew.
    check(&[git, (".gitignore", "*.log"), ("in/.git/HEAD", ""), ("in/a.log", "x")], &[], &["in/a.log"]);
}

#[test]
fn rules_above_the_search_count() {
    let tree = Tree::with(&[
        (".git/HEAD", ""),
        (".gitignore", "/d/skip\n*.log\n"),
        ("d/skip", "x"),
        ("d/a.log", "x"),
        ("d/b", "x"),
    ]);
    let request = Request { path: Some("d".into()), ..tree.request("x") };
    assert_eq!(paths(&request), ["d/b"]);
    let request = Request { path: Some(tree.0.join("d")), ..tree.request("x") };
    assert_eq!(paths(&request), [tree.0.join("d/b").to_str().unwrap()]);
    let request = Request { path: Some("./d/a.log".into()), ..tree.request("x") };
    assert_eq!(paths(&request), ["d/a.log"], "a file that is named is searched");
}

#[test]
fn hidden_files_are_left_out_unless_asked_for() {
    let tree = Tree::with(&[(".h", "x"), (".d/a", "x"), ("b", "x")]);
    assert_eq!(paths(&tree.request("x")), ["b"]);
    assert_eq!(paths(&Request { include_hidden: true, ..tree.request("x") }), [".d/a", ".h", "b"]);
}

#[test]
fn globs_take_in_and_leave_out() {
    let files =
        [("a.rs", "x"), ("b.txt", "x"), ("d/c.rs", "x"), ("d/e/c.md", "x"), (".h.rs", "x"), (".ignore", "b.txt")];
    check(&files, &[], &["a.rs", "d/c.rs", "d/e/c.md"]);
    check(&files, &["*.rs"], &[".h.rs", "a.rs", "d/c.rs"]);
    check(&files, &["/*.rs"], &[".h.rs", "a.rs"]);
    check(&files, &["!*.rs"], &["d/e/c.md"]);
    check(&files, &["*.rs", "!d"], &[".h.rs", "a.rs"]);
    check(&files, &["d/**/*.{md,rs}"], &["d/c.rs", "d/e/c.md"]);
    check(&files, &["b.txt"], &["b.txt"]);
}

#[test]
fn an_ignore_file_that_cannot_be_read_well_is_named_and_the_search_goes_on() {
    let tree = Tree::with(&[("a.log", "x"), ("b.txt", "x"), ("d/a", "x")]);
    fs::write(tree.0.join(".ignore"), format!("*.log\n{}\n", "{".repeat(2000))).unwrap();
    let fifo = tree.0.join("d/.ignore");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let (found, page) = super::pages(&tree.request("x"), 10).unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!(page.error_count, 2, "{:?}", page.errors);
    assert!(page.errors[0].message.contains("line 2 of `.ignore`"), "{:?}", page.errors);
    assert_eq!(page.errors[1].path, "d");
    assert!(page.errors[1].message.contains("not a regular file"), "{:?}", page.errors);
}
