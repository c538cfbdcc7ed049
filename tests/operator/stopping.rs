//! `stop`: one, an agent's, a broker's; gone when it returns.

use crate::desk::Desk;
use serde_json::json;

#[test]
fn one_process_is_stopped_and_the_others_go_on() {
    let desk = Desk::new();
    let mut server = desk.serve();
    let (id, other) = (server.start("trap '' TERM; echo up; while :; do sleep 1; done"), server.start("sleep 100"));
    server.until(&id, "up");
    let stopped = desk.say(&["stop", &id, "--grace", "100ms"]);
    assert_eq!((stopped.code, stopped.stdout.trim()), (0, id.as_str()), "{stopped:?}");
    let read = server.call("proc_read", &json!({ "proc_id": id }));
    assert_eq!((&read["state"], &read["reason"]), (&json!("exited"), &json!("stopped")));
    assert_eq!(desk.ps(&[])[0]["processes"][0]["proc_id"], other.as_str());
}

#[test]
fn everything_of_an_agent_or_a_broker_is_stopped() {
    let desk = Desk::new();
    let (mut one, mut two) = (desk.serve(), desk.serve());
    (0..2).for_each(|_| drop(one.start("sleep 100")));
    two.start("sleep 100");
    let listed = desk.ps(&[]);
    let first = listed.iter().find(|broker| broker["pid"] == one.child.id()).expect("a broker");
    let stopped = desk.say(&["stop", "--broker", first["broker"].as_str().expect("a name")]);
    assert_eq!((stopped.code, stopped.stdout.lines().count()), (0, 2), "{stopped:?}");
    let stopped = desk.say(&["stop", "--agent", &desk.agent]);
    assert_eq!((stopped.code, stopped.stdout.lines().count()), (0, 1), "{stopped:?}");
    assert!(desk.ps(&[]).iter().all(|broker| broker["running"] == 0));
}

#[test]
fn words_that_make_no_sense_are_refused() {
    let desk = Desk::new();
    let nobody = desk.say(&["stop", "--agent", "nobody-of-that-name"]);
    assert_eq!(nobody.code, 1, "{nobody:?}");
    assert_eq!(desk.say(&["stop"]).code, 2);
    assert_eq!(desk.say(&["stop", "p_x", "--all"]).code, 2);
    for words in [["--signal", "STOP"], ["--grace", "2 parsecs"], ["--grace", "2h"]] {
        let outcome = desk.say(&["stop", "p_x", words[0], words[1]]);
        assert_eq!(outcome.code, 125, "{outcome:?}");
    }
    assert_eq!(desk.say(&["metrics", "--agent", "nobody-of-that-name"]).code, 1);
}
