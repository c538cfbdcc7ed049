//! Much output and many processes: how fast, and in how much memory.

use super::client::{Connection, Program};
use super::figure::{Figure, Target};
use super::median;
use crate::shell::{About, Result, run_quietly};
use serde_json::json;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

const FLOODS: usize = 3;
const GIGABYTE: u64 = 1 << 30;

const QUIET: usize = 32;

/// Until what a start brought into memory has settled.
const SETTLING: Duration = Duration::from_millis(500);

/// The speed of a flood through `run`, and the most memory the broker had meanwhile.
pub fn flood(server: &Program) -> Result<Vec<Figure>> {
    let mut connection = server.connect()?;
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..FLOODS {
        let start = Instant::now();
        run_quietly(Command::new("/bin/sh").args(["-c", "head -c 1G /dev/zero | cat > /dev/null"]))?;
        plain.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        let argv = ["/usr/bin/head", "-c", "1G", "/dev/zero"];
        let ran = connection.call("run", &json!({ "argv": argv, "yield_ms": 55_000 }))?;
        ours.push(start.elapsed().as_secs_f64());
        if ran["stdout_bytes"] != GIGABYTE || ran["exit_code"] != 0 {
            return Err(format!("the flood was not taken: {ran}"));
        }
    }
    let (ours, plain) = (median(ours), median(plain));
    let speed = Figure {
        what: "`head -c 1G /dev/zero` through `run`".into(),
        measured: format!("{:.0} ms", ours * 1e3),
        beside: format!("`\\| cat > /dev/null` {:.0} ms", plain * 1e3),
        value: plain / ours,
        unit: "×",
        target: Some(Target::AtLeast(0.7)),
    };
    let peak = connection.memory("VmHWM")?;
    Ok(vec![speed, memory("peak RSS of the broker in the flood".into(), peak, 40.0)])
}

/// Memory at rest, without processes and with many that say nothing.
pub fn quiet(server: &Program) -> Result<Vec<Figure>> {
    let mut connection = server.connect()?;
    // The cell is made meanwhile; the answer says that it is there.
    connection.call("run", &json!({ "argv": ["/bin/true"] }))?;
    thread::sleep(SETTLING);
    let idle = connection.memory("VmRSS")?;
    for _ in 0..QUIET {
        connection.call("proc_start", &json!({ "argv": ["/usr/bin/sleep", "600"], "initial_read_timeout_ms": 0 }))?;
    }
    thread::sleep(SETTLING);
    let full = connection.memory("VmRSS")?;
    Ok(vec![
        memory("RSS of the broker, idle".into(), idle, 15.0),
        memory(format!("RSS of the broker with {QUIET} quiet processes"), full, 30.0),
    ])
}

/// From the start of the server to its first reply.
pub fn first_reply(server: &Program, rounds: usize) -> Result<Figure> {
    let mut times = Vec::new();
    let mut plain = Vec::new();
    for _ in 0..rounds {
        let start = Instant::now();
        run_quietly(&mut Command::new("/bin/true"))?;
        plain.push(start.elapsed().as_secs_f64() * 1e3);
        let start = Instant::now();
        let connection = server.connect()?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
        drop(connection);
    }
    let time = median(times);
    Ok(Figure {
        what: "spawn to first reply".into(),
        measured: format!("{time:.1} ms"),
        beside: format!("plain spawn {:.1} ms", median(plain)),
        value: time,
        unit: "ms",
        target: Some(Target::AtMost(15.0)),
    })
}

/// What a model is given of the tools, in bytes.
pub fn tools(server: &Program, surface: &str, target: f64) -> Result<Figure> {
    let mut connection = server.connect()?;
    let (bytes, count) = given(&mut connection)?;
    Ok(Figure {
        what: format!("bytes of tools given to a model, {surface}"),
        measured: format!("{count} tools"),
        beside: String::new(),
        value: bytes,
        unit: "B",
        target: Some(Target::AtMost(target)),
    })
}

fn given(connection: &mut Connection) -> Result<(f64, usize)> {
    let listed = connection.request("tools/list", &json!({}))?;
    let tools = listed["tools"].as_array().ok_or("`tools/list` gave no list")?;
    let given = tools.iter().map(
        |tool| json!({ "name": tool["name"], "description": tool["description"], "inputSchema": tool["inputSchema"] }),
    );
    let given: Vec<_> = given.collect();
    let text = serde_json::to_string(&given).about("tools/list")?;
    let bytes = u32::try_from(text.len()).about("tools/list")?;
    Ok((f64::from(bytes), tools.len()))
}

fn memory(what: String, kib: f64, target: f64) -> Figure {
    let value = kib / 1024.0;
    let (measured, beside) = (format!("{kib:.0} KiB"), String::new());
    Figure { what, measured, beside, value, unit: "MiB", target: Some(Target::AtMost(target)) }
}
