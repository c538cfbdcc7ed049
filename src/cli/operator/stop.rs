//! `stockade stop`: ends one process, or all of some brokers.

use super::StopArgs;
use super::find::{self, Place};
use crate::broker::control::client::Line;
use crate::broker::control::message::{Answer, Request, Stop};
use crate::broker::state::look::Found;
use crate::cli::say::Complaint;
use crate::policy::units::read_duration;
use nix::sys::signal::Signal;
use std::time::Duration;

const MAX_GRACE: Duration = Duration::from_secs(60);

/// After the kill, what the broker itself waits for.
const AFTER: Duration = Duration::from_secs(6);

pub fn stop(args: &StopArgs) -> Result<u8, Complaint> {
    let signal = signal(&args.signal)?;
    let grace = read_duration("--grace", &args.grace, Duration::ZERO..=MAX_GRACE)?;
    let brokers = find::brokers()?;
    let order = |proc_id: Option<String>| Stop { proc_id, signal, grace_ms: grace.as_millis() as u64 };
    if let Some(wanted) = &args.process {
        return match find::process(&brokers, wanted)? {
            Place::Live(found, process) => {
                say(&send(&found, order(Some(process.proc_id.clone())))?);
                Ok(0)
            }
            Place::Stored(process) => {
                Err(Complaint::not_found(format!("`{}` has ended with its broker", process.record.proc_id)))
            }
        };
    }
    let is_meant = |broker: &&find::Broker| {
        args.all || args.agent.as_ref() == Some(&broker.found.agent) || args.broker.as_ref() == Some(&broker.found.name)
    };
    let running = || brokers.iter().filter(|broker| broker.status().is_some());
    let meant: Vec<_> = running().filter(is_meant).collect();
    if meant.is_empty() && !args.all {
        let names: Vec<String> = running().map(|b| format!("  {} {}", b.found.agent, b.found.name)).collect();
        let hint = if names.is_empty() { "none runs".into() } else { format!("there are\n{}", names.join("\n")) };
        return Err(Complaint::not_found("no such broker runs").hint(hint));
    }
    for broker in meant {
        say(&send(&broker.found, order(None))?);
    }
    Ok(0)
}

fn send(found: &Found, stop: Stop) -> Result<Vec<String>, Complaint> {
    let longer = Duration::from_millis(stop.grace_ms) + AFTER;
    let mut line = Line::connect(&found.path).map_err(|error| super::logs::gone(&error))?;
    match line.ask(&Request::Stop(stop), longer).map_err(|error| super::logs::gone(&error))? {
        Answer::Stopped { stopped } => Ok(stopped),
        Answer::Refused { code, message } if code == "PROCESS_NOT_FOUND" => Err(Complaint::not_found(message)),
        Answer::Refused { message, .. } => Err(Complaint::new(message)),
        _ => Err(Complaint::new("the broker answers something else")),
    }
}

fn say(stopped: &[String]) {
    stopped.iter().for_each(|proc_id| println!("{proc_id}"));
}

/// `TERM` or `SIGTERM`, of those that can end something.
fn signal(name: &str) -> Result<i32, Complaint> {
    use Signal::{SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
    let full = if name.starts_with("SIG") { name.to_owned() } else { format!("SIG{name}") };
    let known = [SIGINT, SIGTERM, SIGHUP, SIGKILL, SIGQUIT, SIGUSR1, SIGUSR2];
    match known.into_iter().find(|signal| signal.as_str() == full) {
        Some(signal) => Ok(signal as i32),
        None => Err(Complaint::new(format!("`--signal {name}` ends nothing"))
            .hint("accepted: INT TERM HUP KILL QUIT USR1 USR2")),
    }
}
