//! `run`: a command to its end, or until it goes on as a managed process.

use crate::ends::{eventually, marker, processes_with};
use crate::mcp::Client;
use crate::server::PATIENCE;
use crate::site::Site;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Everything a process has written, from its first byte to its end.
fn whole_output(client: &mut Client, proc_id: &Value) -> String {
    let mut text = String::new();
    let mut cursor = json!(0);
    loop {
        let read = client.ok("proc_read", json!({ "proc_id": proc_id, "cursor": cursor, "timeout_ms": 10_000 }));
        text.push_str(read["output"].as_str().expect("text"));
        cursor = read["next_cursor"].clone();
        if read["state"] == "exited" && read["more"] == false {
            return text;
        }
    }
}

#[test]
fn a_result_has_these_fields_and_no_others() {
    let site = Site::new();
    let mut client = site.open();
    let mut ran = client.ok("run", json!({ "command": "echo out; echo err >&2; exit 3" }));
    let fields = ran.as_object_mut().expect("an object");
    let proc_id = fields.remove("proc_id").expect("an id");
    assert!(proc_id.as_str().is_some_and(|id| id.starts_with('p') && id.len() >= 16), "{proc_id}");
    assert!(fields.remove("duration_ms").and_then(|ms| ms.as_u64()).is_some_and(|ms| ms < 10_000));
    let usage = fields.remove("usage").expect("usage");
    assert!(usage["cpu_ms"].is_u64() && usage["max_rss_kb"].as_u64().is_some_and(|kb| kb > 100), "{usage}");
    let expected = json!({
        "state": "exited", "exit_code": 3, "reason": "exit", "stdout": "out\n", "stderr": "err\n",
        "stdout_bytes": 4, "stderr_bytes": 4, "truncated": false, "cwd": site.workspace.path(),
    });
    assert_eq!(ran, expected);
}

#[test]
fn argv_is_exact_and_a_command_string_goes_to_the_shell() {
    let site = Site::new();
    let mut client = site.open();
    let words = ["printf", "%s|", "a b", "$HOME", "*", "'q'", "", "new\nline", "é"];
    let ran = client.ok("run", json!({ "argv": words }));
    assert_eq!(ran["stdout"], "a b|$HOME|*|'q'||new\nline|é|");
    let ran = client.ok("run", json!({ "command": "echo $((6 * 7)) | tr 4 5; echo ${BASH_VERSION:+bash}" }));
    assert_eq!(ran["stdout"], "52\nbash\n");
}

#[test]
fn without_a_shell_in_the_policy_only_argv_runs() {
    let site = Site::with("[commands]\nshell = false");
    let mut client = site.open();
    let (code, message) = client.refused("run", json!({ "command": "echo ran" }));
    assert!(code == "COMMAND_NOT_ALLOWED" && message.contains("argv"), "{code}: {message}");
    assert_eq!(client.ok("run", json!({ "argv": ["echo", "ran"] }))["stdout"], "ran\n", "control");
}

#[test]
fn stdin_is_what_was_given_and_then_ends() {
    let site = Site::new();
    let mut client = site.open();
    for (arguments, expected) in [
        (json!({ "argv": ["cat"], "stdin": "one\ntwo" }), "one\ntwo"),
        (json!({ "argv": ["cat"], "stdin": "b25lCnR3bw==", "stdin_encoding": "base64" }), "one\ntwo"),
        (json!({ "argv": ["cat"], "stdin": "" }), ""),
        (json!({ "argv": ["cat"] }), ""),
        (json!({ "argv": ["od", "-An", "-tx1"], "stdin": "AP+A", "stdin_encoding": "base64" }), " 00 ff 80\n"),
    ] {
        assert_eq!(client.ok("run", arguments.clone())["stdout"], expected, "{arguments}");
    }
    let long = "0123456789abcdef".repeat(16 << 10);
    assert_eq!(client.ok("run", json!({ "argv": ["wc", "-c"], "stdin": long }))["stdout"], "262144\n");
    let unread = client.ok("run", json!({ "argv": ["true"], "stdin": long }));
    assert_eq!(unread["exit_code"], 0, "input that nobody reads holds nothing up");
}

#[test]
fn cwd_and_env_are_those_of_the_call() {
    let site = Site::new();
    let inside = site.workspace.directory("a/b");
    let mut command = site.command();
    command.env("OPERATORS_SECRET", "s3cret").env("LANG", "C.UTF-8");
    let mut client = site.open_by(command);
    let ran = client.ok("run", json!({ "argv": ["pwd"], "cwd": inside }));
    assert_eq!((ran["stdout"].as_str(), &ran["cwd"]), (Some(&*format!("{}\n", inside.display())), &json!(inside)));
    assert_eq!(client.ok("run", json!({ "argv": ["pwd"], "cwd": "/tmp" }))["stdout"], "/tmp\n");
    let ran = client.ok("run", json!({ "argv": ["env"], "env": { "GIVEN": "a=b c", "HOME": "/tmp" } }));
    let lines: Vec<&str> = ran["stdout"].as_str().expect("text").lines().collect();
    assert!(lines.contains(&"GIVEN=a=b c") && lines.contains(&"HOME=/tmp"), "{lines:?}");
    assert!(lines.contains(&"LANG=C.UTF-8"), "passed on by the policy: {lines:?}");
    assert!(!lines.iter().any(|line| line.contains("s3cret") || line.contains("XDG_STATE")), "{lines:?}");
    let ran = client.ok("run", json!({ "argv": ["env"] }));
    assert!(!ran["stdout"].as_str().expect("text").contains("GIVEN"), "of that call alone");
}

#[test]
fn streams_are_kept_apart_and_counted() {
    let site = Site::new();
    let mut client = site.open();
    let script = "for i in 1 2 3; do echo out$i; echo err$i >&2; done";
    let ran = client.ok("run", json!({ "command": script }));
    assert_eq!(
        (ran["stdout"].as_str(), ran["stderr"].as_str()),
        (Some("out1\nout2\nout3\n"), Some("err1\nerr2\nerr3\n"))
    );
    assert_eq!((&ran["stdout_bytes"], &ran["stderr_bytes"]), (&json!(15), &json!(15)));
}

#[test]
fn usage_tells_of_work_and_memory() {
    let site = Site::new();
    let mut client = site.open();
    let busy = "import time
block = bytearray(50 << 20)
end = time.process_time() + 0.3
while time.process_time() < end: pass";
    let ran = client.ok("run", json!({ "argv": ["python3", "-c", busy] }));
    let usage = &ran["usage"];
    assert!(usage["cpu_ms"].as_u64().is_some_and(|ms| (300..5000).contains(&ms)), "{ran}");
    assert!(usage["max_rss_kb"].as_u64().is_some_and(|kb| (50 << 10..200 << 10).contains(&kb)), "{ran}");
    let idle = client.ok("run", json!({ "argv": ["sleep", "0.3"] }));
    assert!(idle["usage"]["cpu_ms"].as_u64().is_some_and(|ms| ms < 200), "control: {idle}");
}

#[test]
fn long_output_keeps_head_tail_and_errors_and_the_rest_can_be_paged() {
    let site = Site::with("[limits]\ninline_bytes = \"4K\"");
    let mut client = site.open();
    let script = "echo FIRST; seq 1 20000; echo 'error: in the middle'; seq 1 20000; echo LAST";
    let ran = client.ok("run", json!({ "command": script }));
    let numbers: String = (1..=20_000).map(|number| format!("{number}\n")).collect();
    let all = format!("FIRST\n{numbers}error: in the middle\n{numbers}LAST\n");
    assert_eq!((&ran["stdout_bytes"], &ran["truncated"]), (&json!(all.len()), &json!(true)));
    let shown = ran["stdout"].as_str().expect("text");
    assert!(shown.starts_with("FIRST\n1\n2\n") && shown.ends_with("19999\n20000\nLAST\n"), "{shown}");
    assert!(shown.len() < 4096 + 200, "{}", shown.len());
    assert_eq!(ran["highlights"][0]["line"], 20_002, "{}", ran["highlights"]);
    assert_eq!(ran["highlights"][0]["text"], "error: in the middle");
    assert!(whole_output(&mut client, &ran["proc_id"]) == all, "every byte can be read back");
    let short = client.ok("run", json!({ "command": "echo error" }));
    assert_eq!((&short["truncated"], short.get("highlights")), (&json!(false), None), "control");
}

#[test]
fn a_reply_holds_as_much_as_was_asked_for() {
    let site = Site::new();
    let mut client = site.open();
    for limit in [100, 1000, 40_000] {
        let arguments = json!({ "command": "yes | head -c 100000", "max_output_bytes": limit });
        let ran = client.ok("run", arguments);
        let length = ran["stdout"].as_str().expect("text").len();
        assert!((limit / 2..=limit + 100).contains(&length), "{limit}: {length}");
        assert_eq!((&ran["stdout_bytes"], &ran["truncated"]), (&json!(100_000), &json!(true)));
    }
}

#[test]
fn a_command_that_takes_long_goes_on_as_a_managed_process() {
    let site = Site::new();
    let mut client = site.open();
    let script = "echo one; until [ -e go ]; do sleep 0.02; done; echo two; exit 5";
    let start = Instant::now();
    let ran = client.ok("run", json!({ "command": script, "yield_ms": 300 }));
    assert!((Duration::from_millis(300)..Duration::from_secs(5)).contains(&start.elapsed()));
    assert_eq!((ran["state"].as_str(), ran["stdout"].as_str()), (Some("running"), Some("one\n")), "{ran}");
    assert_eq!((ran.get("exit_code"), ran.get("signal")), (None, None), "{ran}");
    site.workspace.file("go", "");
    let read = client.ok("proc_read", json!({ "proc_id": ran["proc_id"], "until": "two\n", "timeout_ms": 10_000 }));
    assert_eq!(read["output"], "two\n", "the reply has shown what came before: {read}");
    assert_eq!(whole_output(&mut client, &ran["proc_id"]), "one\ntwo\n");
    let read = client.ok("proc_read", json!({ "proc_id": ran["proc_id"], "timeout_ms": 10_000 }));
    assert_eq!((&read["state"], &read["exit_code"], &read["reason"]), (&json!("exited"), &json!(5), &json!("exit")));
}

#[test]
fn in_the_background_means_at_once() {
    let (site, marker) = (Site::new(), marker());
    let mut client = site.open();
    let script = format!("exec -a {marker} sleep 1000");
    let start = Instant::now();
    let ran = client.ok("run", json!({ "command": script, "background": true }));
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert_eq!(ran["state"], "running");
    eventually("it runs", PATIENCE, || processes_with(&marker).len() == 1);
    client.ok("proc_stop", json!({ "proc_id": ran["proc_id"] }));
    assert_eq!(processes_with(&marker), Vec::<u32>::new());
}

#[test]
fn with_repl_off_a_run_never_yields() {
    let site = Site::with("[tools]\nrepl = false");
    let mut client = site.open();
    for parameter in ["yield_ms", "background", "session"] {
        let (code, message) = client.refused("run", json!({ "argv": ["true"], parameter: 1 }));
        assert!(code == "INVALID_ARGUMENT" && message.contains(parameter), "{code}: {message}");
    }
    assert_eq!(client.ok("run", json!({ "argv": ["sleep", "0.6"] }))["exit_code"], 0);
}

#[test]
fn commands_of_one_agent_share_tmp_and_loopback() {
    let site = Site::new();
    let mut client = site.open();
    client.ok("run", json!({ "command": "echo kept > /tmp/file; echo home > ~/file" }));
    assert_eq!(client.ok("run", json!({ "command": "cat /tmp/file ~/file" }))["stdout"], "kept\nhome\n");
    let argv = ["python3", "-m", "http.server", "--bind", "127.0.0.1", "8123"];
    let server = json!({ "argv": argv, "cwd": "/tmp", "pty": true, "until": "Serving" });
    assert!(client.ok("proc_start", server)["first_output"].as_str().is_some_and(|text| text.contains("Serving")));
    assert_eq!(client.ok("run", json!({ "argv": ["curl", "-s", "http://127.0.0.1:8123/file"] }))["stdout"], "kept\n");
}
