//! `stockade ps`: every broker of this user, and what runs in it.

use super::PsArgs;
use super::find::{self, Broker, Said};
use super::table::{columns, one_line, size, time};
use crate::broker::control::message::Process;
use crate::broker::state::Recovered;
use crate::cli::say::Complaint;
use crate::cli::terminal;
use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::time::SystemTime;

#[derive(Debug, Serialize)]
struct Report {
    brokers: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    broker: String,
    agent: String,
    /// `running`, `silent` (it does not answer) or `dead`.
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    trouble: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uptime_ms: Option<u64>,
    running: usize,
    ended: usize,
    processes: Vec<Process>,
}

pub fn ps(args: &PsArgs) -> Result<u8, Complaint> {
    let brokers = find::brokers()?;
    let stored = if args.all { find::stored(&brokers) } else { Vec::new() };
    let mut rows: Vec<Row> = brokers.iter().map(Row::of).collect();
    for (broker, process) in stored {
        let at = rows.iter_mut().find(|row| row.broker == broker.found.name && row.agent == broker.found.agent);
        if let Some(row) = at {
            row.processes.push(from_disk(&process, &broker.said));
        }
    }
    for row in &mut rows {
        row.running = row.processes.iter().filter(|process| process.is_running()).count();
        row.ended = row.processes.len() - row.running;
        row.processes.retain(|process| args.all || process.is_running());
    }
    rows.retain(|row| row.state != "dead" || (args.all && !row.processes.is_empty()));
    let text = match args.json {
        true => serde_json::to_string(&Report { brokers: rows }).map_err(Complaint::new)? + "\n",
        false => in_words(&rows),
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(0),
    }
}

impl Row {
    fn of(broker: &Broker) -> Row {
        let mut row = Row {
            broker: broker.found.name.clone(),
            agent: broker.found.agent.clone(),
            state: "dead",
            trouble: None,
            policy: None,
            pid: None,
            uptime_ms: None,
            running: 0,
            ended: 0,
            processes: Vec::new(),
        };
        match &broker.said {
            Said::Dead => {}
            Said::Nothing(why) => (row.state, row.trouble) = ("silent", Some(why.clone())),
            Said::Status(status) => {
                row.state = "running";
                row.policy = Some(status.policy.clone());
                (row.pid, row.uptime_ms) = (Some(status.pid), Some(status.uptime_ms));
                row.processes.clone_from(&status.processes);
            }
        }
        row
    }

    fn head(&self) -> String {
        let mut words = vec![format!("{}: {}", one_line(&self.agent), self.state)];
        words.extend(self.trouble.as_ref().map(|why| one_line(why)));
        words.extend(self.policy.as_ref().map(|policy| format!("policy {}", one_line(policy))));
        words.extend(self.pid.map(|pid| format!("pid {pid}")));
        words.extend(self.uptime_ms.map(|millis| format!("up {}", time(millis))));
        words.push(format!("{} running, {} ended", self.running, self.ended));
        words.push(one_line(&self.broker));
        words.join(", ")
    }
}

/// One whose end nobody wrote down ended with its broker, if that is dead.
fn from_disk(process: &Recovered, broker: &Said) -> Process {
    let Recovered { record, end, output } = process;
    let last = output.last_activity().1.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let until = end.as_ref().map_or(last.as_micros() as u64, |end| end.ended_at);
    let (state, reason) = match (end, broker) {
        (Some(end), _) => ("exited", Some(end.reason.name())),
        (None, Said::Dead) => ("exited", Some("broker_restart")),
        (None, Said::Status(_) | Said::Nothing(_)) => ("unknown", None),
    };
    let totals = output.totals();
    Process {
        proc_id: record.proc_id.clone(),
        pid: record.pid,
        session: record.session.clone(),
        command: record.command.clone(),
        description: record.description.clone(),
        state: state.into(),
        reason: reason.map(str::to_owned),
        exit_code: end.as_ref().and_then(|end| end.exit_code),
        signal: end.as_ref().and_then(|end| end.signal),
        runtime_ms: until.saturating_sub(record.started_at) / 1000,
        cpu_ms: end.as_ref().map_or(0, |end| end.cpu_us / 1000),
        max_rss_kb: end.as_ref().map_or(0, |end| end.max_rss_kib),
        output_bytes: totals.total_bytes,
        dropped_bytes: totals.dropped_bytes,
        terminal: record.terminal,
    }
}

fn in_words(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "no broker runs\n".into();
    }
    let mut text = String::new();
    let width = std::io::stdout().is_terminal().then(|| usize::from(terminal::size().cols));
    for row in rows {
        text.push_str(&row.head());
        text.push('\n');
        if row.processes.is_empty() {
            continue;
        }
        let titles = ["PROC", "SESSION", "STATE", "REASON", "TIME", "CPU", "MEMORY", "OUTPUT", "COMMAND"];
        let mut cells = vec![titles.map(str::to_owned).to_vec()];
        cells.extend(row.processes.iter().map(line));
        for line in columns(&cells, width.map(|width| width.saturating_sub(2))) {
            text.push_str("  ");
            text.push_str(&line);
            text.push('\n');
        }
    }
    text
}

fn line(process: &Process) -> Vec<String> {
    let how = match (process.exit_code, process.signal) {
        (Some(code), _) => format!(" {code}"),
        (None, Some(signal)) => format!(" {signal}"),
        (None, None) => String::new(),
    };
    vec![
        process.proc_id.clone(),
        one_line(&process.session),
        process.state.clone(),
        process.reason.as_ref().map_or("-".into(), |reason| format!("{reason}{how}")),
        time(process.runtime_ms),
        time(process.cpu_ms),
        size(process.max_rss_kb * 1024),
        size(process.output_bytes),
        one_line(&process.command),
    ]
}
