//! The chain holds against every change of a byte, and the writer against a full queue and a dead predecessor.

use super::*;
use crate::broker::refused::Code;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("stockade-audit-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a scratch directory");
        Scratch(path)
    }

    fn current(&self) -> PathBuf {
        self.0.join(files::CURRENT)
    }

    fn intact(&self) -> verify::Report {
        let report = verify::directory(&self.0).expect("a log");
        assert!(report.is_intact(), "{:?}", report.findings);
        report
    }

    /// What verification says of the log with this text in place of its current file.
    fn found_with(&self, bytes: &[u8]) -> Vec<String> {
        fs::write(self.current(), bytes).expect("a log");
        verify::directory(&self.0).expect("a log").findings.iter().map(ToString::to_string).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn redactor() -> Redactor {
    let environment = crate::policy::Environment { pass: Vec::new(), set: Vec::new(), redact: vec!["*TOKEN*".into()] };
    Redactor::new("tester", &environment, &[])
}

fn record(number: u64) -> Arc<Record> {
    let mut call = Call::new(format!("c-{number}"), "run");
    call.subject = Subject::Argv(vec!["echo".into(), format!("number {number}\u{1b}[31m")]);
    call.decision =
        if number.is_multiple_of(3) { Decision::Refused(Code::CommandNotAllowed) } else { Decision::Allowed };
    Arc::new(redactor().clean(call))
}

fn write(scratch: &Scratch, numbers: std::ops::Range<u64>) {
    let audit = Audit::open(&scratch.0);
    for number in numbers {
        audit.record(record(number));
    }
}

#[test]
fn the_chain_goes_on_over_restarts() {
    let scratch = Scratch::new();
    write(&scratch, 0..5);
    write(&scratch, 5..9);
    let report = scratch.intact();
    assert_eq!((report.lines, report.calls, report.last_seq, report.files), (9, 9, 9, 1));
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(scratch.current()).expect("a log").permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_flip_of_any_byte_of_any_line_is_found() {
    let scratch = Scratch::new();
    write(&scratch, 0..4);
    let whole = fs::read(scratch.current()).expect("a log");
    let mut state = 1_u64;
    for at in 0..whole.len() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut changed = whole.clone();
        changed[at] ^= ((state >> 33) as u8).max(1);
        let found = scratch.found_with(&changed);
        assert!(!found.is_empty(), "byte {at} of {}: {}", whole.len(), String::from_utf8_lossy(&changed[at..=at]));
        let line = 1 + whole[..at].iter().filter(|byte| **byte == b'\n').count();
        let named =
            found.iter().any(|text| text.contains(&format!("{}:{line}:", files::CURRENT)) || text.contains("end"));
        assert!(named, "byte {at} in line {line}: {found:?}");
    }
    assert!(scratch.found_with(&whole).is_empty(), "the control: unchanged it is whole");
}

#[test]
fn removed_repeated_reordered_and_foreign_lines_are_named() {
    let scratch = Scratch::new();
    write(&scratch, 0..5);
    let whole = fs::read_to_string(scratch.current()).expect("a log");
    let lines: Vec<&str> = whole.lines().collect();
    let put = |order: &[usize]| order.iter().map(|at| format!("{}\n", lines[*at])).collect::<String>();
    let cases = [
        (put(&[0, 1, 3, 4]), "audit.jsonl:3: seq 4: the lines seq 3 to 3 are missing before it"),
        (put(&[1, 2, 3, 4]), "audit.jsonl:1: seq 2: the lines up to seq 1 are missing before it"),
        (put(&[0, 1, 2]), "audit.jsonl:0: the lines seq 4 to 5 are missing at the end"),
        (String::new(), "audit.jsonl:0: the lines seq 1 to 5 are missing at the end"),
        (put(&[0, 2, 1, 3, 4]), "audit.jsonl:3: seq 2: out of order: it stands after seq 3"),
        (put(&[0, 1, 1, 2, 3, 4]), "audit.jsonl:3: seq 2: out of order: it stands after seq 2"),
        (put(&[0, 1]) + "{}\n" + &put(&[2, 3, 4]), "audit.jsonl:3: not a line of this log"),
    ];
    for (text, expected) in cases {
        let found = scratch.found_with(text.as_bytes());
        assert!(found.iter().any(|finding| finding == expected), "{expected}: {found:?}");
    }
}

#[test]
fn a_line_with_a_true_hash_of_its_own_does_not_pass_as_part_of_the_chain() {
    let scratch = Scratch::new();
    write(&scratch, 0..5);
    let whole = fs::read_to_string(scratch.current()).expect("a log");
    let lines: Vec<&str> = whole.lines().collect();
    let mut forged = Vec::new();
    let line::Reading::Sealed(second) = line::read(lines[1].as_bytes()) else { panic!("a sealed line") };
    let mut link = second.link;
    line::write(&mut forged, &mut link, &*record(99)).expect("a line");
    let mut text = format!("{}\n{}\n", lines[0], lines[1]).into_bytes();
    text.extend(forged);
    text.extend(format!("{}\n{}\n", lines[3], lines[4]).into_bytes());
    let found = scratch.found_with(&text);
    assert_eq!(found, ["audit.jsonl:4: seq 4: it does not follow the line before: one of them was put in later"]);
}

#[test]
fn lines_cut_off_before_a_restart_stay_missing_after_it() {
    let scratch = Scratch::new();
    write(&scratch, 0..5);
    let whole = fs::read_to_string(scratch.current()).expect("a log");
    let kept: String = whole.lines().take(3).map(|line| format!("{line}\n")).collect();
    fs::write(scratch.current(), kept).expect("a log");
    write(&scratch, 5..8);
    let report = verify::directory(&scratch.0).expect("a log");
    let found: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    assert_eq!(found, ["audit.jsonl:4: seq 6: the lines seq 4 to 5 are missing before it"]);
}

#[test]
fn a_torn_line_is_closed_off_and_told_wherever_it_was_torn() {
    let scratch = Scratch::new();
    write(&scratch, 0..3);
    let whole = fs::read(scratch.current()).expect("a log");
    let second_end = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(1).expect("two lines").0 + 1;
    let head = scratch.0.join(files::HEAD);
    for length in second_end..whole.len() {
        fs::write(scratch.current(), &whole[..length]).expect("a log");
        // As a broker leaves it that was killed before it could name its last line.
        fs::write(&head, format!("{{\"seq\":1,\"hash\":\"{}\"}}", hash_of(&whole, 0))).expect("a head");
        write(&scratch, 7..9);
        let report = scratch.intact();
        let torn = u64::from(length > second_end && length < whole.len() - 1);
        let kept = if length == whole.len() - 1 { 3 } else { 2 };
        assert_eq!((report.torn, report.calls), (torn, kept + 2), "torn at {length}");
    }
}

fn hash_of(log: &[u8], line: usize) -> String {
    match line::read(log.split(|byte| *byte == b'\n').nth(line).expect("a line")) {
        line::Reading::Sealed(sealed) => sealed.link.hash,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_torn_line_that_was_changed_afterwards_is_found() {
    let scratch = Scratch::new();
    write(&scratch, 0..2);
    let mut text = fs::read(scratch.current()).expect("a log");
    text.extend(b"{\"v\":1,\"seq\":3,\"pre");
    fs::write(scratch.current(), &text).expect("a log");
    write(&scratch, 2..4);
    assert_eq!(scratch.intact().torn, 1);
    let whole = fs::read_to_string(scratch.current()).expect("a log");
    for changed in
        [whole.replace("\"seq\":3,\"pre\n", "\"seq\":4,\"pre\n"), whole.replace("{\"v\":1,\"seq\":3,\"pre\n", "")]
    {
        assert_ne!(changed, whole);
        assert!(!scratch.found_with(changed.as_bytes()).is_empty(), "{changed}");
    }
}

#[test]
fn files_are_put_away_by_size_and_the_oldest_deleted_with_a_word() {
    let scratch = Scratch::new();
    for number in 0..100 {
        let audit = Audit::with(&scratch.0, 2000, QUEUE_BYTES);
        audit.record(record(number));
        audit.record(record(number));
    }
    let report = scratch.intact();
    assert!(report.first_seq > 1, "the oldest are gone");
    assert!(report.files <= 17, "{}", report.files);
    let oldest = files::rotated(&scratch.0).expect("files").remove(0);
    fs::remove_file(&oldest).expect("it is there");
    assert!(!verify::directory(&scratch.0).expect("a log").is_intact(), "deleted by another it is missed");
}

#[test]
fn a_damaged_head_is_kept_and_the_log_goes_on() {
    let scratch = Scratch::new();
    write(&scratch, 0..3);
    for damage in ["", "{\"seq\":1}", "\0\0\0"] {
        fs::write(scratch.0.join(files::HEAD), damage).expect("a head");
        assert!(!verify::directory(&scratch.0).expect("a log").is_intact());
        write(&scratch, 3..5);
        scratch.intact();
    }
    fs::remove_file(scratch.0.join(files::HEAD)).expect("a head");
    assert!(!verify::directory(&scratch.0).expect("a log").is_intact(), "a missing head is found");
    assert!(scratch.0.join("audit.head.damaged-3").exists());
}

#[test]
fn a_full_queue_is_told_per_tool() {
    let scratch = Scratch::new();
    let audit = Audit::with(&scratch.0, log::ROTATE_AT, 4096);
    let held = hold_the_lock(&scratch);
    let mut sent = 0;
    while audit.lost() < 10 {
        audit.record(record(sent));
        sent += 1;
    }
    drop(held);
    drop(audit);
    let report = scratch.intact();
    assert_eq!(report.lost, 10);
    assert_eq!(report.calls + report.lost, sent);
}

fn hold_the_lock(scratch: &Scratch) -> nix::fcntl::Flock<fs::File> {
    let file = fs::OpenOptions::new().write(true).create(true).truncate(false).open(scratch.0.join(files::LOCK));
    nix::fcntl::Flock::lock(file.expect("a lock"), nix::fcntl::FlockArg::LockExclusive).expect("held")
}

#[test]
fn what_lies_in_the_way_is_told_and_nothing_is_followed() {
    let scratch = Scratch::new();
    let elsewhere = scratch.0.join("elsewhere");
    std::os::unix::fs::symlink(&elsewhere, scratch.current()).expect("a link");
    let audit = Audit::open(&scratch.0);
    audit.record(record(1));
    while audit.trouble().is_none() {
        std::thread::yield_now();
    }
    assert!(!elsewhere.exists(), "the link was followed");
    fs::remove_file(scratch.current()).expect("a link");
    while audit.trouble().is_some() {
        std::thread::yield_now();
    }
    drop(audit);
    let report = scratch.intact();
    assert_eq!(report.calls, 1, "nothing was lost");
    assert!(fs::read_to_string(scratch.current()).expect("a log").contains("\"kind\":\"gap\""));
}
