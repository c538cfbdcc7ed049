//! `run ["/bin/true"]` through the protocol, beside a plain spawn of the same program.

use super::client::{Connection, Program};
use super::figure::{Figure, Target};
use crate::bench::contenders;
use crate::bench::measure::{Client, Contender, Pace, burst_of, latency};
use crate::bench::stats::Row;
use crate::shell::Result;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// At once, be they clients with a server each or calls to one server.
const AT_ONCE: usize = 8;

/// How often each way of running many takes its turn, and for how long.
const PASSES: usize = 5;
const BURST: Duration = Duration::from_secs(1);

/// From the request written to the reply read.
pub fn one_client(server: &Program, rounds: usize, pace: Pace, when: &str) -> Result<Figure> {
    let (ours, plain) = beside_plain(server, "run", &json!({ "argv": ["/bin/true"] }), rounds, pace)?;
    Ok(Figure {
        what: format!("`run [\"/bin/true\"]`, {when}"),
        measured: micros(ours),
        beside: format!("plain spawn {}", micros(plain)),
        value: ours.as_secs_f64() / plain.as_secs_f64(),
        unit: "×",
        target: Some(Target::AtMost(1.3)),
    })
}

/// Desktop Commander starts a shell for each command; that is how it is used.
pub fn commander(commander: &Program, stockade: &Program, rounds: usize) -> Result<Figure> {
    let theirs = contender(commander, "start_process", json!({ "command": "/bin/true", "timeout_ms": 5000 }));
    let ours = contender(stockade, "run", json!({ "command": "/bin/true" }));
    let (ours, theirs) = medians(&[ours, theirs], rounds, Pace::Tight)?;
    Ok(Figure {
        what: "`run \"/bin/true\"` in a shell".into(),
        measured: micros(ours),
        beside: format!("Desktop Commander {}", micros(theirs)),
        value: ours.as_secs_f64() / theirs.as_secs_f64(),
        unit: "×",
        target: None,
    })
}

/// Runs per second: plain, of clients with a server each, and of as many calls in flight on one server.
pub fn many(server: &Program) -> Result<Vec<Figure>> {
    let plain = contenders::plain();
    let ours = contender(server, "run", json!({ "argv": ["/bin/true"] }));
    let mut one = server.connect()?;
    let mut rates = [const { Vec::new() }; 3];
    for _ in 0..PASSES {
        rates[0].push(burst_of(&plain, AT_ONCE, BURST)?);
        rates[1].push(burst_of(&ours, AT_ONCE, BURST)?);
        rates[2].push(in_flight(&mut one)?);
    }
    let [plain, each, one] = rates.map(super::median);
    let figure = |what: &str, rate: f64| Figure {
        what: format!("`run [\"/bin/true\"]`, {what}"),
        measured: format!("{rate:.0}/s"),
        beside: format!("plain, {AT_ONCE} threads {plain:.0}/s"),
        value: rate / plain,
        unit: "×",
        target: Some(Target::AtLeast(0.4)),
    };
    let each = figure(&format!("{AT_ONCE} clients, a server each"), each);
    Ok(vec![each, figure(&format!("{AT_ONCE} calls in flight on one server"), one)])
}

fn in_flight(connection: &mut Connection) -> Result<f64> {
    let arguments = json!({ "argv": ["/bin/true"] });
    let start = Instant::now();
    for _ in 0..AT_ONCE {
        connection.send_call("run", &arguments)?;
    }
    let mut done = 0_u32;
    while start.elapsed() < BURST {
        succeeded(&connection.answer()?)?;
        connection.send_call("run", &arguments)?;
        done += 1;
    }
    let rate = f64::from(done) / start.elapsed().as_secs_f64();
    for _ in 0..AT_ONCE {
        succeeded(&connection.answer()?)?;
    }
    Ok(rate)
}

fn beside_plain(
    server: &Program,
    tool: &'static str,
    arguments: &Value,
    rounds: usize,
    pace: Pace,
) -> Result<(Duration, Duration)> {
    medians(&[contender(server, tool, arguments.clone()), contenders::plain()], rounds, pace)
}

fn medians(two: &[Contender; 2], rounds: usize, pace: Pace) -> Result<(Duration, Duration)> {
    match latency(two, rounds, pace)?.rows() {
        [Row::Latency { median: one, .. }, Row::Latency { median: other, .. }] => Ok((*one, *other)),
        _ => Err("two contenders give two rows".into()),
    }
}

/// A server for each client.
fn contender(server: &Program, tool: &'static str, arguments: Value) -> Contender {
    let server = server.clone();
    Contender::new(server.name, move || {
        let mut connection = server.connect()?;
        let arguments = arguments.clone();
        let client: Client = Box::new(move || {
            connection.send_call(tool, &arguments)?;
            succeeded(&connection.answer()?)
        });
        Ok(client)
    })
}

/// Looked for in the text: taking it apart would be measured too.
fn succeeded(answer: &str) -> Result {
    let failed = answer.contains("\"isError\":true") || answer.contains("\"error\":{");
    let is_ours = answer.contains("\"proc_id\"");
    if failed || (is_ours && !answer.contains("\"exit_code\":0")) {
        return Err(format!("a run failed: {answer}"));
    }
    Ok(())
}

fn micros(time: Duration) -> String {
    format!("{} µs", time.as_micros())
}
