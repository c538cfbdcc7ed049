//! Backups: where they lie, who can see them, and what a write does when none can be kept.

use crate::desk::Desk;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_backup_is_the_operators_and_restores_content_and_mode() {
    let mut desk = Desk::open();
    desk.ok("fs_write", json!({ "path": "a", "content": "old", "mode": "640" }));
    let written = desk.ok("fs_write", json!({ "path": "a", "content": "new", "mode": "600" }));
    let id = written["backup_id"].as_str().unwrap().to_owned();
    let file = desk.state().join("backups").join(&id);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let (code, _) = desk.refused("fs_read", json!({ "path": file.display().to_string() }));
    assert_eq!(code, "PATH_NOT_ALLOWED", "out of every cell's sight");
    let restored = desk.ok("fs_restore", json!({ "backup_id": id }));
    assert_eq!(restored["path"], desk.work("a").display().to_string());
    assert_eq!(fs::read_to_string(desk.work("a")).unwrap(), "old");
    assert_eq!(fs::metadata(desk.work("a")).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn a_restore_is_judged_by_the_walls_again() {
    let mut desk = Desk::open();
    desk.ok("fs_write", json!({ "path": "d/a", "content": "old", "create_parents": true }));
    let id = desk.ok("fs_write", json!({ "path": "d/a", "content": "new" }))["backup_id"].clone();
    let outside = desk.ground.directory("outside");
    fs::write(outside.join("a"), "theirs").unwrap();
    desk.shell(&format!("mv d away; ln -s {} d", outside.display()));
    desk.refused("fs_restore", json!({ "backup_id": id }));
    assert_eq!(fs::read_to_string(outside.join("a")).unwrap(), "theirs");
}

#[test]
fn without_a_place_for_backups_the_write_succeeds_and_says_so() {
    let mut desk = Desk::open();
    desk.ok("fs_write", json!({ "path": "a", "content": "old" }));
    // Something stands where the directory should be; that stops root too.
    let place = desk.state().join("backups");
    fs::remove_dir_all(&place).unwrap();
    fs::write(&place, "").unwrap();
    let written = desk.ok("fs_write", json!({ "path": "a", "content": "new" }));
    assert!(written["backup"].as_str().unwrap().starts_with("not kept: "), "{written}");
    assert_eq!(written.get("backup_id"), None);
    assert_eq!(fs::read_to_string(desk.work("a")).unwrap(), "new");
}
