//! Faults around the server: no room, no rights, no descriptors, deaf ears. It says what is wrong, and goes on.
//!
//! File systems are mounted in a mount namespace of the server's own.

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
pub fn cat(client: &mut Client) -> Value {
    let proc_id = client.ok("proc_start", json!({ "argv": ["cat"], "initial_read_timeout_ms": 0 }))["proc_id"].clone();
    talks(client, &proc_id, "first");
    proc_id
}

pub fn talks(client: &mut Client, proc_id: &Value, word: &str) {
    let sent = client.ok("proc_send", json!({ "proc_id": proc_id, "input": word, "wait_ms": 10_000, "until": "\n" }));
    assert_eq!(sent["output"], format!("{word}\n"), "{sent}");
}

/// A call that needs room: it works, or says that it could not.
pub fn works_or_says_so(client: &mut Client, what: &str) -> bool {
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
        let command = command.args(["mount", "-o", &format!("remount,{how}")]).arg(site.state());
        let status = command.stderr(Stdio::null()).status();
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
fn without_a_place_for_state_it_says_so_and_keeps_output_in_memory() {
    let site = Site::new();
    let state = site.state();
    fs::create_dir_all(state.parent().expect("a parent")).expect("a directory");
    fs::write(&state, "not a directory").expect("a file");
    let mut client = site.open();
    let proc_id = cat(&mut client);
    talks(&mut client, &proc_id, "in memory");
    assert!(works_or_says_so(&mut client, "without state"), "{}", client.log());
    assert!(client.log().contains(&state.display().to_string()), "{}", client.log());
    assert_eq!(fs::read_to_string(&state).expect("a file"), "not a directory", "what lay there is left alone");
    fs::remove_file(&state).expect("a file");
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
    command.env("STOCKADE_LOG", "trace").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(writer);
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
    let mut client = site.open_by(site.command_after("ulimit -n 200"));
    let mut refused = 0;
    for _ in 0..32 {
        let arguments = json!({ "command": format!("exec -a {marker} sleep 1000"), "initial_read_timeout_ms": 0 });
        let answer = client.call("proc_start", arguments);
        let code = answer["error"]["code"].as_str();
        let words = ["LIMIT_EXCEEDED", "SANDBOX_UNAVAILABLE", "IO_ERROR", "SPAWN_FAILED"];
        assert!(code.is_none_or(|code| words.contains(&code)), "{answer}");
        refused += usize::from(code.is_some());
    }
    // Some are told only later that they could not start.
    let mut running = Vec::new();
    eventually("those that are listed run", PATIENCE, || {
        let list = client.ok("proc_list", json!({}))["processes"].take();
        let (alive, ended): (Vec<_>, Vec<_>) =
            list.as_array().expect("a list").iter().cloned().partition(|entry| entry.get("reason").is_none());
        assert!(ended.iter().all(|entry| entry["reason"] == "spawn_failed"), "{list}");
        running = alive.into_iter().map(|entry| entry["proc_id"].clone()).collect();
        processes_with(&marker).len() == running.len()
    });
    assert!(refused > 0 && !running.is_empty(), "{} run, {refused} refused", running.len());
    for proc_id in &running {
        assert_eq!(client.ok("proc_stop", json!({ "proc_id": proc_id }))["success"], true);
    }
    assert_eq!(processes_with(&marker), Vec::<u32>::new());
    eventually("it works again", PATIENCE, || {
        client.call("run", json!({ "argv": ["echo", "again"] }))["stdout"] == "again\n"
    });
}
