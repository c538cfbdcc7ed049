//! Every tool does what it says, also under a list of programs and with a worker that is killed or out of date.

use crate::desk::{Desk, refusal};
use serde_json::json;
use std::fs;
use std::time::{Duration, Instant};

#[test]
fn files_are_read_listed_written_edited_moved_and_restored() {
    let mut desk = Desk::open();
    let written = desk.ok("fs_write", json!({ "path": "a.txt", "content": "one\ntwo\n", "mode": "600" }));
    assert_eq!((&written["bytes"], &written["created"], written.get("backup_id")), (&json!(8), &json!(true), None));
    let read = desk.ok("fs_read", json!({ "path": "a.txt", "offset": 2 }))["files"][0].clone();
    assert_eq!((&read["content"], &read["size"], &read["truncated"]), (&json!("two\n"), &json!(8), &json!(false)));
    assert_eq!(read["sha256"], written["sha256"]);
    let stat = desk.ok("fs_stat", json!({ "path": "a.txt" }));
    assert_eq!((&stat["type"], &stat["mode"], &stat["size"]), (&json!("file"), &json!("600"), &json!(8)));
    assert!(stat["mtime"].as_str().unwrap().ends_with('Z'), "{stat}");

    let edits = json!([{ "old_text": "two", "new_text": "three" }]);
    let edited = desk.ok("fs_edit", json!({ "path": "a.txt", "edits": edits, "if_sha256": written["sha256"] }));
    assert!(edited["diff"].as_str().unwrap().contains("-two\n+three\n"), "{edited}");
    let restored = desk.ok("fs_restore", json!({ "backup_id": edited["backup_id"] }));
    assert_eq!(fs::read_to_string(desk.work("a.txt")).unwrap(), "one\ntwo\n");
    desk.ok("fs_restore", json!({ "backup_id": restored["backup_id"] }));
    assert_eq!(fs::read_to_string(desk.work("a.txt")).unwrap(), "one\nthree\n", "a restore can be taken back");

    assert_eq!(desk.ok("fs_mkdir", json!({ "path": "d/e" })), json!({ "created": true }));
    assert_eq!(desk.ok("fs_mkdir", json!({ "path": "d/e" })), json!({ "created": false }));
    assert_eq!(desk.ok("fs_move", json!({ "from": "a.txt", "to": "d/e/b" }))["moved"], true);
    let listed = desk.ok("fs_list", json!({ "path": ".", "depth": 3 }));
    let paths: Vec<&str> = listed["entries"].as_array().unwrap().iter().map(|e| e["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["d", "d/e", "d/e/b"]);
    assert_eq!(desk.shell("cat d/e/b")["stdout"], "one\nthree\n");
}

#[test]
fn many_files_come_in_one_call_with_an_error_for_each_that_fails() {
    let mut desk = Desk::open();
    fs::write(desk.work("a"), b"a\xff").unwrap();
    let read = desk.ok("fs_read", json!({ "paths": ["a", "none", "/etc/shadow"] }));
    assert_eq!((&read["files"][0]["content"], &read["files"][0]["invalid_utf8"]), (&json!("a\u{fffd}"), &json!(1)));
    assert_eq!(read["files"][1]["error"]["code"], "NOT_FOUND");
    assert_eq!(read["files"][2]["error"]["code"], "PATH_NOT_ALLOWED");
    let raw = desk.ok("fs_read", json!({ "path": "a", "encoding": "base64" }))["files"][0].clone();
    assert_eq!((&raw["content"], &raw["encoding"]), (&json!("Yf8="), &json!("base64")));
}

#[test]
fn a_long_file_is_paged_until_its_end() {
    let mut desk = Desk::open();
    let text: String = (0..40_000).map(|number| format!("line {number}\n")).collect();
    fs::write(desk.work("long"), &text).unwrap();
    let (mut whole, mut next) = (String::new(), json!(1));
    while !next.is_null() {
        let page = desk.ok("fs_read", json!({ "path": "long", "offset": next }))["files"][0].clone();
        whole.push_str(page["content"].as_str().unwrap());
        assert!(page["content"].as_str().unwrap().len() <= 64 << 10, "more than is given without being asked for");
        next = page["next_offset"].clone();
    }
    assert!(whole == text, "{} bytes instead of {}", whole.len(), text.len());
    let page = desk.ok("fs_read", json!({ "path": "long", "max_bytes": 400_000 }))["files"][0].clone();
    assert!(page["content"].as_str().unwrap().len() > 390_000, "a number that is asked for is given");
}

#[test]
fn a_list_of_programs_needs_no_exception_for_the_worker() {
    let mut desk = Desk::with("[commands]\nallowed = [\"cat\"]\n", |_| {});
    desk.ok("fs_write", json!({ "path": "a", "content": "x" }));
    assert_eq!(desk.ok("fs_read", json!({ "path": "a" }))["files"][0]["content"], "x");
    assert_eq!(desk.refused("run", json!({ "argv": ["ls"] })).0, "COMMAND_NOT_ALLOWED");
}

#[test]
fn without_the_feature_files_there_are_no_such_tools() {
    let mut desk = Desk::with("[tools]\nfiles = false\n", |_| {});
    for (tool, arguments) in [("fs_read", json!({ "path": "a" })), ("search_list", json!({}))] {
        assert_eq!(desk.refused(tool, arguments).0, "FEATURE_DISABLED");
    }
}

#[test]
fn a_killed_worker_fails_its_call_and_the_next_gets_a_new_one() {
    let mut desk = Desk::open();
    desk.ok("fs_write", json!({ "path": "a", "content": "x" }));
    let first = desk.workers();
    assert_eq!(first.len(), 1, "one worker");
    // Idle: the next call does not notice.
    desk.kill_worker();
    until_gone(&first);
    desk.ok("fs_stat", json!({ "path": "a" }));
    let second = desk.workers();
    assert_ne!(second, first);
    // A call that waits for what never comes is at work when the kill arrives, or is given to the next worker, which
    // knows nothing of the search.
    let search = desk.ok("search_start", json!({ "pattern": "a needle that is nowhere", "path": "/usr" }));
    let more = json!({ "search_id": search["search_id"], "offset": 100_000, "wait_ms": 10_000 });
    let id = desk.begin("search_more", &more);
    desk.kill_worker();
    let (code, message) = refusal(&desk.hear(id));
    assert!(code == "SEARCH_NOT_FOUND" || code == "IO_ERROR", "{code}: {message}");
    until_gone(&second);
    desk.ok("fs_stat", json!({ "path": "a" }));
}

#[test]
fn a_worker_dies_with_its_broker() {
    let mut desk = Desk::open();
    desk.ok("fs_list", json!({ "path": "." }));
    let workers = desk.workers();
    desk.kill();
    until_gone(&workers);
}

/// Waits for the end of processes that are not ours to wait for.
fn until_gone(pids: &[i32]) {
    let deadline = Instant::now() + Duration::from_secs(10);
    for pid in pids {
        let is_there = || fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
        while is_there() {
            assert!(Instant::now() < deadline, "{pid} is still there");
            std::thread::yield_now();
        }
    }
}

#[test]
fn what_is_hidden_stays_hidden_when_it_is_replaced_under_a_living_worker() {
    let mut desk = Desk::with("[filesystem]\nhidden = [\".env\", \"keys/\"]\n", |ground| {
        ground.file("work/.env", "SECRET-1");
        ground.file("work/keys/k", "SECRET-2");
    });
    desk.ok("fs_list", json!({ "path": "." }));
    for round in 0..3 {
        fs::write(desk.work("fresh"), "SECRET-3").unwrap();
        fs::rename(desk.work("fresh"), desk.work(".env")).unwrap();
        fs::rename(desk.work("keys"), desk.ground.path().join(format!("old-{round}"))).unwrap();
        desk.ground.file("work/keys/k", "SECRET-4");
        for (tool, arguments) in [
            ("fs_read", json!({ "paths": [".env", "keys/k"] })),
            ("search_start", json!({ "pattern": "SECRET", "include_hidden": true })),
            ("fs_list", json!({ "path": "keys" })),
        ] {
            let told = desk.call(tool, &arguments).to_string();
            assert!(!told.contains("SECRET-") && !told.contains("keys/k\",\"size"), "{tool}: {told}");
        }
        desk.ok("fs_write", json!({ "path": "visible", "content": "x" }));
    }
}
