//! What is wrong with a request is said, with a code, and nothing changes on the disk.

use crate::desk::Desk;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

#[expect(clippy::needless_pass_by_value, reason = "calls read better with the `json!` in them")]
fn edit(edits: Value) -> Value {
    json!({ "path": "a", "edits": edits })
}

#[test]
fn bad_requests_have_their_codes() {
    let mut desk = Desk::open();
    fs::write(desk.work("a"), "one\ntwo\n").unwrap();
    symlink("loop", desk.work("loop")).unwrap();
    let long = "x/".repeat(2049);
    let cases = [
        ("fs_read", json!({ "path": "a\0b" }), "INVALID_ARGUMENT"),
        ("fs_read", json!({ "path": "" }), "INVALID_ARGUMENT"),
        ("fs_read", json!({ "path": long }), "INVALID_ARGUMENT"),
        ("fs_read", json!({ "path": 5 }), "INVALID_ARGUMENT"),
        ("fs_read", json!({ "path": "a", "paths": ["a"] }), "INVALID_ARGUMENT"),
        ("fs_read", json!({}), "INVALID_ARGUMENT"),
        ("fs_read", json!({ "paths": [] }), "INVALID_ARGUMENT"),
        ("fs_read", json!({ "path": "a", "offset": 0 }), "INVALID_ARGUMENT"),
        ("fs_read", json!({ "path": "a", "byte_offset": 1, "limit": 1 }), "INVALID_ARGUMENT"),
        ("fs_read", json!({ "path": "a", "encodng": "utf8" }), "INVALID_ARGUMENT"),
        ("fs_read", json!({ "path": "a\nb" }), "NOT_FOUND"),
        ("fs_read", json!({ "path": "loop" }), "NOT_FOUND"),
        ("fs_read", json!({ "path": "file:///%" }), "INVALID_ARGUMENT"),
        ("fs_stat", json!({ "path": "../../../etc/shadow" }), "PATH_NOT_ALLOWED"),
        ("fs_list", json!({ "path": "a" }), "INVALID_ARGUMENT"),
        ("fs_list", json!({ "path": ".", "depth": 0 }), "INVALID_ARGUMENT"),
        ("fs_list", json!({ "path": ".", "cursor": "?" }), "INVALID_ARGUMENT"),
        ("fs_write", json!({ "path": "a", "content": "x", "mode": "4755" }), "INVALID_ARGUMENT"),
        ("fs_write", json!({ "path": "a", "content": "x", "mode": "rw" }), "INVALID_ARGUMENT"),
        ("fs_write", json!({ "path": "a", "content": "?", "encoding": "base64" }), "INVALID_ARGUMENT"),
        ("fs_write", json!({ "path": "a", "content": "x", "if_sha256": "0".repeat(64) }), "CONFLICT"),
        ("fs_write", json!({ "path": "a", "content": "x".repeat(1_048_577) }), "TOO_LARGE"),
        ("fs_write", json!({ "path": "none/b", "content": "x" }), "NOT_FOUND"),
        ("fs_edit", edit(json!([{ "old_text": "tow", "new_text": "x" }])), "EDIT_NO_MATCH"),
        ("fs_edit", edit(json!([{ "old_text": "o", "new_text": "x" }])), "EDIT_NO_MATCH"),
        ("fs_edit", edit(json!([{ "start_line": 3, "end_line": 9, "new_text": "x" }])), "INVALID_ARGUMENT"),
        ("fs_edit", edit(json!([{ "old_text": "one", "start_line": 1, "new_text": "x" }])), "INVALID_ARGUMENT"),
        ("fs_edit", edit(json!([{ "odl_text": "one", "new_text": "x" }])), "INVALID_ARGUMENT"),
        ("fs_edit", edit(json!([])), "INVALID_ARGUMENT"),
        ("fs_move", json!({ "from": "a", "to": "loop" }), "ALREADY_EXISTS"),
        ("fs_move", json!({ "from": "none", "to": "b" }), "NOT_FOUND"),
        ("fs_mkdir", json!({ "path": "a" }), "ALREADY_EXISTS"),
        ("fs_restore", json!({ "backup_id": "b_aaaaaaaaaaaaaaaa" }), "NOT_FOUND"),
        ("fs_restore", json!({ "backup_id": "../journal.jsonl" }), "NOT_FOUND"),
        ("search_start", json!({ "pattern": "(" }), "INVALID_ARGUMENT"),
        ("search_start", json!({ "pattern": "a", "globs": ["{"] }), "INVALID_ARGUMENT"),
        ("search_start", json!({ "pattern": "a", "path": "none" }), "NOT_FOUND"),
        ("search_start", json!({ "pattern": "a", "path": "/root" }), "PATH_NOT_ALLOWED"),
        ("search_start", json!({ "pattern": "a", "context": 11 }), "INVALID_ARGUMENT"),
        ("search_more", json!({ "search_id": "s_aaaaaaaaaaaaaaaa" }), "SEARCH_NOT_FOUND"),
        ("search_stop", json!({ "search_id": "" }), "SEARCH_NOT_FOUND"),
    ];
    for (tool, arguments, expected) in cases {
        let shown: String = arguments.to_string().chars().take(120).collect();
        let (code, message) = desk.refused(tool, arguments);
        assert_eq!(code, expected, "{tool} {shown}: {message}");
        assert!(message.len() < 2000, "{tool} {shown}: a message of {} bytes", message.len());
    }
    assert_eq!(fs::read_to_string(desk.work("a")).unwrap(), "one\ntwo\n");
    let names: Vec<_> = fs::read_dir(desk.work("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn names_that_are_no_text_can_be_listed_searched_and_read_back() {
    let mut desk = Desk::open();
    let odd = desk.work("").join(std::ffi::OsStr::from_bytes(b"odd-\xff\n.txt"));
    fs::write(odd, "needle").unwrap();
    let listed = desk.ok("fs_list", json!({ "path": "." }))["entries"][0]["path"].clone();
    let found = desk.ok("search_start", json!({ "pattern": "needle" }))["matches"][0]["path"].clone();
    for path in [listed, found] {
        assert_eq!(desk.ok("fs_read", json!({ "path": path }))["files"][0]["content"], "needle", "{path}");
    }
}

#[test]
fn another_agents_search_looks_like_none() {
    let (mut one, mut other) = (Desk::open(), Desk::open());
    let id = one.ok("search_start", json!({ "pattern": "a" }))["search_id"].clone();
    let foreign = other.refused("search_more", json!({ "search_id": id })).1;
    let unknown = other.refused("search_more", json!({ "search_id": "s_aaaaaaaaaaaaaaaa" })).1;
    assert_eq!(foreign.replace(id.as_str().unwrap(), "ID"), unknown.replace("s_aaaaaaaaaaaaaaaa", "ID"));
}
