//! `logs`: exact bytes, of the living and the dead, and nothing is changed by reading.

use crate::desk::{Desk, ends, soon};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

#[test]
fn logs_are_the_exact_bytes_of_both_streams_or_one() {
    let desk = Desk::new();
    let mut server = desk.serve();
    let id = server.start("printf 'a\\0\\033[31mb\\n'; sleep 0.1; echo err >&2; sleep 0.1; seq 1 20000; sleep 100");
    server.until(&id, "\n20000\n");
    let numbers: String = (1..=20000).map(|number| format!("{number}\n")).collect();
    let all = desk.say(&["logs", &id[..8]]);
    assert_eq!((all.code, all.stdout), (0, format!("a\0\u{1b}[31mb\nerr\n{numbers}")));
    assert_eq!(desk.say(&["logs", &id, "--stream", "stderr"]).stdout, "err\n");
    assert_eq!(desk.say(&["logs", &id, "--tail", "2"]).stdout, "19999\n20000\n");
    assert_eq!(desk.say(&["logs", &id, "--tail", "0"]).stdout, "");
    assert_eq!(desk.say(&["logs", &id, "--stream", "stdout", "-n", "20001"]).stdout.len(), 9 + numbers.len());
}

#[test]
fn following_ends_with_the_process_and_misses_nothing() {
    let desk = Desk::new();
    let mut server = desk.serve();
    let id = server.start("echo first; read line; echo \"$line\"; seq 1 5000");
    let mut follower = desk.command(&["logs", "-f", &id]).stdout(Stdio::piped()).spawn().expect("stockade starts");
    let mut lines = BufReader::new(follower.stdout.take().expect("a pipe")).lines().map(|line| line.expect("UTF-8"));
    assert_eq!(lines.next().as_deref(), Some("first"), "at once, while it runs");
    server.call("proc_send", &serde_json::json!({ "proc_id": id, "input": "second" }));
    let rest: Vec<String> = lines.collect();
    assert_eq!(rest.len(), 5001);
    assert_eq!((rest[0].as_str(), rest[5000].as_str()), ("second", "5000"));
    assert_eq!(ends(&mut follower), 0);
}

#[test]
fn a_dead_brokers_output_is_read_and_left_where_it_is() {
    let desk = Desk::new();
    let mut server = desk.serve();
    let id = server.start("seq 1 3; sleep 100");
    server.until(&id, "3\n");
    server.kill();
    let files = || {
        let entries = std::fs::read_dir(&desk.brokers()[0]).expect("a directory").flatten();
        let mut names: Vec<_> =
            entries.map(|entry| (entry.file_name(), entry.metadata().map(|m| m.len()).ok())).collect();
        names.sort();
        names
    };
    let before = files();
    for _ in 0..2 {
        let logs = desk.say(&["logs", "--follow", &id]);
        assert_eq!((logs.code, logs.stdout.as_str()), (0, "1\n2\n3\n"), "{logs:?}");
    }
    assert_eq!(files(), before);
    let mut next = desk.serve();
    assert_eq!(next.call("proc_read", &serde_json::json!({ "proc_id": id, "cursor": 0 }))["output"], "1\n2\n3\n");
    assert_eq!(desk.say(&["logs", &id]).stdout, "1\n2\n3\n", "and from the broker that adopted it");
}

#[test]
fn unknown_and_ambiguous_names_say_what_there_is() {
    let desk = Desk::new();
    let mut server = desk.serve();
    let ids = [server.start("sleep 101"), server.start("sleep 102")];
    let unknown = desk.say(&["logs", "p_zzzz_not_there"]);
    assert_eq!(unknown.code, 1);
    assert!(unknown.stderr.contains("no process `p_zzzz_not_there`"), "{unknown:?}");
    let ambiguous = desk.say(&["stop", "p_"]);
    assert_eq!(ambiguous.code, 1, "{ambiguous:?}");
    assert!(ambiguous.stderr.contains("`p_` is the beginning of"), "{ambiguous:?}");
    assert_eq!(desk.ps(&[])[0]["running"], 2, "nothing was stopped");
    let attach = desk.say(&["attach", "nobody"]);
    assert_eq!(attach.code, 1, "{attach:?}");
    assert!(ids.iter().all(|id| desk.say(&["logs", id]).code == 0));
}

#[test]
fn a_reader_who_leaves_is_no_error() {
    let desk = Desk::new();
    let mut server = desk.serve();
    let id = server.start("seq 1 200000");
    soon("its end", || desk.ps(&["--all"])[0]["ended"] == 1);
    let mut logs = desk.command(&["logs", &id]).stdout(Stdio::piped()).spawn().expect("stockade starts");
    let mut first = String::new();
    BufReader::new(logs.stdout.take().expect("a pipe")).read_line(&mut first).expect("a line");
    assert_eq!(ends(&mut logs), 0);
}
