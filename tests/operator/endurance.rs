//! Many at once, clients that do not read, and requests that are none: the broker goes on.

use crate::desk::{Desk, soon};
use crate::support::Outcome;
use serde_json::json;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// A connection to the broker's socket, whose path may be longer than an address holds (unix(7)).
fn connect(desk: &Desk) -> UnixStream {
    let directory = File::open(&desk.brokers()[0]).expect("the broker's directory");
    let path = PathBuf::from(format!("/proc/self/fd/{}/control", directory.as_raw_fd()));
    UnixStream::connect(path).expect("the broker listens")
}

#[test]
fn a_hundred_at_once_are_all_answered() {
    let desk = Desk::new();
    let mut server = desk.serve();
    server.start("sleep 100");
    let asking: Vec<_> = (0..100).map(|_| connect(&desk)).collect();
    let answered = std::thread::scope(|scope| {
        let ask = |mut stream: UnixStream| {
            move || {
                stream.write_all(b"{\"ask\":\"status\"}\n").expect("the broker reads");
                let mut line = String::new();
                BufReader::new(stream).read_line(&mut line).expect("an answer");
                line.contains("\"answer\":\"status\"") && line.contains("sleep 100")
            }
        };
        let all: Vec<_> = asking.into_iter().map(|stream| scope.spawn(ask(stream))).collect();
        all.into_iter().map(|one| one.join().expect("no panic")).filter(|was| *was).count()
    });
    assert_eq!(answered, 100);
}

#[test]
fn clients_that_do_not_read_hold_up_nobody() {
    let desk = Desk::new();
    let mut server = desk.serve();
    let id = server.start("seq 1 300000; echo flood is over; sleep 100");
    let request = json!({ "ask": "logs", "proc_id": id, "stream": "all", "tail": null, "follow": true });
    let stalled: Vec<UnixStream> = (0..12)
        .map(|_| {
            let mut stream = connect(&desk);
            writeln!(stream, "{request}").expect("the broker reads");
            // It has been given its place.
            stream.read_exact(&mut [0]).expect("an answer");
            stream
        })
        .collect();
    server.until(&id, "flood is over");
    assert_eq!(server.call("run", &json!({ "command": "echo fine" }))["stdout"], "fine\n");
    assert_eq!(desk.ps(&[])[0]["running"], 1);
    let refused = desk.say(&["logs", "-f", &id]);
    assert_eq!(refused.code, 125, "{refused:?}");
    assert!(refused.stderr.contains("12 others follow"), "{refused:?}");
    drop(stalled);
    soon("places that were given back", || desk.say(&["logs", "--tail", "1", &id]).code == 0);
}

#[test]
fn what_is_no_request_is_refused_and_the_broker_goes_on() {
    let desk = Desk::new();
    let mut server = desk.serve();
    let id = server.start("sleep 100");
    let long = format!("{{\"ask\":\"{}\"}}\n", "x".repeat(70_000));
    let unknown = "{\"ask\":\"logs\",\"proc_id\":\"p_nobody\",\"stream\":\"all\",\"tail\":null,\"follow\":true}\n";
    for (said, code) in [
        ("not json\n", "INVALID_ARGUMENT"),
        ("{\"ask\":\"reboot\"}\n", "INVALID_ARGUMENT"),
        ("{\"ask\":\"stop\",\"proc_id\":null,\"signal\":15}\n", "INVALID_ARGUMENT"),
        (long.as_str(), "INVALID_ARGUMENT"),
        (unknown, "PROCESS_NOT_FOUND"),
    ] {
        let mut stream = connect(&desk);
        // It may hang up before it has read everything.
        let _ = stream.write_all(said.as_bytes());
        let mut line = String::new();
        let _ = BufReader::new(&stream).read_line(&mut line);
        assert!(line.contains("\"answer\":\"refused\"") && line.contains(code), "{line:?}");
    }
    // A frame that is none ends the visit, and only that.
    let mut stream = connect(&desk);
    let attach = json!({ "ask": "attach", "proc_id": id, "write": true, "size": { "rows": 24, "cols": 80 } });
    stream.write_all(format!("{attach}\n").as_bytes()).expect("the broker reads");
    stream.write_all(&[5, 0xff, 0xff, 0xff, 0x7f]).expect("the broker reads");
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).expect("it hangs up");
    let outcome: Outcome = desk.say(&["stop", &id]);
    assert_eq!(outcome.code, 0, "{outcome:?}");
}

#[test]
fn a_broker_that_is_stopped_is_listed_as_silent() {
    let desk = Desk::new();
    let mut server = desk.serve();
    let id = server.start("echo on disk; sleep 100");
    server.until(&id, "on disk");
    let pid = nix::unistd::Pid::from_raw(server.child.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGSTOP).expect("ours");
    let listed = desk.ps(&[]);
    let logs = desk.say(&["logs", &id]);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGCONT).expect("ours");
    assert_eq!(listed[0]["state"], "silent", "{listed:?}");
    assert_eq!((logs.code, logs.stdout.as_str()), (0, "on disk\n"), "{logs:?}");
}
