//! What an agent's own processes change meanwhile: links that swap, a worker that is killed, a disk that is full.

use crate::desk::Desk;
use crate::support::is_root;
use serde_json::json;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

/// Reads while a link swaps between an inside file and a secret outside.
const READS: usize = 20_000;
const BATCH: usize = 500;

#[test]
fn a_swapping_link_leaks_nothing() {
    let mut desk = Desk::with("", |ground| drop(ground.file("outside/secret", "SECRET")));
    fs::write(desk.work("in"), "inside").unwrap();
    let secret = desk.ground.path().join("outside/secret");
    let swap = format!("while :; do ln -sfn in l; ln -sfn {} l; done", secret.display());
    let swapping = desk.ok("proc_start", json!({ "command": swap, "initial_read_timeout_ms": 0 }));
    let (mut inside, mut refused, start) = (0, 0, Instant::now());
    let paths: Vec<&str> = vec!["l"; BATCH];
    for _ in 0..READS / BATCH {
        let read = desk.ok("fs_read", json!({ "paths": paths }));
        for file in read["files"].as_array().unwrap() {
            match file["content"].as_str() {
                Some("inside") => inside += 1,
                Some(other) => panic!("leaked {other:?}"),
                None => refused += 1,
            }
        }
    }
    assert!(inside > 0 && refused > 0, "the link never swapped: {inside} inside, {refused} refused");
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    desk.ok("proc_stop", json!({ "proc_id": swapping["proc_id"], "grace_ms": 0 }));
}

#[test]
fn a_worker_killed_during_edits_leaves_each_file_old_or_new() {
    const EDITS: usize = 500;
    let mut desk = Desk::open();
    let (old, new) = ("a".repeat(50_000) + "\nX\n", "a".repeat(50_000) + "\nYY\n");
    let (mut done, mut failed) = (0, 0);
    for number in 0..EDITS {
        fs::write(desk.work("f"), &old).unwrap();
        let id = desk.begin("fs_edit", &json!({ "path": "f", "edits": [{ "old_text": "X", "new_text": "YY" }] }));
        // Moments that wander over the length of an edit.
        let until = Instant::now() + Duration::from_micros((number * 37 % 4000) as u64);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        desk.kill_worker();
        let result = desk.hear(id);
        let text = fs::read_to_string(desk.work("f")).unwrap();
        assert!(text == old || text == new, "half a file of {} bytes", text.len());
        if result["isError"] == true {
            failed += 1;
        } else {
            assert!(text == new, "an edit that was told is there");
            done += 1;
        }
    }
    println!("{done} edits done, {failed} killed");
    assert!(failed > 0, "no edit was hit");
    desk.ok("fs_read", json!({ "path": "f" }));
}

#[test]
fn a_full_disk_changes_nothing() {
    if !is_root() {
        println!("skipped: only root can mount a small filesystem");
        return;
    }
    let mounted = |path: &std::path::Path| {
        let words = ["-t", "tmpfs", "-o", "size=256k", "tmpfs"];
        Command::new("mount").args(words).arg(path).status().is_ok_and(|status| status.success())
    };
    let mut is_small = false;
    let mut desk = Desk::with("[filesystem]\nallowed_roots = [\"{workspace}\", \"{ground}/small\"]\n", |ground| {
        is_small = mounted(&ground.directory("small"));
    });
    let small = desk.ground.path().join("small");
    if !is_small {
        println!("skipped: no tmpfs can be mounted here");
        return;
    }
    let path = small.join("f").display().to_string();
    desk.ok("fs_write", json!({ "path": path, "content": "old" }));
    let (code, message) = desk.refused("fs_write", json!({ "path": path, "content": "x".repeat(500_000) }));
    assert_eq!(code, "IO_ERROR", "{message}");
    assert_eq!(fs::read_to_string(small.join("f")).unwrap(), "old");
    assert_eq!(fs::read_dir(&small).unwrap().count(), 1, "nothing is left beside it");
    desk.kill();
    assert!(Command::new("umount").arg("-l").arg(&small).status().unwrap().success());
}
