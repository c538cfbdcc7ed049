//! Which brokers there are, and which process is meant.

use crate::broker::control::client::Line;
use crate::broker::control::message::{Answer, Process, Request, Status};
use crate::broker::state::Recovered;
use crate::broker::state::look::{self, Found};
use crate::cli::say::Complaint;
use std::collections::HashSet;
use std::io;
use std::time::Duration;

/// How many processes a complaint names.
const NAMED: usize = 10;

/// A broker's directory, and what came of asking there.
#[derive(Debug)]
pub struct Broker {
    pub found: Found,
    pub said: Said,
}

#[derive(Debug)]
pub enum Said {
    Status(Status),
    /// It is there and does not answer, and why.
    Nothing(String),
    Dead,
}

/// Where a process is to be found.
#[derive(Debug)]
pub enum Place {
    /// In a broker that runs.
    Live(Found, Box<Process>),
    /// On disk.
    Stored(Box<Recovered>),
}

/// Every broker of this user; root's are those of the system.
pub fn brokers() -> Result<Vec<Broker>, Complaint> {
    let base = crate::serve::state_directory()?;
    let found = look::brokers(&base)
        .map_err(|error| Complaint::new(format!("the state directory `{}`: {error}", base.display())))?;
    // One that hangs costs its own time only.
    std::thread::scope(|scope| {
        let asked: Vec<_> = found.into_iter().map(|found| (found.clone(), scope.spawn(move || ask(&found)))).collect();
        let join = |(found, asked): (Found, std::thread::ScopedJoinHandle<'_, Said>)| {
            let said = asked.join().unwrap_or_else(|_| Said::Nothing("it could not be asked".into()));
            Broker { found, said }
        };
        Ok(asked.into_iter().map(join).collect())
    })
}

fn ask(found: &Found) -> Said {
    let answer = Line::connect(&found.path).and_then(|mut line| line.ask(&Request::Status, Duration::ZERO));
    match answer {
        Ok(Answer::Status(status)) => Said::Status(status),
        Ok(_) => Said::Nothing("it answers something else".into()),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => Said::Dead,
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
            Said::Nothing("it does not answer in time".into())
        }
        Err(error) => Said::Nothing(error.to_string()),
    }
}

/// Processes that are on disk and known to no broker that answered, with the directory they are in.
pub fn stored(brokers: &[Broker]) -> Vec<(&Broker, Recovered)> {
    let known: HashSet<&str> = brokers.iter().filter_map(Broker::status).flat_map(ids).collect();
    let mut stored: Vec<(&Broker, Recovered)> = Vec::new();
    for broker in brokers {
        // A journal that cannot be read is the next broker's to complain about.
        for process in broker.found.processes().unwrap_or_default() {
            if !known.contains(process.record.proc_id.as_str()) {
                stored.push((broker, process));
            }
        }
    }
    stored
}

fn ids(status: &Status) -> impl Iterator<Item = &str> {
    status.processes.iter().map(|process| process.proc_id.as_str())
}

impl Broker {
    pub fn status(&self) -> Option<&Status> {
        match &self.said {
            Said::Status(status) => Some(status),
            Said::Nothing(_) | Said::Dead => None,
        }
    }
}

/// The one process whose id is this or begins so.
pub fn process(brokers: &[Broker], wanted: &str) -> Result<Place, Complaint> {
    let fits = |id: &str| !wanted.is_empty() && id.starts_with(wanted);
    let mut fitting: Vec<(String, String, Place)> = Vec::new();
    for broker in brokers {
        let known = broker.status().map_or(&[][..], |status| &status.processes);
        for process in known.iter().filter(|process| fits(&process.proc_id)) {
            let place = Place::Live(broker.found.clone(), Box::new(process.clone()));
            fitting.push((process.proc_id.clone(), process.command.clone(), place));
        }
    }
    for (_, process) in stored(brokers).into_iter().filter(|(_, process)| fits(&process.record.proc_id)) {
        let (id, command) = (process.record.proc_id.clone(), process.record.command.clone());
        fitting.push((id, command, Place::Stored(Box::new(process))));
    }
    if let Some(exact) = fitting.iter().position(|(id, ..)| id == wanted) {
        return Ok(fitting.swap_remove(exact).2);
    }
    match fitting.len() {
        0 => Err(unknown(brokers, wanted)),
        1 => Ok(fitting.remove(0).2),
        count => {
            let several = fitting.iter().map(|(id, command, _)| (id.as_str(), command.as_str()));
            Err(Complaint::not_found(format!("`{wanted}` is the beginning of {count} processes")).hint(named(several)))
        }
    }
}

fn unknown(brokers: &[Broker], wanted: &str) -> Complaint {
    let all = brokers.iter().filter_map(Broker::status).flat_map(|status| &status.processes);
    let mut all: Vec<&Process> = all.collect();
    all.sort_by_key(|process| !process.is_running());
    let complaint = Complaint::not_found(format!("no process `{wanted}`"));
    match all.len() {
        0 => complaint.hint("no broker that runs has any; `stockade ps --all` shows what earlier ones left"),
        _ => complaint.hint(named(all.iter().map(|process| (process.proc_id.as_str(), process.command.as_str())))),
    }
}

/// A line for each, up to a number.
fn named<'a>(all: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut lines = vec!["there are".to_owned()];
    let mut rest = 0;
    for (index, (id, command)) in all.enumerate() {
        if index < NAMED {
            lines.push(format!("  {id}  {}", super::table::cut(&super::table::one_line(command), 60)));
        } else {
            rest += 1;
        }
    }
    if rest > 0 {
        lines.push(format!("  and {rest} more; `stockade ps --all` shows them"));
    }
    lines.join("\n")
}
