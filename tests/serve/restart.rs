//! After the broker was killed: what it knew is read back, exactly; and two brokers of one agent get along.

use crate::ends::{SOON, eventually, groups_of, marker, processes_with};
use crate::mcp::Client;
use crate::server::PATIENCE;
use crate::site::Site;
use serde_json::{Value, json};
use std::fs;

fn entry(client: &mut Client, proc_id: &Value) -> Value {
    let list = client.ok("proc_list", json!({}));
    let found = list["processes"].as_array().expect("a list").iter().find(|entry| entry["proc_id"] == *proc_id);
    found.unwrap_or_else(|| panic!("{proc_id} is not in {list}")).clone()
}

/// Everything that is kept of a process.
fn whole_output(client: &mut Client, proc_id: &Value) -> String {
    let (mut text, mut cursor) = (String::new(), json!(0));
    loop {
        let read = client.ok("proc_read", json!({ "proc_id": proc_id, "cursor": cursor, "timeout_ms": 0 }));
        text.push_str(read["output"].as_str().expect("text"));
        cursor = read["next_cursor"].clone();
        if read["more"] == false {
            return text;
        }
    }
}

#[test]
fn what_ran_is_told_as_a_restart_and_its_output_is_exact() {
    let (site, marker) = (Site::new(), marker());
    let mut client = site.open();
    let script = format!("seq 1 50000; echo err >&2; exec -a {marker} sleep 1000");
    let arguments = json!({ "command": script, "description": "counts", "initial_read_timeout_ms": 0 });
    let proc_id = client.ok("proc_start", arguments)["proc_id"].clone();
    let mut cursor = json!(0);
    while cursor != 288_898 {
        let read = client.ok("proc_read", json!({ "proc_id": proc_id, "cursor": cursor, "timeout_ms": 10_000 }));
        cursor = read["next_cursor"].clone();
    }
    let before = whole_output(&mut client, &proc_id);
    let broker = client.pid();
    client.kill();
    eventually("nothing is left", SOON, || processes_with(&marker).is_empty() && groups_of(broker).is_empty());
    let mut client = site.open();
    let listed = entry(&mut client, &proc_id);
    assert_eq!((&listed["state"], &listed["reason"]), (&json!("exited"), &json!("broker_restart")), "{listed}");
    assert_eq!((listed.get("exit_code"), &listed["total_bytes"]), (None, &json!(288_898)), "{listed}");
    assert!(listed["command"].as_str().is_some_and(|text| text.contains("seq 1 50000")), "{listed}");
    let after = whole_output(&mut client, &proc_id);
    assert!(after == before && after.len() == 288_898, "{} and {} bytes", before.len(), after.len());
    let errors = client.ok("proc_read", json!({ "proc_id": proc_id, "cursor": 0, "stream": "stderr" }));
    assert_eq!(errors["output"], "err\n", "which stream it was is known too");
    let lines =
        client.ok("proc_read", json!({ "proc_id": proc_id, "from_line": 40_000, "lines": 1, "format": "lines" }));
    assert_eq!((&lines["lines"][0]["number"], &lines["lines"][0]["text"]), (&json!(40_000), &json!("40000")));
    assert_eq!(client.refused("proc_send", json!({ "proc_id": proc_id, "input": "x" })).0, "PROCESS_NOT_RUNNING");
    let stopped = client.ok("proc_stop", json!({ "proc_id": proc_id }));
    assert_eq!((&stopped["success"], &stopped["state"]), (&json!(true), &json!("exited")), "{stopped}");
}

#[test]
fn what_had_ended_keeps_its_end() {
    let site = Site::new();
    let mut client = site.open();
    let ended = client.ok("run", json!({ "command": "echo over; exit 3" }))["proc_id"].clone();
    let killed = client.ok("run", json!({ "command": "kill -SEGV $$" }))["proc_id"].clone();
    let timed_out = client.ok("run", json!({ "argv": ["sleep", "100"], "timeout_ms": 100 }))["proc_id"].clone();
    let removed = client.ok("run", json!({ "argv": ["true"] }))["proc_id"].clone();
    client.ok("proc_remove", json!({ "proc_id": removed }));
    client.kill();
    let mut client = site.open();
    let (first, second) = (entry(&mut client, &ended), entry(&mut client, &killed));
    assert_eq!((&first["reason"], &first["exit_code"]), (&json!("exit"), &json!(3)), "{first}");
    assert_eq!(second["reason"], "signal", "{second}");
    assert_eq!(entry(&mut client, &timed_out)["reason"], "timeout");
    assert_eq!(whole_output(&mut client, &ended), "over\n");
    assert_eq!(client.ok("proc_read", json!({ "proc_id": removed }))["state"], "no_such_process");
}

#[test]
fn a_clean_end_of_the_server_is_remembered_too() {
    let site = Site::new();
    let mut client = site.open();
    let arguments = json!({ "command": "echo said; sleep 1000", "until": "said\n", "initial_read_timeout_ms": 5000 });
    let proc_id = client.ok("proc_start", arguments)["proc_id"].clone();
    client.hang_up();
    client.wait(PATIENCE);
    let mut client = site.open();
    let listed = entry(&mut client, &proc_id);
    assert_eq!((&listed["state"], &listed["reason"]), (&json!("exited"), &json!("stopped")), "{listed}");
    assert_eq!(whole_output(&mut client, &proc_id), "said\n");
}

#[test]
fn ids_are_not_used_again_and_cannot_be_guessed() {
    let site = Site::new();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..3 {
        let mut client = site.open();
        for _ in 0..10 {
            let id = client.ok("run", json!({ "argv": ["true"] }))["proc_id"].as_str().expect("an id").to_owned();
            assert!(id.len() >= 2 + 16, "too short to be unguessable: {id}");
            assert!(seen.insert(id));
        }
        client.kill();
    }
    let common = |a: &str, b: &str| a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let ids: Vec<&String> = seen.iter().collect();
    // Sorted, so neighbours share the most. Thirty random ids hardly ever share three digits.
    let longest = ids.windows(2).map(|pair| common(pair[0], pair[1])).max();
    assert!(longest <= Some("p_".len() + 4), "{ids:?}");
}

#[test]
fn an_unknown_id_and_another_agents_get_the_same_answer() {
    let site = Site::new();
    let other = site.neighbour("");
    let (mut ours, mut theirs) = (site.open(), other.open());
    let running = theirs.ok("proc_start", json!({ "argv": ["cat"], "initial_read_timeout_ms": 0 }))["proc_id"].clone();
    let ended = theirs.ok("run", json!({ "argv": ["echo", "secret"] }))["proc_id"].clone();
    let unknown = json!(format!("p_{}", "0".repeat(running.as_str().expect("an id").len() - 2)));
    for (tool, rest) in [
        ("proc_read", json!({})),
        ("proc_read", json!({ "cursor": 0, "until": "secret" })),
        ("proc_send", json!({ "input": "x" })),
        ("proc_signal", json!({ "signal": "TERM" })),
        ("proc_resize", json!({ "rows": 10, "cols": 10 })),
        ("proc_stop", json!({})),
        ("proc_remove", json!({})),
        ("proc_remove", json!({ "output_only": true })),
    ] {
        let mut answer = |id: &Value| {
            let mut arguments = rest.clone();
            arguments["proc_id"] = id.clone();
            let call = ours.begin(tool, arguments);
            let mut response = ours.response(call);
            response["id"] = json!(0);
            if let Some(meta) = response["result"].get_mut("_meta").and_then(Value::as_object_mut) {
                meta.remove("stockade/call_id");
                meta.remove("stockade/duration_ms");
            }
            response.to_string().replace(id.as_str().expect("an id"), "ID")
        };
        let nobodys = answer(&unknown);
        assert_eq!(answer(&running), nobodys, "{tool}");
        assert_eq!(answer(&ended), nobodys, "{tool}");
    }
    assert_eq!(ours.ok("proc_list", json!({}))["processes"], json!([]));
    let sent = theirs.ok("proc_send", json!({ "proc_id": running, "input": "alive", "wait_ms": 5000, "until": "\n" }));
    assert_eq!(sent["output"], "alive\n", "control: it is there, untouched");
}

#[test]
fn two_brokers_of_one_agent_do_not_tread_on_each_other() {
    // BX-18.
    let (site, marker) = (Site::new(), marker());
    let mut first = site.open();
    let script = format!("echo first; exec -a {marker} sleep 1000");
    let arguments = json!({ "command": script, "until": "first\n", "initial_read_timeout_ms": 5000 });
    let running = first.ok("proc_start", arguments)["proc_id"].clone();
    let mut second = site.open();
    assert_eq!(processes_with(&marker).len(), 1, "a second start does not sweep the first");
    let ran = second.ok("run", json!({ "argv": ["echo", "second"] }));
    assert_eq!(ran["stdout"], "second\n");
    assert_eq!(first.ok("proc_read", json!({ "proc_id": running, "cursor": 0 }))["output"], "first\n");
    second.kill();
    let mut third = site.open();
    assert_eq!(entry(&mut third, &ran["proc_id"])["reason"], "exit", "the dead one's are read back");
    assert_eq!(whole_output(&mut third, &ran["proc_id"]), "second\n");
    assert_eq!(processes_with(&marker).len(), 1, "the living one's are left alone");
    let stopped = first.ok("proc_stop", json!({ "proc_id": running }));
    assert_eq!((&stopped["success"], processes_with(&marker).len()), (&json!(true), 0));
}

#[test]
fn the_next_start_sweeps_what_a_killed_pair_left() {
    let (site, marker) = (Site::new(), marker());
    let mut client = site.open();
    let script =
        format!("setsid {probe} deaf {marker} >/dev/null & exec {probe} deaf {marker}", probe = site.probe_path());
    client.ok("proc_start", json!({ "command": script, "initial_read_timeout_ms": 0 }));
    eventually("both run", PATIENCE, || processes_with(&marker).len() == 2);
    let broker = client.pid();
    let launcher = crate::ends::children_of(broker);
    client.signal(nix::sys::signal::Signal::SIGSTOP);
    for pid in launcher {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid as i32), nix::sys::signal::Signal::SIGKILL)
            .expect("it is there");
    }
    client.kill();
    eventually("no process is left", SOON, || processes_with(&marker).is_empty());
    let mut next = site.open();
    next.ok("run", json!({ "argv": ["true"] }));
    eventually("its cgroups are gone", SOON, || groups_of(broker).is_empty());
}

#[test]
fn state_is_the_owners_alone_and_out_of_the_cells_sight() {
    use std::os::unix::fs::PermissionsExt;
    let site = Site::new();
    let mut client = site.open();
    client.ok("run", json!({ "argv": ["echo", "x"] }));
    let state = site.state();
    let mode = |path: &std::path::Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(&state), 0o700);
    for entry in fs::read_dir(&state).expect("a directory").flatten() {
        assert_eq!(mode(&entry.path()) & 0o077, 0, "{}", entry.path().display());
    }
    let ran = client.ok("run", json!({ "argv": ["ls", state] }));
    assert!(ran["stderr"].as_str().is_some_and(|text| text.contains("No such file")), "{ran}");
}

#[test]
fn a_state_that_makes_no_sense_is_neither_wiped_nor_fatal() {
    // CF-07 and CF-15: a damaged journal, one of a newer version, strangers in the directory.
    let site = Site::new();
    let mut client = site.open();
    let good = client.ok("run", json!({ "argv": ["echo", "good"] }))["proc_id"].clone();
    client.kill();
    let mut client = site.open();
    let bad = client.ok("run", json!({ "argv": ["echo", "bad"] }))["proc_id"].clone();
    client.kill();
    let brokers: Vec<_> =
        fs::read_dir(site.state()).expect("a directory").flatten().map(|entry| entry.path()).collect();
    let of_bad = brokers.iter().find(|path| {
        let journal = fs::read_to_string(path.join("journal.jsonl")).unwrap_or_default();
        journal.contains(bad.as_str().expect("an id"))
    });
    let journal = of_bad.expect("its journal").join("journal.jsonl");
    let text = fs::read_to_string(&journal).expect("text");
    let (header, rest) = text.split_once('\n').expect("lines");
    let damages: [(&str, String); 4] = [
        ("cut in the middle of a line", text[..text.len() - 7].to_owned()),
        ("bytes that are no JSON", format!("{header}\n\u{1}\u{2}{{{{\n{rest}")),
        ("a newer version", format!("{{\"version\":999999}}\n{rest}")),
        ("empty", String::new()),
    ];
    for (what, damaged) in damages {
        fs::write(&journal, &damaged).expect("the journal");
        let mut client = site.open();
        assert_eq!(client.ok("run", json!({ "argv": ["echo", "on"] }))["stdout"], "on\n", "{what}");
        assert_eq!(whole_output(&mut client, &good), "good\n", "{what}: others are still there");
        assert!(journal.exists(), "{what}: it is kept");
    }
    fs::remove_file(&journal).expect("the journal");
    std::os::unix::fs::symlink("/etc/passwd", &journal).expect("a link");
    let mut client = site.open();
    assert_eq!(client.ok("run", json!({ "argv": ["echo", "on"] }))["stdout"], "on\n", "a link");
    assert_eq!(
        fs::read_link(&journal).expect("a link"),
        std::path::Path::new("/etc/passwd"),
        "is not followed or replaced"
    );
}
