//! The server's own life: however it ends, it ends soon and nothing is left.

use crate::ends::{children_of, eventually, marker, processes_with};
use crate::mcp::Client;
use crate::server::PATIENCE;
use crate::site::Site;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use std::time::{Duration, Instant};

/// SDK clients send SIGTERM two seconds after they hang up.
const PROMPTLY: Duration = Duration::from_secs(2);

/// A server in the middle of everything: a deaf process with a daemon, a terminal, a run, a read that waits.
fn busy(site: &Site, marker: &str) -> Client {
    let mut client = site.open();
    let probe = site.probe_path();
    let script = format!("setsid {probe} deaf {marker} >/dev/null & exec {probe} deaf {marker}");
    let proc_id =
        client.ok("proc_start", json!({ "command": script, "initial_read_timeout_ms": 0 }))["proc_id"].clone();
    let in_terminal = format!("exec -a {marker} sleep 1000");
    client.ok("proc_start", json!({ "command": in_terminal, "pty": true, "initial_read_timeout_ms": 0 }));
    client.begin("run", json!({ "command": format!("exec -a {marker} sleep 1000") }));
    client.begin("proc_read", json!({ "proc_id": proc_id, "until": "never", "timeout_ms": 10_000 }));
    eventually("all run", PATIENCE, || processes_with(marker).len() == 4);
    client
}

/// What ends a server, and its exit code.
type End = (&'static str, fn(&mut Client), Option<i32>);

const ENDS: &[End] = &[
    ("end of input", |client| client.hang_up(), Some(0)),
    (
        "end of input in the middle of a message",
        |client| {
            client.raw(b"{\"jsonrpc\":\"2.0\",\"id\":5,\"meth");
            client.hang_up();
        },
        Some(0),
    ),
    ("SIGTERM", |client| client.signal(Signal::SIGTERM), None),
    ("SIGINT", |client| client.signal(Signal::SIGINT), None),
    ("SIGHUP", |client| client.signal(Signal::SIGHUP), None),
    (
        "nobody reads its answers any more",
        |client| {
            client.stop_listening();
            client.say(&json!({ "jsonrpc": "2.0", "id": "last", "method": "ping" }));
        },
        None,
    ),
];

#[test]
fn however_it_ends_it_ends_soon_and_nothing_is_left() {
    // BR-28 and BR-29.
    let site = Site::new();
    for (what, end, code) in ENDS {
        let marker = marker();
        let mut client = busy(&site, &marker);
        let broker = client.pid();
        let begun = Instant::now();
        end(&mut client);
        let status = client.wait(PATIENCE);
        let took = begun.elapsed();
        assert!(took < PROMPTLY, "{what}: {took:?}");
        assert!(code.is_none() || status.code() == *code, "{what}: {status}: {}", client.log());
        assert!(status.code().is_some_and(|code| code < 125), "{what}: no crash: {status}: {}", client.log());
        site.nothing_is_left(broker, &marker);
    }
}

#[test]
fn an_end_before_the_first_word_is_clean() {
    let site = Site::new();
    let ends: [fn(&mut Client); 2] = [
        |client| client.hang_up(),
        |client| {
            client.raw(b"{\"jsonrpc\"");
            client.hang_up();
        },
    ];
    for end in ends {
        let mut client = site.open_silent();
        end(&mut client);
        let status = client.wait(PROMPTLY);
        assert_eq!(status.code(), Some(0), "{}", client.log());
    }
}

#[test]
fn a_reader_that_has_left_and_a_flood_of_answers_end_it_too() {
    let (site, marker) = (Site::new(), marker());
    let mut client = busy(&site, &marker);
    let broker = client.pid();
    let ping = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n".repeat(2000);
    client.raw_deaf(&ping, Duration::from_millis(300));
    client.stop_listening();
    client.wait(PROMPTLY);
    site.nothing_is_left(broker, &marker);
}

#[test]
fn a_signal_while_the_client_neither_reads_nor_writes_ends_it() {
    let (site, marker) = (Site::new(), marker());
    let mut client = busy(&site, &marker);
    let broker = client.pid();
    let run = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    client.raw_deaf(format!("{run}\n").repeat(200).as_bytes(), Duration::from_millis(300));
    client.signal(Signal::SIGTERM);
    client.wait(PROMPTLY);
    site.nothing_is_left(broker, &marker);
}

#[test]
fn killing_the_server_leaves_nothing() {
    let site = Site::new();
    for _ in 0..3 {
        let marker = marker();
        let mut client = busy(&site, &marker);
        let broker = client.pid();
        client.kill();
        site.nothing_is_left(broker, &marker);
    }
}

#[test]
fn killing_the_launcher_is_told_and_leaves_nothing() {
    let (site, marker) = (Site::new(), marker());
    let mut client = site.open();
    let script = format!("exec -a {marker} sleep 1000");
    let arguments = json!({ "command": script, "initial_read_timeout_ms": 0 });
    let proc_id = client.ok("proc_start", arguments)["proc_id"].clone();
    eventually("it runs", PATIENCE, || processes_with(&marker).len() == 1);
    let broker = client.pid();
    for launcher in children_of(broker) {
        kill(Pid::from_raw(launcher as i32), Signal::SIGKILL).expect("the launcher is there");
    }
    eventually("its processes die with it", PROMPTLY, || processes_with(&marker).is_empty());
    // The server either says what is wrong or ends; it never hangs.
    let call = client.begin("run", json!({ "argv": ["true"] }));
    match client.message_within(Duration::from_secs(10), |message| message["id"] == call) {
        Some(answer) => {
            let content = client.content("run", &answer);
            let read = client.ok("proc_read", json!({ "proc_id": proc_id, "timeout_ms": 2000 }));
            assert_eq!(read["state"], "exited", "{read}");
            let ran = content["exit_code"] == 0;
            assert!(ran || content["error"]["code"] == "SANDBOX_UNAVAILABLE", "{content}");
            client.hang_up();
        }
        None => assert!(client.log().len() > "stderr: ".len(), "it says why"),
    }
    client.wait(PATIENCE);
    site.nothing_is_left(broker, &marker);
}

#[test]
fn daemons_die_with_the_command_that_started_them() {
    // TM-02.
    let (site, marker) = (Site::new(), marker());
    let mut client = site.open();
    let probe = site.probe_path();
    let script = format!("(setsid nohup {probe} deaf {marker} >/dev/null 2>&1 </dev/null &) ; exit 5");
    let ran = client.ok("run", json!({ "command": script }));
    assert_eq!(ran["exit_code"], 5);
    assert_eq!(processes_with(&marker), Vec::<u32>::new());
}

#[test]
fn a_stopped_launcher_or_init_stretches_no_deadline_and_silences_nobody() {
    // TM-09.
    let (site, marker) = (Site::new(), marker());
    let mut client = site.open();
    let arguments =
        json!({ "argv": [site.probe_path(), "deaf", marker], "timeout_ms": 1500, "initial_read_timeout_ms": 0 });
    let proc_id = client.ok("proc_start", arguments)["proc_id"].clone();
    eventually("it runs", PATIENCE, || processes_with(&marker).len() == 1);
    let command = processes_with(&marker)[0];
    let status = std::fs::read_to_string(format!("/proc/{command}/status")).expect("it runs");
    let init: i32 =
        status.lines().find_map(|line| line.strip_prefix("PPid:")).expect("a parent").trim().parse().expect("a number");
    let launcher = children_of(client.pid());
    for pid in launcher.iter().map(|pid| *pid as i32).chain([init]) {
        kill(Pid::from_raw(pid), Signal::SIGSTOP).expect("it is there");
    }
    let begun = Instant::now();
    assert!(client.request("ping", json!({}))["result"].is_object());
    assert!(client.ok("proc_list", json!({}))["processes"].is_array());
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    let read = client.ok("proc_read", json!({ "proc_id": proc_id, "until": "never", "timeout_ms": 10_000 }));
    assert_eq!((&read["state"], &read["reason"]), (&json!("exited"), &json!("timeout")), "{read}");
    assert_eq!(processes_with(&marker), Vec::<u32>::new());
    for pid in launcher {
        kill(Pid::from_raw(pid as i32), Signal::SIGCONT).expect("it is there");
    }
    assert_eq!(client.ok("run", json!({ "argv": ["echo", "on"] }))["stdout"], "on\n");
}

#[test]
fn calls_cancelled_at_any_moment_leave_nothing() {
    // TM-16 and BX-05, with moments from a fixed sequence.
    let (site, marker) = (Site::new(), marker());
    let mut client = site.open();
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..120 {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        let call = client.begin("run", json!({ "command": format!("exec -a {marker} sleep 1000") }));
        let moment = Instant::now() + Duration::from_micros(seed % 4000);
        client.message_within(moment - Instant::now(), |_| false);
        client.cancel(call);
    }
    assert_eq!(client.ok("run", json!({ "argv": ["echo", "on"] }))["stdout"], "on\n");
    eventually("all are gone", PROMPTLY, || processes_with(&marker).is_empty());
    eventually("none is left half registered", PROMPTLY, || {
        client.ok("proc_list", json!({ "state": "running" }))["processes"] == json!([])
    });
    let broker = client.pid();
    client.hang_up();
    client.wait(PROMPTLY);
    site.nothing_is_left(broker, &marker);
}
