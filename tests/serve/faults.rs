//! Faults around the server: no room, no rights, no descriptors, deaf ears. It says what is wrong, and goes on when it can.
//!
//! File systems are mounted in a mount namespace of the server's own; calls are made to fail by `strace`, or to do less
//! than asked by a library loaded before the server's own (`shim.c`).

use crate::ends::{eventually, marker, processes_with};
use crate::mcp::Client;
use crate::server::PATIENCE;
use crate::site::Site;
use crate::support::is_root;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Below the server's own view of the file system.
fn seen_by(client: &Client, path: &Path) -> PathBuf {
    PathBuf::from(format!("/proc/{}/root{}", client.pid(), path.display()))
}

/// A server whose state is on a small file system of its own.
fn on_small_state(site: &Site, options: &str) -> Client {
    let state = site.state();
    fs::create_dir_all(&state).expect("a state directory");
    let mount = format!("mount -t tmpfs -o mode=0700,{options} none {}", state.display());
    site.open_by(site.command_apart(&mount))
}

/// Starts something to talk to, and talks to it.
fn cat(client: &mut Client) -> Value {
    let proc_id = client.ok("proc_start", json!({ "argv": ["cat"], "initial_read_timeout_ms": 0 }))["proc_id"].clone();
    talks(client, &proc_id, "first");
    proc_id
}

fn talks(client: &mut Client, proc_id: &Value, word: &str) {
    let sent = client.ok("proc_send", json!({ "proc_id": proc_id, "input": word, "wait_ms": 10_000, "until": "\n" }));
    assert_eq!(sent["output"], format!("{word}\n"), "{sent}");
}

/// A call that needs room: it works, or says that it could not.
fn works_or_says_so(client: &mut Client, what: &str) -> bool {
    let answer = client.call("run", json!({ "command": "yes | head -c 600000" }));
    match answer["error"]["code"].as_str() {
        None => {
            assert_eq!(answer["stdout_bytes"], 600_000, "{what}: {answer:.400}");
            true
        }
        Some(code) => {
            assert_eq!(code, "IO_ERROR", "{what}: {answer}");
            false
        }
    }
}

#[test]
fn a_full_disk_stops_nobody_who_runs_and_is_over_when_there_is_room() {
    // CF-04.
    let site = Site::new();
    for options in ["size=256k", "size=16m,nr_inodes=12"] {
        let mut client = on_small_state(&site, options);
        let proc_id = cat(&mut client);
        let state = seen_by(&client, &site.state());
        let mut fillers = Vec::new();
        let mut full = false;
        while !full {
            let path = state.join(format!("filler-{}", fillers.len()));
            full = File::create(&path).and_then(|mut file| file.write_all(&vec![1; 64 << 10])).is_err();
            fillers.push(path);
        }
        for number in 0..6 {
            works_or_says_so(&mut client, options);
            talks(&mut client, &proc_id, &format!("while full {number}"));
        }
        for filler in fillers {
            drop(fs::remove_file(filler));
        }
        assert_eq!(client.ok("run", json!({ "argv": ["echo", "room again"] }))["stdout"], "room again\n");
        talks(&mut client, &proc_id, "after");
        assert!(client.request("ping", json!({}))["result"].is_object());
    }
}

#[test]
fn a_state_that_turns_read_only_stops_nobody_who_runs() {
    // CF-05.
    let site = Site::new();
    let mut client = on_small_state(&site, "size=16m");
    let proc_id = cat(&mut client);
    let pid = client.pid().to_string();
    let remount = |how: &str| {
        let mut command = Command::new("nsenter");
        command.args(["--target", &pid, "--mount"]);
        if !is_root() {
            command.args(["--user", "--preserve-credentials"]);
        }
        let status = command.args(["mount", "-o", &format!("remount,{how}")]).arg(site.state()).status();
        status.expect("nsenter starts").success()
    };
    // A file that is open for writing keeps its file system writable; then only new files are in the way.
    let read_only = remount("ro");
    if !read_only {
        let state = seen_by(&client, &site.state());
        for entry in fs::read_dir(&state).expect("a directory").flatten() {
            let mut mode = fs::metadata(entry.path()).expect("a mode").permissions();
            std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o500);
            fs::set_permissions(entry.path(), mode).expect("a mode");
        }
    }
    for number in 0..3 {
        works_or_says_so(&mut client, "read-only");
        talks(&mut client, &proc_id, &format!("while read-only {number}"));
    }
    if read_only {
        assert!(remount("rw"));
        assert_eq!(client.ok("run", json!({ "argv": ["echo", "writable"] }))["stdout"], "writable\n");
    }
}

#[test]
fn a_state_directory_that_cannot_be_made_is_said_at_once() {
    let site = Site::new();
    let state = site.state();
    fs::create_dir_all(state.parent().expect("a parent")).expect("a directory");
    fs::write(&state, "not a directory").expect("a file");
    let mut client = Client::start(site.command(), site.log(), crate::mcp::Era::Handshake);
    let status = client.wait(PATIENCE);
    let said = client.log();
    fs::remove_file(&state).expect("a file");
    assert_eq!(status.code(), Some(125), "{said}");
    assert!(said.contains("error: ") && said.contains(&state.display().to_string()), "{said}");
}

#[test]
fn a_closed_or_full_stderr_holds_nothing_up() {
    // CF-12.
    let site = Site::new();
    let mut client = site.open_by(site.command_after("exec 2>&-"));
    let proc_id = cat(&mut client);
    talks(&mut client, &proc_id, "closed");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let mut writer = File::from(std::os::fd::OwnedFd::from(writer));
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).expect("a pipe");
    while writer.write(&[b'x'; 4096]).is_ok() {}
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::empty())).expect("a pipe");
    let mut command = site.command();
    command.env("RUST_LOG", "trace").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(writer);
    let child = command.spawn().expect("stockade starts");
    let mut client = Client::of(child, site.log(), crate::mcp::Era::Handshake);
    client.greet();
    client.learn();
    let proc_id = cat(&mut client);
    for number in 0..50 {
        client.raw(b"no JSON at all\n");
        talks(&mut client, &proc_id, &format!("full {number}"));
    }
    client.hang_up();
    assert_eq!(client.wait(PATIENCE).code(), Some(0));
    drop(reader);
}

#[test]
fn without_descriptors_calls_are_refused_and_then_work_again() {
    // CF-10.
    let (site, marker) = (Site::with("[processes]\nper_session = 32\ntotal = 32"), marker());
    let mut client = site.open_by(site.command_after("ulimit -n 48"));
    let mut started = Vec::new();
    let mut refused = 0;
    for _ in 0..32 {
        let arguments = json!({ "command": format!("exec -a {marker} sleep 1000"), "initial_read_timeout_ms": 0 });
        let answer = client.call("proc_start", arguments);
        match answer["error"]["code"].as_str() {
            None => started.push(answer["proc_id"].clone()),
            Some(code) => {
                assert!(
                    ["LIMIT_EXCEEDED", "SANDBOX_UNAVAILABLE", "IO_ERROR", "SPAWN_FAILED"].contains(&code),
                    "{answer}"
                );
                refused += 1;
            }
        }
    }
    assert!(refused > 0 && !started.is_empty(), "{} started, {refused} refused", started.len());
    eventually("those that were started run", PATIENCE, || processes_with(&marker).len() == started.len());
    for proc_id in &started {
        assert_eq!(client.ok("proc_stop", json!({ "proc_id": proc_id }))["success"], true);
    }
    assert_eq!(processes_with(&marker), Vec::<u32>::new());
    assert_eq!(client.ok("run", json!({ "argv": ["echo", "again"] }))["stdout"], "again\n");
}

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
        let mut client = Client::start(under_strace(&site, &fault), site.log(), crate::mcp::Era::Handshake);
        let acknowledged = talk_until_it_dies(&mut client);
        killed += usize::from(acknowledged.len() < ROUNDS);
        drop(client);
        let mut next = site.open();
        let list = next.ok("proc_list", json!({}))["processes"].take();
        for (proc_id, text) in acknowledged {
            let listed = list.as_array().expect("a list").iter().find(|entry| entry["proc_id"] == proc_id);
            assert_eq!(listed.map(|entry| &entry["reason"]), Some(&json!("exit")), "write {when}: {proc_id}: {list}");
            let read = next.ok("proc_read", json!({ "proc_id": proc_id, "cursor": 0 }));
            assert_eq!(read["output"], text, "write {when}");
        }
    }
    assert!(killed >= 6, "only {killed} were killed in the middle");
}

const ROUNDS: usize = 8;

/// Runs what can be run; the ids and output that were acknowledged.
fn talk_until_it_dies(client: &mut Client) -> Vec<(Value, String)> {
    let mut acknowledged = Vec::new();
    let hello = json!({ "protocolVersion": crate::mcp::HANDSHAKE, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
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
            acknowledged.push((content["proc_id"].clone(), format!("number {number}\n")));
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
