//! How commands end, and that each end is told truly: every reason, with everything the command started dead.

use crate::ends::{eventually, marker, processes_with};
use crate::mcp::Client;
use crate::server::PATIENCE;
use crate::site::Site;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

/// How a list tells of one process.
fn listed(client: &mut Client, proc_id: &Value) -> Value {
    let list = client.ok("proc_list", json!({}));
    let found = list["processes"].as_array().expect("a list").iter().find(|entry| entry["proc_id"] == *proc_id);
    found.unwrap_or_else(|| panic!("{proc_id} is not in {list}")).clone()
}

#[test]
fn an_exit_code_and_a_signal_are_told_as_they_are() {
    let site = Site::new();
    let mut client = site.open();
    for (script, exit_code, signal, reason) in [
        ("exit 0", json!(0), Value::Null, "exit"),
        ("exit 255", json!(255), Value::Null, "exit"),
        ("kill -SEGV $$", Value::Null, json!("SIGSEGV"), "signal"),
        ("kill -KILL $$", Value::Null, json!("SIGKILL"), "signal"),
        ("kill -USR1 $$", Value::Null, json!("SIGUSR1"), "signal"),
    ] {
        let ran = client.ok("run", json!({ "command": script }));
        assert_eq!((&ran["state"], &ran["reason"]), (&json!("exited"), &json!(reason)), "{script}: {ran}");
        assert_eq!((&ran["exit_code"], &ran["signal"]), (&exit_code, &signal), "{script}: {ran}");
    }
}

/// Commands that would go on for ever, each in its own way.
const STUBBORN: &[(&str, &str)] = &[
    ("it only waits", "exec -a MARKER sleep 1000"),
    ("it ignores every signal that can be ignored", "exec PROBE deaf MARKER"),
    ("it has stopped itself", "PROBE deaf MARKER & exec PROBE stop-everyone"),
    ("it moved to another session", "setsid nohup PROBE deaf MARKER >/dev/null 2>&1 & exec -a MARKER sleep 1000"),
    ("its pipe to a stopped reader is full", "yes MARKER | PROBE stop-everyone"),
];

fn script(site: &Site, text: &str, marker: &str) -> String {
    text.replace("MARKER", marker).replace("PROBE", &site.probe_path())
}

#[test]
fn nothing_outlives_its_time() {
    let site = Site::new();
    let mut client = site.open();
    for (what, text) in STUBBORN {
        let marker = marker();
        let start = Instant::now();
        let ran = client.ok("run", json!({ "command": script(&site, text, &marker), "timeout_ms": 700 }));
        let took = start.elapsed();
        assert_eq!(ran["reason"], "timeout", "{what}: {ran}");
        assert!((Duration::from_millis(700)..Duration::from_secs(5)).contains(&took), "{what}: {took:?}");
        assert_eq!(processes_with(&marker), Vec::<u32>::new(), "{what}");
    }
    let ran = client.ok("run", json!({ "argv": ["sleep", "0.3"], "timeout_ms": 20_000 }));
    assert_eq!(ran["reason"], "exit", "control");
}

#[test]
fn a_timeout_keeps_what_was_said_and_lets_the_command_clean_up() {
    let site = Site::new();
    let mut client = site.open();
    let text = "trap 'echo cleaned; exit 7' TERM; echo begun; sleep 1000 & wait";
    let ran = client.ok("run", json!({ "command": text, "timeout_ms": 400 }));
    assert_eq!((&ran["reason"], &ran["stdout"]), (&json!("timeout"), &json!("begun\ncleaned\n")), "{ran}");
    assert_eq!(ran["exit_code"], 7, "{ran}");
}

#[test]
fn silence_ends_a_command_and_talk_does_not() {
    let site = Site::with("[limits]\nidle_time = \"800ms\"");
    let mut client = site.open();
    let ran = client.ok("run", json!({ "command": "echo one; sleep 1000" }));
    assert_eq!((&ran["reason"], &ran["stdout"]), (&json!("idle_timeout"), &json!("one\n")), "{ran}");
    let ran = client.ok("run", json!({ "command": "for i in $(seq 8); do echo $i; sleep 0.2; done" }));
    assert_eq!((&ran["reason"], &ran["exit_code"]), (&json!("exit"), &json!(0)), "control: {ran}");
}

#[test]
fn memory_beyond_the_limit_is_reported_as_memory() {
    let site = Site::with("[limits]\nmemory = \"100M\"");
    let mut client = site.open();
    let ran = client.ok("run", json!({ "argv": [site.probe_path(), "allocate", "300"] }));
    assert_eq!((&ran["state"], &ran["reason"]), (&json!("exited"), &json!("memory")), "{ran}");
    let ran = client.ok("run", json!({ "argv": [site.probe_path(), "allocate", "30"] }));
    assert_eq!((&ran["reason"], &ran["exit_code"]), (&json!("exit"), &json!(0)), "control: {ran}");
}

#[test]
fn a_canceled_run_is_killed_with_everything_it_started() {
    let site = Site::new();
    let mut client = site.open();
    for (what, text) in STUBBORN {
        let marker = marker();
        let call = client.begin("run", json!({ "command": script(&site, text, &marker) }));
        eventually(what, PATIENCE, || !processes_with(&marker).is_empty());
        client.cancel(call);
        eventually(what, Duration::from_secs(4), || processes_with(&marker).is_empty());
        let list = client.ok("proc_list", json!({ "state": "exited" }));
        let ends: Vec<&Value> = list["processes"].as_array().expect("a list").iter().collect();
        assert_eq!(ends.last().expect("an entry")["reason"], "canceled", "{what}: {list}");
        let late = client.message_within(Duration::ZERO, |message| message["id"] == call);
        assert!(late.is_none_or(|late| late.get("result").is_none()), "{what}: a canceled call has no result");
    }
    assert_eq!(client.ok("run", json!({ "argv": ["echo", "on"] }))["stdout"], "on\n", "the server goes on");
}

#[test]
fn cancelling_too_late_or_twice_or_anothers_changes_nothing() {
    // BX-04 and BX-05.
    let (site, marker) = (Site::new(), marker());
    let (mut first, mut second) = (site.open(), site.open());
    let call = first.begin("run", json!({ "command": format!("exec -a {marker} sleep 1000") }));
    eventually("it runs", PATIENCE, || processes_with(&marker).len() == 1);
    second.cancel(call);
    assert_eq!(second.ok("run", json!({ "argv": ["echo", "second"] }))["stdout"], "second\n");
    assert_eq!(processes_with(&marker).len(), 1, "another client's cancellation is none");
    first.cancel(call);
    first.cancel(call);
    eventually("it is gone", Duration::from_secs(4), || processes_with(&marker).is_empty());
    let done = first.begin("run", json!({ "argv": ["echo", "done"] }));
    assert_eq!(first.finish("run", done)["stdout"], "done\n");
    first.cancel(done);
    first.cancel(999_999);
    assert_eq!(first.ok("run", json!({ "argv": ["echo", "on"] }))["stdout"], "on\n");
}

#[test]
fn a_stop_and_a_closed_session_are_told_apart() {
    let site = Site::new();
    let mut client = site.open();
    client.ok("session_open", json!({ "session": "room" }));
    let stopped = client.ok("run", json!({ "argv": ["sleep", "1000"], "background": true }))["proc_id"].clone();
    let closed =
        client.ok("run", json!({ "argv": ["sleep", "1000"], "background": true, "session": "room" }))["proc_id"]
            .clone();
    client.ok("proc_stop", json!({ "proc_id": stopped }));
    client.ok("session_close", json!({ "session": "room", "processes": "stop" }));
    assert_eq!(listed(&mut client, &stopped)["reason"], "stopped");
    assert_eq!(listed(&mut client, &closed)["reason"], "session_closed");
}

#[test]
fn what_cannot_be_executed_is_a_distinct_error_and_never_success() {
    // TM-12.
    let site = Site::new();
    let mut client = site.open();
    for (name, text, mode) in
        [("plain", "echo hi\n", 0o644), ("garbage", "neither", 0o755), ("stray", "#!/nonexistent/shell\n", 0o755)]
    {
        let path = site.workspace.file(name, text);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("a mode");
    }
    for (program, errno) in [
        ("./plain", "EACCES"),
        ("./garbage", "ENOEXEC"),
        ("./stray", "ENOENT"),
        ("./missing", "ENOENT"),
        ("no-such-program", "ENOENT"),
        ("/tmp", "EACCES"),
    ] {
        for tool in ["run", "proc_start"] {
            let answer = client.call(tool, json!({ "argv": [program] }));
            assert_eq!(answer["error"]["code"], "SPAWN_FAILED", "{program}: {answer}");
            assert_eq!(answer["error"]["details"]["errno"], errno, "{program}: {answer}");
            assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains(program)), "{answer}");
        }
    }
    let running = client.ok("proc_list", json!({ "state": "running" }));
    assert_eq!(running["processes"], json!([]), "nothing is left of it");
}

#[test]
fn an_end_that_races_its_deadline_is_told_once_and_truly() {
    // TM-05.
    let site = Site::new();
    let mut client = site.open();
    let mut timeouts = 0;
    for run in 0..60 {
        let seconds = format!("0.0{}", 45 + run % 30);
        let ran = client.ok("run", json!({ "argv": ["sleep", seconds], "timeout_ms": 60 }));
        match ran["reason"].as_str().expect("a reason") {
            "exit" => assert_eq!(ran["exit_code"], 0, "{ran}"),
            "timeout" => timeouts += 1,
            other => panic!("{other}: {ran}"),
        }
        assert_eq!(listed(&mut client, &ran["proc_id"])["reason"], ran["reason"], "told the same twice");
    }
    assert!(timeouts > 0);
}
