//! Telemetry counts right, never stops a call, and outlives whatever lies in the place of its file.

use super::*;
use crate::broker::answer::Reason;
use crate::broker::audit::{Call, Decision, Exit, Subject};
use rusqlite::Connection;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::AtomicU32;

struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("stockade-telemetry-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a scratch directory");
        Scratch(path)
    }

    fn open(&self) -> Telemetry {
        Telemetry::open(&self.0, "tester", Keep::default())
    }

    fn file(&self) -> PathBuf {
        self.0.join(FILE)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("a directory");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn redactor() -> Redactor {
    let environment = crate::policy::Environment { pass: Vec::new(), set: Vec::new(), redact: vec!["*TOKEN*".into()] };
    Redactor::new("tester", &environment, &[("A_TOKEN".into(), "geheimnis".into())])
}

fn record(tool: &'static str, decision: Decision, us: u64) -> Arc<Record> {
    let mut call = Call::new("c", tool);
    if tool == "run" {
        call.subject = Subject::Argv(vec!["/usr/bin/make".into(), "geheimnis".into()]);
        call.proc_id = Some("p-1".into());
        call.exit = Some(Exit { code: Some(0), signal: None, reason: Reason::Exit });
    }
    call.decision = decision;
    call.duration = Duration::from_micros(us);
    (call.bytes_in, call.bytes_out) = (40, 400);
    Arc::new(redactor().clean(call))
}

/// Waits for an answer without a runtime.
fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(future)
}

fn all() -> Which {
    Which { limit: MOST_CALLS, tool: None, outcome: Outcome::Any }
}

fn calls(telemetry: &Telemetry) -> usize {
    wait(telemetry.recent_calls(all())).expect("an answer").len()
}

#[test]
fn usage_is_counted_by_tool_and_code() {
    let scratch = Scratch::new();
    let telemetry = scratch.open();
    for us in 1..=100 {
        telemetry.record(record("run", Decision::Allowed, us * 1000));
    }
    telemetry.record(record("fs_read", Decision::Refused(Code::NotFound), 10));
    telemetry.record(record("fs_read", Decision::Refused(Code::NotFound), 10));
    let told = wait(telemetry.usage_stats(None)).expect("figures");
    let figure = |name: &str| told[name].as_i64().unwrap_or(-1);
    assert_eq!((figure("calls"), figure("failures"), figure("processes_started")), (102, 2, 100));
    assert_eq!((figure("bytes_in"), figure("tokens_in_estimate"), figure("tokens_out_estimate")), (4080, 1020, 10_200));
    assert_eq!(told["agent"], "tester");
    assert_eq!(told["failures_by_code"], serde_json::json!([{"code": "NOT_FOUND", "count": 2}]));
    assert_eq!(told["top_commands"], serde_json::json!([{"program": "make", "count": 100}]));
    let run = told["tools"].as_array().and_then(|tools| tools.iter().find(|tool| tool["tool"] == "run")).expect("run");
    assert_eq!((run["duration_p50_us"].as_i64(), run["duration_p95_us"].as_i64()), (Some(50_000), Some(95_000)));
    assert_eq!(run["duration_total_ms"], 5050);
    let later = SystemTime::now() + Duration::from_secs(60);
    assert_eq!(wait(telemetry.usage_stats(Some(later))).expect("figures")["calls"], 0);
}

#[test]
fn recent_calls_are_the_last_ones_without_secrets() {
    let scratch = Scratch::new();
    let telemetry = scratch.open();
    telemetry.record(record("run", Decision::Allowed, 1500));
    telemetry.record(record("fs_read", Decision::Refused(Code::NotFound), 10));
    telemetry.record(record("fs_stat", Decision::Allowed, 10));
    let ask = |which| wait(telemetry.recent_calls(which)).expect("calls");
    let tools: Vec<String> = ask(all()).iter().map(|call| call["tool"].as_str().unwrap_or("").to_owned()).collect();
    assert_eq!(tools, ["fs_stat", "fs_read", "run"]);
    let run = &ask(Which { tool: Some("run".into()), ..all() })[0];
    assert_eq!(run["summary"], "/usr/bin/make <redacted:A_TOKEN>");
    assert_eq!(
        (run["duration_ms"].as_i64(), run["exit_code"].as_i64(), run["reason"].as_str()),
        (Some(1), Some(0), Some("exit"))
    );
    let errors = ask(Which { outcome: Outcome::Errors, ..all() });
    assert_eq!((errors.len(), errors[0]["decision"].as_str()), (1, Some("NOT_FOUND")));
    assert_eq!(ask(Which { limit: 1, ..all() }).len(), 1);
    for limit in [0, MOST_CALLS + 1] {
        let refused = wait(telemetry.recent_calls(Which { limit, ..all() })).expect_err("out of bounds");
        assert_eq!(refused.code, Code::InvalidArgument);
    }
}

#[test]
fn feedback_is_checked_cleaned_and_stored() {
    let scratch = Scratch::new();
    let telemetry = scratch.open();
    let give = |text: &str, rating| wait(telemetry.feedback(&redactor(), text, rating)).map_err(|refused| refused.code);
    assert_eq!(give("good, but geheimnis", Some(4)), Ok(1));
    assert_eq!(give(&"é".repeat(LONGEST_FEEDBACK), None), Ok(2));
    for (text, rating) in
        [("", None), (" \n", None), (&*"x".repeat(LONGEST_FEEDBACK + 1), None), ("x", Some(0)), ("x", Some(6))]
    {
        assert_eq!(give(text, rating), Err(Code::InvalidArgument));
    }
    drop(telemetry);
    let database = Connection::open(scratch.file()).expect("a database");
    let kept: (String, i64) = database
        .query_row("SELECT text, rating FROM feedback", [], |row| Ok((row.get(0)?, row.get(1)?)))
        .expect("a row");
    assert_eq!(kept, ("good, but <redacted:A_TOKEN>".into(), 4));
    let mode = fs::metadata(scratch.file()).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn rows_and_age_are_bounded() {
    let scratch = Scratch::new();
    let telemetry = Telemetry::open(&scratch.0, "tester", Keep { calls: 50, age: Duration::from_secs(3600) });
    for _ in 0..1200 {
        telemetry.record(record("fs_stat", Decision::Allowed, 1));
    }
    let told = wait(telemetry.usage_stats(None)).expect("figures");
    assert_eq!(told["calls"], 50);
    drop(telemetry);
    let database = Connection::open(scratch.file()).expect("a database");
    database.execute("UPDATE calls SET at_ms = 5", []).expect("older rows");
    drop(database);
    let telemetry = scratch.open();
    telemetry.record(record("run", Decision::Allowed, 1));
    assert_eq!(calls(&telemetry), 1, "the others are too old");
}

/// A database with 300 calls, closed.
fn filled(scratch: &Scratch) {
    let telemetry = scratch.open();
    for _ in 0..300 {
        telemetry.record(record("run", Decision::Allowed, 1));
    }
    assert_eq!(calls(&telemetry), 300);
}

#[test]
fn a_damaged_file_is_set_aside_and_a_new_one_begun() {
    type Damage = fn(&Scratch);
    let damages: [(&str, Damage); 9] = [
        ("zero header", |s| overwrite(s, 0, &[0; 100])),
        ("text", |s| fs::write(s.file(), "this is no database").expect("a file")),
        ("flipped pages", |s| overwrite(s, 4096, &[0xa5; 30_000])),
        ("truncated to a page and a half", |s| {
            fs::File::options().write(true).open(s.file()).and_then(|f| f.set_len(6000)).expect("a file");
        }),
        ("truncated into the header", |s| {
            fs::File::options().write(true).open(s.file()).and_then(|f| f.set_len(50)).expect("a file");
        }),
        ("directory", |s| {
            fs::remove_file(s.file()).expect("a file");
            fs::create_dir(s.file()).expect("a directory");
        }),
        ("fifo", |s| {
            fs::remove_file(s.file()).expect("a file");
            nix::unistd::mkfifo(&s.file(), nix::sys::stat::Mode::from_bits_truncate(0o600)).expect("a FIFO");
        }),
        ("link", |s| {
            fs::rename(s.file(), s.0.join("elsewhere")).expect("a file");
            std::os::unix::fs::symlink(s.0.join("elsewhere"), s.file()).expect("a link");
        }),
        ("a fifo for a journal", |s| {
            let wal = s.0.join(format!("{FILE}-wal"));
            drop(fs::remove_file(&wal));
            nix::unistd::mkfifo(&wal, nix::sys::stat::Mode::from_bits_truncate(0o600)).expect("a FIFO");
        }),
    ];
    for (name, damage) in damages {
        let scratch = Scratch::new();
        filled(&scratch);
        damage(&scratch);
        let elsewhere = fs::read(scratch.0.join("elsewhere")).ok();
        let telemetry = scratch.open();
        telemetry.record(record("run", Decision::Allowed, 1));
        assert_eq!(calls(&telemetry), 1, "{name}: {:?}", telemetry.trouble());
        assert!(
            scratch.names().iter().any(|file| file.starts_with("telemetry.sqlite.damaged-1")),
            "{name}: {:?}",
            scratch.names()
        );
        assert_eq!(fs::read(scratch.0.join("elsewhere")).ok(), elsewhere, "{name}: the link was followed");
        assert_eq!(telemetry.trouble(), None, "{name}");
    }
}

fn overwrite(scratch: &Scratch, at: u64, bytes: &[u8]) {
    use std::os::unix::fs::FileExt;
    let file = fs::File::options().write(true).open(scratch.file()).expect("a file");
    file.write_all_at(bytes, at).expect("written");
}

#[test]
fn a_missing_journal_and_an_empty_file_are_no_damage() {
    let scratch = Scratch::new();
    filled(&scratch);
    for end in ["-wal", "-shm"] {
        drop(fs::remove_file(scratch.0.join(format!("{FILE}{end}"))));
    }
    let telemetry = scratch.open();
    assert_eq!(calls(&telemetry), 300);
    drop(telemetry);
    fs::write(scratch.file(), "").expect("a file");
    assert_eq!(calls(&scratch.open()), 0);
    assert!(!scratch.names().iter().any(|name| name.contains("damaged")), "{:?}", scratch.names());
}

#[test]
fn flipping_any_page_never_stops_telemetry() {
    let scratch = Scratch::new();
    filled(&scratch);
    let whole = fs::read(scratch.file()).expect("a file");
    for at in (0..whole.len()).step_by(whole.len() / 40) {
        let other = Scratch::new();
        let mut bytes = whole.clone();
        bytes[at..(at + 64).min(whole.len())].iter_mut().for_each(|byte| *byte ^= 0xff);
        fs::write(other.file(), bytes).expect("a file");
        let telemetry = other.open();
        telemetry.record(record("run", Decision::Allowed, 1));
        // A first answer may be the one that finds the damage.
        drop(wait(telemetry.usage_stats(None)));
        assert!(wait(telemetry.usage_stats(None)).is_ok(), "at {at}: {:?}", telemetry.trouble());
    }
}

#[test]
fn damaged_files_do_not_pile_up() {
    let scratch = Scratch::new();
    for _ in 0..12 {
        fs::write(scratch.file(), "no database").expect("a file");
        let telemetry = scratch.open();
        drop(wait(telemetry.usage_stats(None)));
    }
    let names = scratch.names();
    assert_eq!(names.iter().filter(|name| name.contains("damaged")).count(), 10, "{names:?}");
    assert_eq!(fs::read_to_string(scratch.file()).expect("a file"), "no database");
    let telemetry = scratch.open();
    let refused = wait(telemetry.usage_stats(None)).expect_err("no database");
    assert_eq!(refused.code, Code::IoError);
    assert!(refused.message.contains("look into them"), "{refused}");
}

#[test]
fn an_older_database_is_brought_on_and_a_newer_one_left_alone() {
    let scratch = Scratch::new();
    filled(&scratch);
    let change =
        |text: &str| Connection::open(scratch.file()).and_then(|file| file.execute_batch(text)).expect("a change");
    change("DROP TABLE feedback; PRAGMA user_version = 1");
    let telemetry = scratch.open();
    assert_eq!(calls(&telemetry), 300, "{:?}", telemetry.trouble());
    assert_eq!(wait(telemetry.feedback(&redactor(), "still here", None)), Ok(1));
    drop(telemetry);
    change("PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE)");
    let before = (fs::read(scratch.file()).expect("a file"), scratch.names());
    let telemetry = scratch.open();
    telemetry.record(record("run", Decision::Allowed, 1));
    let refused = wait(telemetry.usage_stats(None)).expect_err("no telemetry");
    assert!(refused.message.contains("version 99"), "{refused}");
    assert!(telemetry.trouble().is_some_and(|trouble| trouble.contains("version 99")));
    assert_eq!(telemetry.dropped(), 1);
    drop(telemetry);
    assert_eq!((fs::read(scratch.file()).expect("a file"), scratch.names()), before);
}

#[test]
fn a_foreign_database_is_not_written_to() {
    let scratch = Scratch::new();
    let foreign = Connection::open(scratch.file()).expect("a database");
    foreign.execute_batch("CREATE TABLE mine (x)").expect("a table");
    drop(foreign);
    let before = fs::read(scratch.file()).expect("a file");
    assert_eq!(calls(&scratch.open()), 0);
    assert_eq!(fs::read(scratch.0.join("telemetry.sqlite.damaged-1")).expect("set aside"), before);
}

#[test]
fn two_brokers_share_one_file() {
    let scratch = Scratch::new();
    let pair = [scratch.open(), scratch.open()];
    std::thread::scope(|scope| {
        for telemetry in &pair {
            scope.spawn(|| {
                for _ in 0..200 {
                    telemetry.record(record("run", Decision::Allowed, 1));
                    if telemetry.dropped() > 0 {
                        return;
                    }
                }
                assert!(wait(telemetry.usage_stats(None)).is_ok());
            });
        }
    });
    assert_eq!(pair.each_ref().map(Telemetry::dropped), [0, 0], "{:?}", pair.each_ref().map(Telemetry::trouble));
    assert_eq!(wait(pair[0].usage_stats(None)).expect("figures")["calls"], 400);
}

#[test]
fn a_file_set_aside_by_another_broker_is_let_go_of() {
    let scratch = Scratch::new();
    let telemetry = scratch.open();
    telemetry.record(record("run", Decision::Allowed, 1));
    assert_eq!(calls(&telemetry), 1);
    open::discard(&scratch.0).expect("set aside");
    telemetry.record(record("run", Decision::Allowed, 1));
    telemetry.record(record("run", Decision::Allowed, 1));
    assert_eq!(calls(&telemetry), 2, "in the new file");
    assert_eq!(telemetry.dropped(), 0);
}
