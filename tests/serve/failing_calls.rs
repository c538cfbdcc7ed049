//! System calls that fail, kill, or do less than asked: by `strace`, or by a library loaded before the server's own.
//!
//! The library is `shim.c`.

use crate::faults::{cat, talks, works_or_says_so};
use crate::mcp::{Client, Era, HANDSHAKE};
use crate::server::PATIENCE;
use crate::site::Site;
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

/// The server under `strace`, which makes calls fail or kills it.
fn under_strace(site: &Site, fault: &str) -> Command {
    let inside = site.command();
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("inject={fault}")]);
    command.arg(inside.get_program()).args(inside.get_args()).current_dir(site.workspace.path());
    for (name, value) in inside.get_envs() {
        command.env(name, value.expect("a value"));
    }
    command
}

#[test]
fn a_disk_that_fails_to_sync_is_said_or_survived_and_never_waited_for() {
    // CF-06.
    let site = Site::new();
    for fault in ["fsync,fdatasync,sync_file_range:error=EIO:when=1", "fsync,fdatasync,sync_file_range:error=EIO"] {
        let mut client = site.open_by(under_strace(&site, fault));
        for _ in 0..3 {
            works_or_says_so(&mut client, fault);
        }
        assert!(client.request("ping", json!({}))["result"].is_object(), "{fault}");
        client.hang_up();
        client.wait(PATIENCE);
    }
}

#[test]
fn killed_at_any_write_what_was_acknowledged_is_there_after_the_restart() {
    // CF-01: the write that kills it moves on from run to run.
    let site = Site::new();
    let mut killed = 0;
    for when in [3, 6, 9, 12, 15, 18, 22, 26, 30, 35, 40, 50] {
        let fault =
            format!("write,writev,pwrite64,pwritev,fsync,fdatasync,renameat,rename,renameat2:signal=KILL:when={when}");
        let mut client = Client::start(under_strace(&site, &fault), site.log(), Era::Handshake);
        let acknowledged = talk_until_it_dies(&mut client);
        killed += usize::from(acknowledged.len() < ROUNDS);
        client.hang_up();
        client.wait(PATIENCE);
        let mut next = site.open();
        let list = next.ok("proc_list", json!({}))["processes"].take();
        for told in acknowledged {
            let listed = list.as_array().expect("a list").iter().find(|entry| entry["proc_id"] == told["proc_id"]);
            assert_eq!(listed.map(|entry| &entry["reason"]), Some(&told["reason"]), "write {when}: {told}");
            let read = next.ok("proc_read", json!({ "proc_id": told["proc_id"], "cursor": 0 }));
            assert_eq!(read["output"], told["stdout"], "write {when}: {told}");
        }
    }
    assert!(killed >= 6, "only {killed} were killed in the middle");
}

const ROUNDS: usize = 8;

/// Runs what can be run; the ends that were acknowledged.
fn talk_until_it_dies(client: &mut Client) -> Vec<Value> {
    let mut acknowledged = Vec::new();
    let hello =
        json!({ "protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let mut ask = |method: &str, params: Value| {
        let message = json!({ "jsonrpc": "2.0", "id": "it", "method": method, "params": params });
        client.raw_deaf(format!("{message}\n").as_bytes(), PATIENCE);
        client.message_within(PATIENCE, |message| message["id"] == "it")
    };
    if ask("initialize", hello).is_none() {
        return acknowledged;
    }
    for number in 0..ROUNDS {
        let arguments = json!({ "argv": ["echo", format!("number {number}")] });
        let Some(answer) = ask("tools/call", json!({ "name": "run", "arguments": arguments })) else { break };
        let content = &answer["result"]["structuredContent"];
        if content["state"] == "exited" {
            acknowledged.push(content.clone());
        }
    }
    acknowledged
}

/// The server with `shim.c` between it and its C library.
fn with_shim(site: &Site, mode: &str) -> Command {
    let source = crate::support::repo().join("tests/serve/shim.c");
    let library = site.beside.path().join("shim.so");
    let built = Command::new("gcc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).status();
    assert!(built.expect("gcc starts").success(), "the shim builds");
    let mut command = site.command();
    command.env("LD_PRELOAD", &library).env(mode, site.beside.path().join("jump"));
    command
}

#[test]
fn writes_that_do_less_than_asked_change_nothing() {
    // CF-11: at most seven bytes at a time, and every fifth write is interrupted.
    let site = Site::new();
    let mut client = site.open_by(with_shim(&site, "SHIM_SHORT"));
    let proc_id = cat(&mut client);
    for number in 0..5 {
        talks(&mut client, &proc_id, &format!("short {number}"));
        let ran = client.ok("run", json!({ "command": "seq 1 2000", "stdin": "x".repeat(3000) }));
        let expected: String = (1..=2000).map(|number| format!("{number}\n")).collect();
        assert_eq!(ran["stdout"], expected);
    }
    client.kill();
    let mut client = site.open();
    let list = client.ok("proc_list", json!({}));
    assert_eq!(list["processes"].as_array().map(Vec::len), Some(6), "the journal is whole: {list}");
}

#[test]
fn a_clock_that_jumps_ends_nobody_and_loses_nothing() {
    // CF-09: two days forward, and back.
    let site = Site::new();
    for days in ["2", "-2"] {
        let mut client = site.open_by(with_shim(&site, "SHIM_JUMP"));
        let arguments =
            json!({ "argv": ["cat"], "timeout_ms": 600_000, "idle_timeout_ms": 600_000, "initial_read_timeout_ms": 0 });
        let proc_id = client.ok("proc_start", arguments)["proc_id"].clone();
        let ended = client.ok("run", json!({ "argv": ["echo", "kept"] }))["proc_id"].clone();
        site.beside.file("jump", days);
        talks(&mut client, &proc_id, "after the jump");
        for _ in 0..3 {
            client.ok("run", json!({ "argv": ["true"] }));
        }
        let read = client.ok("proc_read", json!({ "proc_id": ended, "cursor": 0, "timeout_ms": 0 }));
        assert_eq!(read["output"], "kept\n", "{days} days: {read}");
        let ran = client.ok("run", json!({ "argv": ["sleep", "100"], "timeout_ms": 300 }));
        assert_eq!(ran["reason"], "timeout", "{days} days");
        talks(&mut client, &proc_id, "at the end");
        fs::remove_file(site.beside.path().join("jump")).expect("a file");
    }
}
