//! SIGKILL of the server under numbered, checksummed output: what was acknowledged is there, and no one survives.

use crate::ends::{SOON, eventually, groups_of, marker, processes_with};
use crate::mcp::Client;
use crate::site::Site;
use crate::{Moments, times};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A line: nine digits, a blank, a checksum in eight more, a newline. So every offset tells what must stand there.
const LINE: u64 = 19;

/// Writes such lines, so many and then a pause.
const WRITER: &str = "import sys, time
n = 0
while True:
    lines = []
    for _ in range(int(sys.argv[1])):
        lines.append('%09d %08x\\n' % (n, (n * 2654435761) & 0xffffffff))
        n += 1
    sys.stdout.write(''.join(lines))
    sys.stdout.flush()
    time.sleep(float(sys.argv[2]))
";

fn line(number: u64) -> String {
    format!("{number:09} {:08x}\n", (number * 2_654_435_761) & 0xffff_ffff)
}

/// A process, and how far its output was acknowledged.
struct Writer {
    proc_id: Value,
    acknowledged: u64,
}

fn start(client: &mut Client, marker: &str, pace: [&str; 2]) -> Writer {
    let argv = json!(["python3", "-c", WRITER, pace[0], pace[1], marker]);
    let started = client.ok("proc_start", json!({ "argv": argv, "initial_read_timeout_ms": 0 }));
    Writer { proc_id: started["proc_id"].clone(), acknowledged: 0 }
}

/// Reads on; what is read is acknowledged.
fn read(client: &mut Client, writer: &mut Writer) {
    let read = client.ok("proc_read", json!({ "proc_id": writer.proc_id, "timeout_ms": 5 }));
    writer.acknowledged = read["next_cursor"].as_u64().expect("a number");
}

/// Holds everything that is kept against what must stand there; where it ends.
fn verify(client: &mut Client, proc_id: &Value) -> u64 {
    let (mut cursor, mut rest, mut at) = (0, String::new(), None);
    loop {
        let ask = json!({ "proc_id": proc_id, "cursor": cursor, "timeout_ms": 0, "max_bytes": 200_000 });
        let read = client.ok("proc_read", ask);
        let text = read["output"].as_str().expect("text");
        cursor = read["next_cursor"].as_u64().expect("a number");
        let begin = at.unwrap_or(cursor - text.len() as u64);
        assert!(at.is_none() || begin + (rest.len() + text.len()) as u64 == cursor, "a gap before {cursor}");
        rest.push_str(text);
        at = Some(check(&mut rest, begin));
        if read["more"] == false {
            assert!(line(at.unwrap_or(0) / LINE).starts_with(&rest), "a last line cut short: {rest:?}");
            return cursor;
        }
    }
}

/// Checks whole lines and takes them off; the offset of what is left.
fn check(text: &mut String, mut at: u64) -> u64 {
    // What is kept may begin in the middle of a line.
    let cut = ((LINE - at % LINE) % LINE).min(text.len() as u64);
    let tail = line(at / LINE);
    assert_eq!(&text[..cut as usize], &tail[(at % LINE) as usize..][..cut as usize], "at {at}");
    let mut done = cut as usize;
    at += cut;
    while text.len() - done >= LINE as usize {
        assert_eq!(&text[done..done + LINE as usize], line(at / LINE), "at {at}");
        done += LINE as usize;
        at += LINE;
    }
    text.drain(..done);
    at
}

#[test]
fn killed_again_and_again_nothing_acknowledged_is_lost_and_nobody_survives() {
    let site = Site::with("[limits]\noutput_bytes = \"1M\"\n[processes]\nper_session = 8");
    let mut moments = Moments::new();
    let (mut acknowledged, mut kept) = (0, 0);
    for round in 0..times(200) {
        let marker = marker();
        let mut client = site.open();
        let paces = [["10", "0.001"], ["1", "0.0005"], ["2000", "0"], ["100", "0.01"]];
        let mut writers: Vec<Writer> = paces.into_iter().map(|pace| start(&mut client, &marker, pace)).collect();
        let end = Instant::now() + Duration::from_millis(50 + moments.next(150));
        while Instant::now() < end {
            writers.iter_mut().for_each(|writer| read(&mut client, writer));
        }
        let broker = client.pid();
        client.kill();
        eventually("no orphan", SOON, || processes_with(&marker).is_empty() && groups_of(broker).is_empty());
        let mut client = site.open();
        let list = client.ok("proc_list", json!({}))["processes"].take();
        for writer in writers {
            let entry = list.as_array().expect("a list").iter().find(|entry| entry["proc_id"] == writer.proc_id);
            let entry = entry.unwrap_or_else(|| panic!("round {round}: {} is lost", writer.proc_id));
            assert_eq!(entry["reason"], "broker_restart", "round {round}: {entry}");
            let end = verify(&mut client, &writer.proc_id);
            assert!(end >= writer.acknowledged, "round {round}: {end} of {} acknowledged", writer.acknowledged);
            acknowledged += writer.acknowledged;
            kept += end;
            client.ok("proc_remove", json!({ "proc_id": writer.proc_id }));
        }
        client.hang_up();
        client.wait(SOON);
    }
    println!("{acknowledged} bytes acknowledged, {kept} found");
    assert!(acknowledged > 0);
}
