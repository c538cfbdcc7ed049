//! Brokers that come and go: what the next one finds, what it leaves alone, and what a sweep takes away.

use super::journal::{self, Journal, Record, Told};
use super::{Deleted, Ended, Limits, MAX_KEPT, Recovery, Started, State, look, new_id};
use crate::broker::answer::{Reason, Stream};
use crate::broker::output::folder::Folder;
use crate::broker::output::tests::{Scratch, persist};
use crate::broker::output::{Bounds, Overflow, Scribe};
use crate::broker::request::Filter;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

const LIMITS: Limits = Limits { retention: Duration::from_secs(3600), max_bytes: 1 << 30 };
const BOUNDS: Bounds = Bounds { kept: 1 << 20, lines: None, overflow: Overflow::DropOldest };

/// Puts something strange where a journal was.
type Swap = dyn Fn(&PathBuf);

fn started(proc_id: &str) -> Started {
    Started {
        proc_id: proc_id.into(),
        session: "default".into(),
        command: "make \"all\"\n".into(),
        description: None,
        cwd: "/work".into(),
        pid: 7,
        terminal: false,
        started_at: 1_700_000_000_000_000,
    }
}

fn ended(proc_id: &str, total: u64) -> Ended {
    Ended {
        proc_id: proc_id.into(),
        reason: Reason::Exit,
        exit_code: Some(0),
        signal: None,
        cpu_us: 1,
        max_rss_kib: 2,
        total_bytes: total,
        stdout_bytes: total,
        stderr_bytes: 0,
        total_lines: 1,
        dropped_bytes: 0,
        ended_at: 1_700_000_001_000_000,
    }
}

/// Starts a process that writes, and lets it end.
fn live(state: &State, proc_id: &str, text: &[u8]) {
    let scribe = Scribe::start().unwrap();
    let output = state.output(proc_id, BOUNDS, &scribe);
    state.started(started(proc_id)).unwrap();
    let _ = output.append(Stream::Stdout, text);
    persist(&output);
    output.close();
    state.ended(ended(proc_id, text.len() as u64)).unwrap();
}

fn open(scratch: &Scratch, limits: Limits) -> (State, Recovery) {
    let state = State::open(&scratch.0, "coder", Path::new("/project"), limits).unwrap();
    let recovery = state.recover();
    (state, recovery)
}

fn brokers(scratch: &Scratch) -> Vec<PathBuf> {
    let found = std::fs::read_dir(scratch.0.join("coder")).unwrap();
    found.map(|entry| entry.unwrap().path()).collect()
}

fn found(recovery: &Recovery) -> Vec<(&str, Option<Reason>, Vec<u8>)> {
    let one = |process: &'_ super::Recovered| {
        let bytes = process.output.bytes(0, 1 << 20, Filter::All).0;
        (process.end.as_ref().map(|end| end.reason), bytes)
    };
    let all = recovery.processes.iter().map(|process| (process.record.proc_id.as_str(), one(process)));
    all.map(|(proc_id, (reason, bytes))| (proc_id, reason, bytes)).collect()
}

#[test]
fn the_next_broker_finds_processes_with_their_ends_and_output() {
    let scratch = Scratch::new("next");
    let (state, _) = open(&scratch, LIMITS);
    live(&state, "p_done", b"all of it");
    live(&state, "p_gone", b"removed");
    state.removed("p_gone").unwrap();
    let scribe = Scribe::start().unwrap();
    let output = state.output("p_open", BOUNDS, &scribe);
    state.started(started("p_open")).unwrap();
    let _ = output.append(Stream::Stderr, b"so far");
    persist(&output);
    drop(state);
    let (_state, recovery) = open(&scratch, LIMITS);
    let expected = [("p_done", Some(Reason::Exit), b"all of it".to_vec()), ("p_open", None, b"so far".to_vec())];
    assert_eq!(found(&recovery), expected);
    assert_eq!(recovery.processes[0].record, started("p_done"));
    assert_eq!(recovery.processes[0].output.totals().total_bytes, 9);
    assert!(recovery.warnings.is_empty() && recovery.skipped_lines == 0);
}

#[test]
fn a_living_brokers_directory_is_its_own() {
    let scratch = Scratch::new("two");
    let (first, _) = open(&scratch, LIMITS);
    live(&first, "p_1", b"mine");
    let (second, recovery) = open(&scratch, LIMITS);
    assert!(recovery.processes.is_empty() && recovery.warnings.is_empty());
    second.removed("p_1").unwrap();
    drop(first);
    let again = second.recover();
    assert_eq!(found(&again), [("p_1", Some(Reason::Exit), b"mine".to_vec())]);
    let (_third, none) = open(&scratch, LIMITS);
    assert!(none.processes.is_empty(), "the second holds what it adopted");
}

#[test]
fn what_is_removed_is_gone_with_its_directory() {
    let scratch = Scratch::new("removed");
    let (first, _) = open(&scratch, LIMITS);
    live(&first, "p_1", b"mine");
    drop(first);
    let (second, recovery) = open(&scratch, LIMITS);
    assert_eq!((recovery.processes.len(), brokers(&scratch).len()), (1, 2));
    second.removed("p_1").unwrap();
    assert_eq!(brokers(&scratch).len(), 1);
}

#[test]
fn garbage_in_a_journal_is_skipped_and_counted() {
    let scratch = Scratch::new("garbage");
    let (state, _) = open(&scratch, LIMITS);
    live(&state, "p_1", b"one");
    let path = brokers(&scratch)[0].join(journal::NAME);
    drop(state);
    let mut text = std::fs::read(&path).unwrap();
    let end = text.len();
    text.extend_from_slice(b"\xff\xfe\0garbage\n{\"record\":\"unheard_of\"}\n");
    let mut torn = serde_json::to_vec(&Record::Started(started("p_torn"))).unwrap();
    torn.truncate(30);
    text.extend_from_slice(&torn);
    std::fs::write(&path, &text).unwrap();
    let (state, recovery) = open(&scratch, LIMITS);
    assert_eq!((recovery.processes.len(), recovery.skipped_lines), (1, 3));
    drop(state);
    for cut in 0..end {
        std::fs::write(&path, &text[..cut]).unwrap();
        let told = journal::read(&Folder::open(path.parent().unwrap()).unwrap());
        assert!(matches!(told, Told::Records { .. }), "cut at {cut}: {told:?}");
    }
}

#[test]
fn what_is_strange_is_left_alone_with_a_warning() {
    let newer = |path: &PathBuf| std::fs::write(path, "{\"stockade\":2}\n").unwrap();
    let other = |path: &PathBuf| std::fs::write(path, "not ours\n").unwrap();
    let linked = |path: &PathBuf| std::os::unix::fs::symlink("/etc/passwd", path).unwrap();
    let fifo = |path: &PathBuf| nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let directory = |path: &PathBuf| std::fs::create_dir(path).unwrap();
    let swaps: [(&str, &Swap); 5] =
        [("newer", &newer), ("other", &other), ("linked", &linked), ("fifo", &fifo), ("directory", &directory)];
    for (name, swap) in swaps {
        let scratch = Scratch::new(name);
        let (state, _) = open(&scratch, LIMITS);
        live(&state, "p_1", b"one");
        let home = brokers(&scratch)[0].clone();
        drop(state);
        std::fs::remove_file(home.join(journal::NAME)).unwrap();
        swap(&home.join(journal::NAME));
        let (_state, recovery) = open(&scratch, Limits { retention: Duration::ZERO, max_bytes: 0 });
        assert_eq!((recovery.processes.len(), recovery.warnings.len()), (0, 1), "{name}: {recovery:?}");
        assert!(home.join("p_1.0.log").exists() && home.join(journal::NAME).symlink_metadata().is_ok(), "{name}");
    }
}

#[test]
fn an_agents_directory_that_is_a_link_or_no_directory_is_refused() {
    let scratch = Scratch::new("link");
    let elsewhere = Scratch::new("elsewhere");
    std::os::unix::fs::symlink(&elsewhere.0, scratch.0.join("coder")).unwrap();
    assert!(State::open(&scratch.0, "coder", Path::new("/project"), LIMITS).is_err());
    assert_eq!(std::fs::read_dir(&elsewhere.0).unwrap().count(), 0);
    for agent in ["", "..", "a/b", ".hidden"] {
        assert!(
            State::open(&scratch.0, agent, Path::new("/project"), LIMITS)
                .unwrap_err()
                .contains("cannot name a directory")
        );
    }
}

#[test]
fn nowhere_still_runs_and_says_why() {
    let state = State::nowhere("the disk is read-only", LIMITS);
    live(&state, "p_1", b"in memory");
    assert_eq!(state.trouble().as_deref(), Some("the disk is read-only"));
    assert!(state.recover().processes.is_empty());
}

#[test]
fn a_sweep_takes_what_is_old_then_the_oldest_of_too_much() {
    let scratch = Scratch::new("sweep");
    let (state, _) = open(&scratch, Limits { max_bytes: 2_500, ..LIMITS });
    for proc_id in ["p_1", "p_2", "p_3"] {
        live(&state, proc_id, &[b'x'; 1000]);
    }
    let now = Instant::now();
    assert_eq!(state.sweep(now).proc_ids, ["p_1"]);
    assert_eq!(state.sweep(now).proc_ids, [""; 0]);
    assert_eq!(state.sweep(now + LIMITS.retention + Duration::from_secs(60)).proc_ids.len(), 2);
    let files = std::fs::read_dir(&brokers(&scratch)[0]).unwrap();
    let logs = files.filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|name| name == "log"));
    assert_eq!(logs.count(), 0);
}

#[test]
fn files_from_the_future_are_new_and_old_ones_are_swept() {
    let scratch = Scratch::new("future");
    let (state, _) = open(&scratch, LIMITS);
    live(&state, "p_future", b"later");
    live(&state, "p_old", b"earlier");
    let home = brokers(&scratch)[0].clone();
    drop(state);
    let date = |name: &str, time: SystemTime| {
        std::fs::File::options().append(true).open(home.join(name)).unwrap().set_modified(time).unwrap();
    };
    date("p_future.0.log", SystemTime::now() + Duration::from_secs(1_000_000));
    date("p_old.0.log", SystemTime::now() - Duration::from_secs(1_000_000));
    let (state, _) = open(&scratch, LIMITS);
    assert_eq!(state.sweep(Instant::now()).proc_ids, ["p_old"]);
}

#[test]
fn a_journal_is_written_anew_when_most_of_it_is_about_the_removed() {
    let scratch = Scratch::new("compact");
    let folder = Arc::new(Folder::open(&scratch.0).unwrap());
    let mut journal = Journal::new(Arc::clone(&folder));
    journal.write(&Record::Started(started("p_stays"))).unwrap();
    for count in 0..2_000 {
        let proc_id = format!("p_{count}");
        journal.write(&Record::Started(started(&proc_id))).unwrap();
        journal.write(&Record::Ended(ended(&proc_id, 0))).unwrap();
        journal.write(&Record::Removed { proc_id }).unwrap();
    }
    let Told::Records { records, skipped } = journal::read(&folder) else { panic!("a journal") };
    assert!(records.len() < 4_096 && skipped == 0, "{} records", records.len());
    assert_eq!(records[0], Record::Started(started("p_stays")));
}

#[test]
fn ids_are_sixteen_digits_and_differ() {
    let (one, other) = (new_id("p"), new_id("p"));
    assert_ne!(one, other);
    let digits = one.strip_prefix("p_").unwrap();
    assert!(digits.len() == 16 && digits.chars().all(|digit| matches!(digit, 'a'..='z' | '2'..='7')));
}

#[test]
fn a_recording_counts_towards_the_size_and_goes_with_its_process() {
    let scratch = Scratch::new("recorded");
    let limits = Limits { max_bytes: 1000, ..LIMITS };
    let (state, _) = open(&scratch, limits);
    live(&state, "p_old", b"small");
    let recording = state.transcript("p_old").unwrap();
    std::fs::write(&recording, [b'x'; 2000]).unwrap();
    live(&state, "p_new", b"small too");
    assert_eq!(state.deleted(), Deleted::default());
    let swept = state.sweep(Instant::now());
    assert_eq!(swept.proc_ids, ["p_old"]);
    assert!(swept.bytes >= 2000 && !recording.exists());
    assert_eq!(state.deleted(), Deleted { processes: 1, bytes: swept.bytes });
    let kept = state.transcript("p_new").unwrap();
    std::fs::write(&kept, [b'x'; 10]).unwrap();
    drop(state);
    let (state, recovery) = open(&scratch, limits);
    assert_eq!(found(&recovery).len(), 1);
    std::fs::write(&kept, [b'x'; 2000]).unwrap();
    assert_eq!(state.sweep(Instant::now()).proc_ids, ["p_new"], "also of an earlier broker");
    assert!(!kept.exists());
}

#[test]
fn finished_processes_beyond_the_number_go_the_oldest_first() {
    let scratch = Scratch::new("many");
    let (state, _) = open(&scratch, LIMITS);
    let scribe = Scribe::start().unwrap();
    let ids: Vec<String> = (0..MAX_KEPT + 3).map(|number| format!("p_{number:05}")).collect();
    for id in &ids {
        state.output(id, BOUNDS, &scribe).close();
        state.ended(ended(id, 0)).unwrap();
    }
    let mut gone = state.sweep(Instant::now()).proc_ids;
    gone.sort();
    assert_eq!(gone, ids[..3]);
    assert!(state.sweep(Instant::now()).proc_ids.is_empty());
}

#[test]
fn looking_takes_no_lock_and_changes_nothing() {
    let scratch = Scratch::new("look");
    let (state, _) = open(&scratch, LIMITS);
    live(&state, "p_1", b"seen");
    let look = || {
        let found = look::brokers(&scratch.0).unwrap();
        let processes: Vec<_> = found.iter().flat_map(|found| found.processes().unwrap()).collect();
        let of =
            |process: &super::Recovered| (process.record.proc_id.clone(), process.output.bytes(0, 99, Filter::All).0);
        processes.iter().map(of).collect::<Vec<_>>()
    };
    let expected = [("p_1".to_owned(), b"seen".to_vec())];
    assert_eq!(look(), expected, "of a living broker");
    drop(state);
    assert_eq!(look(), expected, "of a dead one");
    let (_next, recovery) = open(&scratch, LIMITS);
    assert_eq!(found(&recovery), [("p_1", Some(Reason::Exit), b"seen".to_vec())]);
}

#[test]
fn what_was_done_in_one_project_is_not_shown_in_another() {
    let scratch = Scratch::new("projects");
    let (state, _) = open(&scratch, LIMITS);
    live(&state, "p_one", b"of this project");
    drop(state);
    let other = State::open(&scratch.0, "coder", Path::new("/elsewhere"), LIMITS).unwrap();
    assert!(other.recover().processes.is_empty());
    let (_state, recovery) = open(&scratch, LIMITS);
    assert_eq!(recovery.processes.len(), 1, "and it is still there for its own");
}
