//! A conversation with a Python REPL, and reads that must come back in time while another process floods.

use super::client::{Connection, Program};
use super::figure::{Figure, Target};
use super::median;
use crate::shell::{About, Result};
use serde_json::json;
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Interactive though its input is a pipe; it then writes out what it printed after each line.
const PYTHON: [&str; 3] = ["/usr/bin/python3", "-i", "-q"];

/// Not counted.
const WARM_UP: usize = 20;

const READS: usize = 200;
const PATIENCE: Duration = Duration::from_millis(20);

/// One question and its answer, in one call and over bare pipes.
pub fn repl(server: &Program, rounds: usize) -> Result<Figure> {
    let mut connection = server.connect()?;
    let started = connection.call("proc_start", &json!({ "argv": PYTHON }))?;
    let id = started["proc_id"].as_str().ok_or("`proc_start` gave no id")?.to_owned();
    let mut bare = Bare::start()?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..rounds + WARM_UP {
        let (question, answer) = (format!("print({round} + 100000)"), format!("{}\n", round + 100_000));
        let mut ask_ours = || {
            let start = Instant::now();
            ask(&mut connection, &id, &question, &answer)?;
            Result::Ok(start.elapsed().as_secs_f64())
        };
        let mut ask_bare = || {
            let start = Instant::now();
            bare.ask(&question, &answer)?;
            Result::Ok(start.elapsed().as_secs_f64())
        };
        // Whoever comes second finds a warmer machine; so they take turns.
        let (one, other) = if round % 2 == 0 {
            let one = ask_ours()?;
            (one, ask_bare()?)
        } else {
            let other = ask_bare()?;
            (ask_ours()?, other)
        };
        if round >= WARM_UP {
            ours.push(one);
            theirs.push(other);
        }
    }
    let (ours, theirs) = (median(ours), median(theirs));
    Ok(Figure {
        what: "Python REPL, `proc_send` + `until`".into(),
        measured: format!("{:.0} µs", ours * 1e6),
        beside: format!("bare pipes {:.0} µs", theirs * 1e6),
        value: ours / theirs,
        unit: "×",
        target: Some(Target::AtMost(1.3)),
    })
}

fn ask(connection: &mut Connection, id: &str, question: &str, answer: &str) -> Result {
    let arguments = json!({ "proc_id": id, "input": question, "wait_ms": 5000, "until": answer });
    connection.send_call("proc_send", &arguments)?;
    let reply = connection.answer()?;
    if reply.contains("\"matched\"") { Ok(()) } else { Err(format!("no match: {reply}")) }
}

/// Python without anything between.
struct Bare {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
}

impl Bare {
    fn start() -> Result<Bare> {
        let mut command = Command::new(PYTHON[0]);
        command.args(&PYTHON[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().about(PYTHON[0])?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("python3 has no pipes".into());
        };
        Ok(Bare { child, input, output })
    }

    fn ask(&mut self, question: &str, answer: &str) -> Result {
        self.input.write_all(format!("{question}\n").as_bytes()).about("python3")?;
        let mut heard = Vec::new();
        let mut buffer = [0; 4096];
        while !heard.ends_with(answer.as_bytes()) {
            match self.output.read(&mut buffer).about("python3")? {
                0 => return Err("python3 has gone away".into()),
                got => heard.extend_from_slice(&buffer[..got]),
            }
        }
        Ok(())
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// By how much the slowest of many reads outstayed its time-out, while another process of the same server floods.
pub fn overshoot(server: &Program) -> Result<Figure> {
    let mut connection = server.connect()?;
    connection.call("proc_start", &json!({ "argv": ["/usr/bin/cat", "/dev/zero"], "initial_read_timeout_ms": 100 }))?;
    let quiet =
        connection.call("proc_start", &json!({ "argv": ["/usr/bin/sleep", "600"], "initial_read_timeout_ms": 0 }))?;
    let read = json!({ "proc_id": quiet["proc_id"], "timeout_ms": PATIENCE.as_millis() });
    let (mut ours, mut sleeps) = (Vec::new(), Vec::new());
    let over = |start: Instant| start.elapsed().saturating_sub(PATIENCE).as_secs_f64() * 1e3;
    for _ in 0..READS {
        let start = Instant::now();
        connection.send_call("proc_read", &read)?;
        connection.answer()?;
        ours.push(over(start));
        let start = Instant::now();
        thread::sleep(PATIENCE);
        sleeps.push(over(start));
    }
    let worst = |all: &[f64]| all.iter().copied().fold(0.0, f64::max);
    Ok(Figure {
        what: format!("`proc_read` beyond its time-out beside a flood, worst of {READS}"),
        measured: format!("median {:.1} ms", median(ours.clone())),
        beside: format!("plain sleep {:.1} ms", worst(&sleeps)),
        value: worst(&ours),
        unit: "ms",
        target: Some(Target::AtMost(10.0)),
    })
}
