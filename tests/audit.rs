//! The books of calls: what a killed broker, a second one, a full or read-only disk and a meddler leave of them.
//!
//! `STOCKADE_TEST_KILLS` sets how often a writer is killed.

mod support;

use nix::mount::{MsFlags, mount, umount};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use stockade::broker::audit::{Call, Decision, Subject, files, verify};
use stockade::broker::books::Books;
use stockade::broker::refused::Code;
use stockade::policy::{Overrides, Policy};
use support::{Outcome, Scratch, is_root, stockade};

/// Tells a child of these tests where to write.
const CHILD: &str = "STOCKADE_TEST_AUDIT";

fn kills() -> usize {
    std::env::var("STOCKADE_TEST_KILLS").map_or(200, |text| text.parse().expect("STOCKADE_TEST_KILLS is a number"))
}

fn open(directory: &Path) -> Books {
    let workspace = Scratch::new();
    let policy = Policy::load(None, Some(workspace.path()), &Overrides::default()).expect("the default policy");
    Books::open(directory, &policy, &[("DEPLOY_TOKEN".into(), "hunter2hunter2".into())])
}

fn call(number: usize) -> Call {
    let mut call = Call::new(format!("c-{number}"), "run");
    let text = format!("echo {number} {}hunter2hunter2 && curl -u a:b https://x:y@z/", "x".repeat(number * 37 % 400));
    call.subject = Subject::Command(text);
    call.cwd = Some("/srv".into());
    call.env = vec![("API_KEY".into(), "value-of-the-key".into())];
    call.enforcement = Arc::from(["namespaces", "landlock", "seccomp", "cgroups"]);
    call.duration = Duration::from_micros(1500);
    if number.is_multiple_of(5) {
        call.decision = Decision::Refused(Code::CommandNotAllowed);
    }
    call
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(30), "not within 30 s: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn intact(directory: &Path) -> verify::Report {
    let report = verify::directory(directory).expect("a log");
    assert!(report.is_intact(), "{:?}", report.findings);
    report
}

fn size(directory: &Path) -> u64 {
    fs::metadata(directory.join(files::CURRENT)).map_or(0, |facts| facts.len())
}

/// Everything in the directory that a secret could have reached.
fn bytes_of_all(directory: &Path) -> Vec<u8> {
    let paths = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.is_file()).flat_map(|path| fs::read(path).expect("a file")).collect()
}

fn contains(bytes: &[u8], text: &str) -> bool {
    memchr::memmem::find(bytes, text.as_bytes()).is_some()
}

fn start_child(directory: &Path) -> Child {
    let program = std::env::current_exe().expect("this test");
    let mut command = Command::new(program);
    command.args(["--exact", "writes_until_it_is_killed", "--ignored"]).env(CHILD, directory);
    command.stdout(Stdio::null()).spawn().expect("a child")
}

#[test]
#[ignore = "the child of the tests that kill it"]
fn writes_until_it_is_killed() {
    let directory = PathBuf::from(std::env::var_os(CHILD).expect("a test that started this"));
    let books = open(&directory);
    for number in 0.. {
        books.enter(call(number));
    }
}

#[test]
fn killed_writers_leave_a_chain_that_goes_on() {
    let state = Scratch::new();
    for round in 0..kills() {
        let before = size(state.path());
        let mut child = start_child(state.path());
        // The moment differs: after some bytes of a line, a batch, many batches.
        let more = (round * 7919 % 50_000) as u64 + 1;
        eventually("the child writes", || size(state.path()) < before || size(state.path()) >= before + more);
        child.kill().expect("the child is there");
        child.wait().expect("the child is dead");
        // What a kill broke stays broken; looking now and then is enough to tell when.
        if round.is_multiple_of(20) {
            intact(state.path());
        }
    }
    let books = open(state.path());
    books.enter(call(1));
    assert!(wait(books.usage_stats(None)).expect("telemetry")["calls"].as_u64() > Some(0));
    assert_eq!(books.trouble(), Vec::<String>::new());
    drop(books);
    let report = intact(state.path());
    assert!(report.calls > kills() as u64, "{report:?}");
    let bytes = bytes_of_all(state.path());
    for secret in ["hunter2", "value-of-the-key", "x:y@", "a:b"] {
        assert!(!contains(&bytes, secret), "`{secret}` reached a file");
    }
    println!("{} calls, {} torn", report.calls, report.torn);
    assert_eq!(damaged(state.path()), 0, "no database was damaged by a kill");
}

fn damaged(directory: &Path) -> usize {
    let names = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").file_name());
    names.filter(|name| name.to_string_lossy().contains("damaged")).count()
}

#[test]
fn two_brokers_write_one_chain_and_one_is_killed() {
    let state = Scratch::new();
    let mut child = start_child(state.path());
    eventually("the child writes", || size(state.path()) > 100_000);
    let books = open(state.path());
    let mut entered = 0;
    let until = size(state.path()) + 1_000_000;
    while size(state.path()) < until {
        books.enter(call(entered));
        entered += 1;
        // Slower than the log: whatever is missing in it was lost.
        if entered.is_multiple_of(100) {
            wait(books.usage_stats(None)).expect("telemetry");
        }
    }
    child.kill().expect("the child is there");
    child.wait().expect("the child is dead");
    let after = entered + 100;
    (entered..after).for_each(|number| books.enter(call(number)));
    assert_eq!(books.audit.lost(), 0);
    drop(books);
    let report = intact(state.path());
    assert!(report.calls > after as u64, "both have written: {report:?}");
}

/// A file system of its own, for as long as the test runs.
struct Disk(Scratch);

impl Disk {
    fn mount(options: &str) -> Option<Disk> {
        if !is_root() {
            println!("skipped: mounting a small file system needs root");
            return None;
        }
        let place = Scratch::new();
        match mount(Some("tmpfs"), place.path(), Some("tmpfs"), MsFlags::empty(), Some(options)) {
            Ok(()) => Some(Disk(place)),
            Err(errno) => {
                println!("skipped: a small file system cannot be mounted here: {errno}");
                None
            }
        }
    }

    fn remount(&self, flags: MsFlags) {
        let flags = MsFlags::MS_REMOUNT | flags;
        mount(None::<&str>, self.0.path(), None::<&str>, flags, None::<&str>).expect("remounted");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = umount(self.0.path());
    }
}

#[test]
fn a_full_disk_is_told_and_nothing_is_lost_when_there_is_room_again() {
    let Some(disk) = Disk::mount("size=512k,mode=700") else { return };
    let (state, filler) = (disk.0.path().join("state"), disk.0.path().join("filler"));
    let books = open(&state);
    books.enter(call(0));
    eventually("the log is written", || size(&state) > 0);
    fs::write(&filler, vec![0; 1 << 20]).expect_err("the disk is full");
    let mut entered = 1;
    eventually("the trouble is told", || {
        books.enter(call(entered));
        entered += 1;
        books.audit.trouble().is_some_and(|trouble| trouble.contains("No space left"))
    });
    fs::remove_file(&filler).expect("room again");
    eventually("it is written again", || books.audit.trouble().is_none());
    books.enter(call(entered));
    entered += 1;
    drop(books);
    let report = intact(&state);
    assert_eq!((report.calls, report.lost), (entered as u64, 0));
    let text = fs::read_to_string(state.join(files::CURRENT)).expect("a log");
    assert!(text.contains("\"kind\":\"gap\"") && text.contains("No space left"), "the log says why");
}

#[test]
fn a_read_only_disk_is_told_and_nothing_is_lost_when_it_can_be_written_again() {
    let Some(disk) = Disk::mount("size=1m,mode=700") else { return };
    disk.remount(MsFlags::MS_RDONLY);
    let state = disk.0.path().join("state");
    let books = open(&state);
    (0..50).for_each(|number| books.enter(call(number)));
    let read_only = |trouble: &String| trouble.contains("Read-only file system");
    eventually("both say so", || books.trouble().iter().filter(|trouble| read_only(trouble)).count() == 2);
    let refused = wait(books.usage_stats(None)).expect_err("no telemetry");
    assert_eq!(refused.code, Code::IoError);
    disk.remount(MsFlags::empty());
    eventually("the log is written", || books.audit.trouble().is_none());
    eventually("telemetry is there", || wait(books.usage_stats(None)).is_ok());
    assert_eq!(books.trouble(), Vec::<String>::new());
    drop(books);
    assert_eq!(intact(&state).calls, 50);
}

struct Logs(Scratch);

impl Logs {
    fn audit(&self, words: &[&str]) -> Outcome {
        let output = Command::new(stockade()).arg("audit").args(words).env("XDG_STATE_HOME", self.0.path()).output();
        Outcome::new(&output.expect("stockade"))
    }

    fn directory(&self, agent: &str) -> PathBuf {
        self.0.path().join("stockade").join(agent)
    }
}

#[test]
fn the_command_line_shows_a_log_and_finds_a_changed_line() {
    let logs = Logs(Scratch::new());
    let directory = logs.directory("audit-tester");
    {
        let books = open(&directory);
        (0..30).for_each(|number| books.enter(call(number)));
        let mut hostile = Call::new("c-x", "fs_read");
        hostile.subject = Subject::Paths(vec!["a\nb\u{1b}[2J\u{9b}31m\u{202e}".into()]);
        books.enter(hostile);
    }
    let agent = ["--agent", "audit-tester"];
    let shown = logs.audit(&["show", "--last", "3", agent[0], agent[1]]);
    assert_eq!((shown.code, shown.stdout.lines().count()), (0, 4), "{shown:?}");
    assert!(shown.stdout.contains(r"a\nb\u{1b}[2J\u{9b}31m\u{202e}"), "{}", shown.stdout);
    let json = logs.audit(&["show", "--json", agent[0], agent[1]]);
    assert_eq!(json.stdout.lines().count(), 20);
    let last: serde_json::Value = serde_json::from_str(json.stdout.lines().last().expect("a line")).expect("JSON");
    assert_eq!(last["paths"][0], "a\nb\u{1b}[2J\u{9b}31m\u{202e}");
    assert!(!json.stdout.contains('\u{9b}') && !json.stdout.contains('\u{202e}'));

    let whole = logs.audit(&["verify", agent[0], agent[1]]);
    assert_eq!((whole.code, whole.stdout.contains("intact: 31 lines")), (0, true), "{whole:?}");
    let file = directory.join(files::CURRENT);
    let text = fs::read_to_string(&file).expect("a log");
    fs::write(&file, text.replacen("echo 7 ", "echo 8 ", 1)).expect("a log");
    let changed = logs.audit(&["verify", agent[0], agent[1]]);
    assert_eq!(changed.code, 1, "{changed:?}");
    assert!(changed.stdout.starts_with("audit.jsonl:8: seq 8: the line was changed"), "{changed:?}");
    let alone = logs.audit(&["verify", "--file", &file.display().to_string()]);
    assert_eq!(alone.code, 1, "{alone:?}");
}

#[test]
fn a_log_that_is_not_there_is_named_with_those_that_are() {
    let logs = Logs(Scratch::new());
    drop(open(&logs.directory("audit-one")));
    let unknown = logs.audit(&["verify", "--agent", "audit-none"]);
    assert_eq!(unknown.code, 125);
    assert!(
        unknown.stderr.contains("no audit log of `audit-none`") && unknown.stderr.contains("`audit-one`"),
        "{unknown:?}"
    );
    assert_eq!(logs.audit(&["show", "--file", "/nowhere"]).code, 125);
    assert_eq!(logs.audit(&["show", "--file", "x", "--agent", "y"]).code, 2);
    assert_eq!(logs.audit(&["show", "--last", "-1"]).code, 2);
}
