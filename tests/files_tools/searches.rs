//! Searches: pages that do not change, a prompt stop, bounds.

use crate::desk::Desk;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn plant(desk: &mut Desk, directories: usize, files: usize) {
    let line = format!(
        "for d in $(seq {directories}); do mkdir -p t/$d; for f in $(seq {files}); do echo needle $d $f > t/$d/$f; done; done"
    );
    assert_eq!(desk.ok("run", json!({ "command": line, "timeout_ms": 60_000 }))["exit_code"], 0);
}

fn lines(page: &Value) -> Vec<(String, u64)> {
    let one = |found: &Value| (found["path"].as_str().unwrap().to_owned(), found["line"].as_u64().unwrap());
    page["matches"].as_array().unwrap().iter().map(one).collect()
}

#[test]
fn pages_are_stable_and_complete() {
    let mut desk = Desk::open();
    plant(&mut desk, 10, 25);
    let first = desk.ok("search_start", json!({ "pattern": "needle", "limit": 40 }));
    let id = first["search_id"].clone();
    let mut all = lines(&first);
    loop {
        let page = desk.ok("search_more", json!({ "search_id": id, "limit": 40, "wait_ms": 5000 }));
        all.extend(lines(&page));
        if page["more"] == false {
            assert_eq!((&page["state"], &page["total"]), (&json!("done"), &json!(250)));
            break;
        }
    }
    assert_eq!(all.len(), 250);
    let again = desk.ok("search_more", json!({ "search_id": id, "offset": 0, "limit": 1000 }));
    assert_eq!(lines(&again), all, "an earlier page is what it was");
    let mut sorted = all.clone();
    sorted.sort();
    assert_eq!(sorted, all, "in path order");
    let names = desk.ok("search_start", json!({ "pattern": "t/3/1*", "kind": "files" }));
    assert!(names["total"].as_u64().unwrap() >= 1, "{names}");
}

#[test]
fn a_search_stops_promptly_and_its_matches_stay() {
    let mut desk = Desk::open();
    plant(&mut desk, 20, 50);
    let started = desk.ok("search_start", json!({ "pattern": "needle", "path": "/usr" }));
    let begun = Instant::now();
    desk.ok("search_stop", json!({ "search_id": started["search_id"] }));
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    let page = desk.ok("search_more", json!({ "search_id": started["search_id"], "offset": 0 }));
    assert!(page["state"] == "stopped" || page["state"] == "done", "{page}");
    assert_eq!(desk.ok("search_stop", json!({ "search_id": started["search_id"] }))["stopped"], false);
    let listed = desk.ok("search_list", json!({}));
    assert_eq!(listed["searches"][0]["search_id"], started["search_id"]);
}

#[test]
fn the_number_of_searches_kept_is_bounded() {
    let mut desk = Desk::open();
    plant(&mut desk, 1, 3);
    let first = desk.ok("search_start", json!({ "pattern": "needle" }))["search_id"].clone();
    for _ in 0..20 {
        desk.ok("search_start", json!({ "pattern": "needle" }));
    }
    assert!(desk.ok("search_list", json!({}))["searches"].as_array().unwrap().len() <= 16);
    assert_eq!(desk.refused("search_more", json!({ "search_id": first })).0, "SEARCH_NOT_FOUND");
}
