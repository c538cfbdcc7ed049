//! `ps` and `metrics`: every broker, every process, and nothing that a terminal would obey.

use crate::desk::{Desk, soon};
use serde_json::json;

#[test]
fn two_brokers_of_one_agent_are_both_listed_with_what_they_run() {
    let desk = Desk::new();
    let (mut one, mut two) = (desk.serve(), desk.serve());
    let ids = [one.start("sleep 100"), two.start("printf '\\033]0;x\\007' >/dev/null; sleep 100")];
    let listed = desk.ps(&[]);
    assert_eq!(listed.len(), 2, "{listed:?}");
    for (server, id) in [&one, &two].into_iter().zip(&ids) {
        let broker = listed.iter().find(|broker| broker["pid"] == server.child.id()).expect("the broker");
        let process = &broker["processes"][0];
        assert_eq!((broker["state"].as_str(), broker["running"].as_u64()), (Some("running"), Some(1)));
        assert_eq!((process["proc_id"].as_str(), process["state"].as_str()), (Some(id.as_str()), Some("running")));
        assert!(process["runtime_ms"].is_u64() && process["cpu_ms"].is_u64() && process["max_rss_kb"].is_u64());
    }
    let shown = desk.say(&["ps"]);
    assert!(shown.stdout.contains(&ids[0]) && shown.stdout.contains(&ids[1]), "{shown:?}");
    let metrics = desk.say(&["metrics", "--agent", &desk.agent]);
    assert_eq!(metrics.code, 0, "{metrics:?}");
    let label = format!("agent=\"{}\"", desk.agent);
    let running = metrics.stdout.lines().filter(|line| line.contains("process") && line.contains(&label)).count();
    assert!(running >= 2, "{}", metrics.stdout);
    assert_eq!(metrics.stdout.matches("# TYPE stockade_uptime_seconds").count(), 1, "{}", metrics.stdout);
}

#[test]
fn control_characters_of_a_command_are_shown_escaped() {
    let desk = Desk::new();
    let mut server = desk.serve();
    server.start("true \u{1b}]0;owned\u{7}\nsleep 100");
    let shown = desk.say(&["ps"]);
    let line = shown.stdout.lines().find(|line| line.contains("owned")).expect("the command");
    assert!(line.contains("\\u{1b}]0;owned\\u{7}\\nsleep"), "{line:?}");
}

#[test]
fn what_has_ended_is_listed_when_all_is_asked_for_also_of_a_dead_broker() {
    let desk = Desk::new();
    let mut server = desk.serve();
    let ended = server.start("echo out; exit 3");
    soon("its end", || desk.ps(&["--all"])[0]["ended"] == 1);
    let (listed, all) = (desk.ps(&[]), desk.ps(&["--all"]));
    assert_eq!((&listed[0]["processes"], &listed[0]["ended"]), (&json!([]), &json!(1)));
    assert_eq!((&all[0]["processes"][0]["reason"], &all[0]["processes"][0]["exit_code"]), (&json!("exit"), &json!(3)));
    let running = server.start("echo so far; sleep 100");
    server.until(&running, "so far");
    server.kill();
    assert_eq!(desk.ps(&[]), Vec::<serde_json::Value>::new(), "a dead broker is none");
    let dead = desk.ps(&["--all"]);
    let of = |id: &str| dead[0]["processes"].as_array().into_iter().flatten().find(|process| process["proc_id"] == id);
    assert_eq!(dead[0]["state"], "dead");
    assert_eq!(of(&ended).map(|process| &process["reason"]), Some(&json!("exit")));
    assert_eq!(of(&running).map(|process| &process["reason"]), Some(&json!("broker_restart")));
}

#[test]
fn the_socket_of_a_dead_broker_is_removed_by_the_next() {
    let desk = Desk::new();
    let mut server = desk.serve();
    server.start("true");
    server.kill();
    let left = desk.brokers();
    assert!(left.len() == 1 && left[0].join("control").exists(), "{left:?}");
    let _next = desk.serve();
    assert!(!left[0].join("control").exists());
    assert_eq!(desk.ps(&[]).len(), 1);
}

#[test]
fn a_broker_that_ends_takes_its_socket_with_it() {
    let desk = Desk::new();
    let server = desk.serve();
    let socket = desk.brokers()[0].join("control");
    assert!(socket.exists());
    drop(server);
    assert!(!socket.exists());
}

#[test]
fn a_state_directory_with_a_long_path_is_no_obstacle() {
    let desk = Desk::with("", &"long".repeat(40));
    let mut server = desk.serve();
    let id = server.start("echo far; sleep 100");
    server.until(&id, "far");
    let logs = desk.say(&["logs", &id]);
    assert_eq!((logs.code, logs.stdout.as_str()), (0, "far\n"), "{logs:?}");
}

#[test]
fn health_says_what_was_deleted() {
    let desk = Desk::new();
    let mut server = desk.serve();
    let health = server.call("health", &json!({}));
    assert_eq!(health["retention"], json!({ "deleted_processes": 0, "deleted_bytes": 0 }), "{health}");
    assert!(health.get("control_trouble").is_none(), "{health}");
}
