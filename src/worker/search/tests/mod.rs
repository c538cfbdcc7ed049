//! Tests of search on real trees in a directory of their own.

mod bounds;
mod hostile;
mod ignoring;
mod matching;
mod model;
mod ordering;

use super::{Case, Failure, Kind, Line, Match, Page, Request, Searches, State};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Longer than any search here takes, so that a test that fails does so by its claim and not by the clock.
const LONG: Duration = Duration::from_secs(60);

/// A directory that is gone when the test is over.
struct Tree(PathBuf);

impl Tree {
    fn new() -> Tree {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("stockade-search-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Tree(path.canonicalize().unwrap())
    }

    fn with(files: &[(&str, &str)]) -> Tree {
        let tree = Tree::new();
        for (path, text) in files {
            tree.write(path, text.as_bytes());
        }
        tree
    }

    fn write(&self, path: impl AsRef<Path>, bytes: &[u8]) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn request(&self, pattern: &str) -> Request {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        Request {
            search_id: format!("s{}", NUMBER.fetch_add(1, Ordering::Relaxed)),
            workspace: self.0.clone(),
            pattern: pattern.into(),
            path: None,
            kind: Kind::Content,
            literal: false,
            case: Case::Smart,
            globs: Vec::new(),
            context: 0,
            limit: None,
            include_hidden: false,
            wait_ms: Some(10_000),
        }
    }

    fn names(&self, pattern: &str) -> Request {
        Request { kind: Kind::Files, ..self.request(pattern) }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // Best effort: a tree too deep for a path is taken down from inside.
        if fs::remove_dir_all(&self.0).is_err() {
            let _ = std::process::Command::new("rm").arg("-rf").arg(&self.0).status();
        }
    }
}

/// Everything a search finds, in pages of `limit`, and the last page.
fn pages(request: &Request, limit: usize) -> Result<(Vec<Match>, Page), Failure> {
    let searches = Searches::default();
    let mut page = searches.start(&Request { limit: Some(limit), ..request.clone() })?;
    let mut all = std::mem::take(&mut page.matches);
    while page.more {
        page = searches.more(&request.search_id, all.len(), Some(limit), LONG)?;
        all.append(&mut page.matches);
    }
    Ok((all, page))
}

fn all(request: &Request) -> Vec<Match> {
    let (all, page) = pages(request, 1000).unwrap();
    assert_eq!((page.state, page.total, page.total_exact), (State::Done, all.len(), true), "{page:?}");
    all
}

fn lines(request: &Request) -> Vec<Line> {
    let line = |found| match found {
        Match::Line(line) => line,
        Match::Entry(entry) => panic!("{entry:?} is no line"),
    };
    all(request).into_iter().map(line).collect()
}

fn path_of(found: &Match) -> &str {
    match found {
        Match::Line(line) => &line.path,
        Match::Entry(entry) => &entry.path,
    }
}

/// The paths found, each once, in the order found.
fn paths(request: &Request) -> Vec<String> {
    let mut paths: Vec<String> = all(request).iter().map(|found| path_of(found).to_owned()).collect();
    paths.dedup();
    paths
}

/// Numbers that look random and are the same on every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

fn raw(bytes: &[u8]) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}
