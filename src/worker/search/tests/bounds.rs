//! Everything a client can grow has an end, and hitting it is told.

use super::super::hunt::{KEPT, KEPT_BYTES};
use super::super::{Bound, Code};
use super::{LONG, Request, Searches, State, Tree, pages, path_of};
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A search that stays at work as long as the lock on wide lines is held.
fn stuck() -> Tree {
    let tree = Tree::new();
    tree.write("wide", &vec![b'z'; 2 << 20]);
    tree
}

fn at_once(request: Request) -> Request {
    Request { wait_ms: Some(0), ..request }
}

#[test]
fn matches_are_kept_up_to_a_number_and_the_first_ones_stay() {
    let tree = Tree::new();
    for number in 0..30 {
        tree.write(format!("f{number:02}"), "needle\n".repeat(500).as_bytes());
    }
    let (found, page) = pages(&tree.request("needle"), 1000).unwrap();
    assert_eq!((page.state, page.limited_by, page.total), (State::Limited, Some(Bound::Matches), KEPT));
    assert!(!page.total_exact && !page.more);
    let expected = (0..30).flat_map(|number| vec![format!("f{number:02}"); 500]).take(KEPT);
    assert!(found.iter().map(path_of).eq(expected));
    let exact = Request { globs: vec!["f[01]*".into()], ..tree.request("needle") };
    assert_eq!(pages(&exact, 1000).unwrap().1.state, State::Done, "as many as are kept is not too many");
}

#[test]
fn matches_are_kept_up_to_a_size_and_a_page_has_one_too() {
    let tree = Tree::new();
    let line = "needle ".to_owned() + &"z".repeat(480) + "\n";
    tree.write("a", line.repeat(3000).as_bytes());
    let request = Request { context: 10, limit: Some(1000), ..tree.request("needle") };
    let searches = Searches::default();
    let page = searches.start(&request).unwrap();
    assert!(page.matches.len() < 200 && page.more, "{} matches on a page", page.matches.len());
    let (found, page) = pages(&Request { search_id: "again".into(), ..request }, 1000).unwrap();
    assert_eq!((page.state, page.limited_by), (State::Limited, Some(Bound::Bytes)));
    let text: usize = serde_json::to_string(&found).unwrap().len();
    assert!((KEPT_BYTES / 2..2 * KEPT_BYTES).contains(&text), "{text} bytes");
}

#[test]
fn a_search_ends_at_its_deadline() {
    let tree = stuck();
    let mut searches = Searches::default();
    searches.deadline = Duration::from_millis(50);
    let _turn = searches.wide.lock().unwrap();
    let page = searches.start(&tree.request("needle")).unwrap();
    assert_eq!((page.state, page.limited_by), (State::Limited, Some(Bound::Time)));
}

#[test]
fn only_so_many_searches_run_at_once() {
    let tree = stuck();
    let searches = Searches::default();
    let turn = searches.wide.lock().unwrap();
    let requests: Vec<Request> = (0..5).map(|_| at_once(tree.request("needle"))).collect();
    for request in &requests[..4] {
        assert_eq!(searches.start(request).unwrap().state, State::Running);
    }
    assert_eq!(searches.start(&requests[4]).unwrap_err().code, Code::LimitExceeded);
    assert!(searches.stop(&requests[0].search_id).unwrap());
    assert!(!searches.stop(&requests[0].search_id).unwrap(), "it was stopped before");
    assert_eq!(searches.start(&requests[4]).unwrap().state, State::Running);
    drop(turn);
    let page = searches.more(&requests[4].search_id, 0, None, LONG).unwrap();
    assert_eq!(page.state, State::Done);
    let states: Vec<State> = searches.list().iter().map(|summary| summary.state).collect();
    assert_eq!((states.len(), states[0]), (5, State::Stopped));
}

#[test]
fn the_oldest_finished_search_makes_room() {
    let tree = Tree::with(&[("a", "needle")]);
    let searches = Searches::default();
    let requests: Vec<Request> = (0..17).map(|_| tree.request("needle")).collect();
    for request in &requests {
        assert_eq!(searches.start(request).unwrap().total, 1);
    }
    assert_eq!(searches.list().len(), 16);
    let gone = searches.more(&requests[0].search_id, 0, None, Duration::ZERO).unwrap_err();
    assert_eq!(gone.code, Code::SearchNotFound);
    assert_eq!(searches.more(&requests[1].search_id, 0, None, Duration::ZERO).unwrap().matches.len(), 1);
    assert_eq!(searches.start(&requests[1]).unwrap_err().code, Code::InvalidArgument, "an id is used once");
    assert!(searches.forget(&requests[1].search_id) && !searches.forget(&requests[1].search_id));
}

#[test]
fn a_search_that_is_stopped_or_dropped_lets_go_of_everything() {
    let tree = Tree::with(&[("f", &"some hay\n".repeat(400_000))]);
    for number in 0..500 {
        fs::hard_link(tree.0.join("f"), tree.0.join(format!("g{number}"))).unwrap();
    }
    for is_dropped in [false, true] {
        let searches = Searches::default();
        let request = at_once(tree.request("needle"));
        assert_eq!(searches.start(&request).unwrap().state, State::Running);
        let hunt = Arc::downgrade(&searches.find(&request.search_id).unwrap());
        let before = Instant::now();
        if is_dropped {
            drop(searches);
        } else {
            assert!(searches.stop(&request.search_id).unwrap());
            let page = searches.more(&request.search_id, 0, None, LONG).unwrap();
            assert_eq!((page.state, page.more, page.total_exact), (State::Stopped, false, false));
            assert!(searches.forget(&request.search_id));
        }
        while hunt.strong_count() > 0 {
            assert!(before.elapsed() < Duration::from_secs(5), "its hands are still at work");
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_pattern_or_glob_that_asks_too_much_is_refused_soon() {
    let tree = Tree::with(&[("a", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\n")]);
    let words: Vec<String> = (0..100_000).map(|number| format!("w{number}")).collect();
    let patterns = [
        "x".repeat(1 << 20),
        words.join("|"),
        r"((\pL{50}){50}){50}".into(),
        "(".repeat(200) + &")".repeat(200),
        "(unclosed".into(),
        "a\\nb".into(),
        "*".into(),
    ];
    for pattern in patterns {
        refused_soon(&tree.request(&pattern));
    }
    let globs =
        ["{".repeat(2000), "{".repeat(20) + &"}".repeat(20), "*".repeat(5000), "[".into(), "{a".into(), String::new()];
    for glob in globs {
        refused_soon(&Request { globs: vec![glob], ..tree.request("x") });
    }
    refused_soon(&Request { globs: vec!["a".into(); 101], ..tree.request("x") });
    refused_soon(&tree.names(&"*".repeat(5000)));
    for pattern in ["(a+)+$", "(.*a){25}", &words[..3000].join("|")] {
        assert_eq!(pages(&tree.request(pattern), 10).unwrap().1.state, State::Done, "a linear engine takes it");
    }
}

fn refused_soon(request: &Request) {
    let before = Instant::now();
    let failure = Searches::default().start(request).unwrap_err();
    let took = before.elapsed();
    assert_eq!(failure.code, Code::InvalidArgument, "{failure}");
    assert!(failure.message.len() < 2000, "a message of {} bytes", failure.message.len());
    // The engine is not optimised in a debug build.
    let soon = if cfg!(debug_assertions) { Duration::from_secs(20) } else { Duration::from_secs(1) };
    assert!(took < soon, "{took:?} for {failure}");
}

#[test]
fn bad_requests_are_refused_by_name() {
    let tree = Tree::with(&[("file", "x")]);
    let base = || tree.request("x");
    let at = |path: &str| Request { path: Some(path.into()), ..base() };
    let table = [
        (at(""), Code::InvalidArgument, "empty"),
        (at("a\0b"), Code::InvalidArgument, "NUL"),
        (at(&"a/".repeat(2500)), Code::InvalidArgument, "5000 bytes"),
        (at(&"a".repeat(300)), Code::InvalidArgument, "255"),
        (at("missing"), Code::NotFound, "missing"),
        (at("file/below"), Code::NotFound, "file/below"),
        (Request { context: 11, ..base() }, Code::InvalidArgument, "`context`"),
        (Request { limit: Some(0), ..base() }, Code::InvalidArgument, "`limit`"),
        (Request { limit: Some(1001), ..base() }, Code::InvalidArgument, "`limit`"),
        (Request { search_id: String::new(), ..base() }, Code::InvalidArgument, "`search_id`"),
        (Request { workspace: "here".into(), ..base() }, Code::InvalidArgument, "`workspace`"),
    ];
    for (request, code, word) in table {
        let failure = Searches::default().start(&request).unwrap_err();
        assert_eq!(failure.code, code, "{failure}");
        assert!(failure.message.contains(word), "{failure}");
    }
    let unknown = r#"{"search_id":"s","workspace":"/","pattern":"x","patern":"x"}"#;
    assert!(serde_json::from_str::<Request>(unknown).is_err());
}
