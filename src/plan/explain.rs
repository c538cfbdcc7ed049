//! The plan in words. It reads the plan that would be carried out, so it cannot say anything else.

use super::cell::{CellPlan, Executable, NetworkSpace, Origin, Ownership, Step, SupplementaryGroups, Writable};
use super::command::CommandPlan;
use super::proxy::ProxyPlan;
use super::syscalls;
use crate::host::System;
use crate::policy::{Network, Policy};
use std::fmt::Write;
use std::time::Duration;

/// What running the command would do, for the operator.
pub fn explain(policy: &Policy, system: &System, cell: &CellPlan, command: &CommandPlan) -> String {
    let mut text = String::new();
    section(&mut text, "command", &words(command));
    section(&mut text, "identity", &identity(cell));
    section(&mut text, "files", &files(cell));
    section(&mut text, "programs", &programs(system));
    section(&mut text, "network", &network(policy, cell));
    section(&mut text, "limits", &limits(policy, cell));
    section(&mut text, "system calls", &calls(policy, system, cell));
    section(&mut text, "landlock", &landlock(cell));
    let missing = cell.missing_walls();
    if !missing.is_empty() {
        section(
            &mut text,
            "NOT ENFORCED",
            &[format!("{}: this host cannot, and the policy allows going without", missing.join(", "))],
        );
    }
    text
}

fn section(text: &mut String, title: &str, lines: &[String]) {
    for (index, line) in lines.iter().enumerate() {
        let label = if index == 0 { title } else { "" };
        // Names come from agents: nothing a terminal would obey.
        let line: String = line.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        let _ = writeln!(text, "{label:<13} {line}");
    }
}

fn words(command: &CommandPlan) -> Vec<String> {
    let mut lines = vec![command.argv.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")];
    let candidates: Vec<String> = command.candidates.iter().map(ToString::to_string).collect();
    lines.push(format!("looked for as {}", candidates.join(", ")));
    lines.push(format!("starts in {}", command.cwd));
    let names: Vec<&str> = command.env.iter().map(|(name, _)| name.as_str()).collect();
    lines.push(format!("environment: {}", names.join(", ")));
    lines
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

fn identity(cell: &CellPlan) -> Vec<String> {
    let id = &cell.identity;
    let mut lines = vec![format!(
        "uid {} inside is uid {} on the host; no capability, no way to get one",
        id.inner_uid, id.outer_uid
    )];
    lines.push(match id.ownership {
        Ownership::Idmapped => "files it makes in a root belong to the owner of that root (idmapped mounts)".into(),
        Ownership::Same => "files it makes in a root belong to that uid".into(),
    });
    if id.groups == SupplementaryGroups::Kept {
        lines
            .push("supplementary groups stay with the process, as `nogroup`: an ordinary user cannot drop them".into());
    }
    lines
}

fn files(cell: &CellPlan) -> Vec<String> {
    let mut lines = Vec::new();
    for step in &cell.steps {
        match step {
            Step::Bind { at, origin: Origin::Root, writable, executable, .. } => {
                let access = if *writable == Writable::Yes { "read-write" } else { "read-only" };
                let run = if *executable == Executable::Yes { "" } else { ", nothing in it can be executed" };
                lines.push(format!("{at}: {access}{run}"));
            }
            Step::Mask { at, .. } if !at.as_path().starts_with("/usr") => lines.push(format!("{at}: hidden")),
            Step::Scratch { at, .. } => lines.push(format!("{at}: private, in memory")),
            _ => {}
        }
    }
    let shared = cell.scratch;
    lines.push(format!("private memory holds at most {} bytes and {} files together", shared.bytes, shared.inodes));
    lines.push("the system (/usr and what of /etc holds no secret): read-only; nothing else of the host exists".into());
    lines
}

fn programs(system: &System) -> Vec<String> {
    let mut lines = Vec::new();
    match &system.programs.listed {
        None => lines.push("everything that is there may be executed".into()),
        Some(listed) => {
            let hidden: usize = listed.others.iter().map(|other| other.programs.len()).sum();
            let allowed = listed.allowed.iter().chain(&listed.directories).map(|path| path.display().to_string());
            lines.push(format!("only these: {}", allowed.collect::<Vec<_>>().join(", ")));
            lines.push(format!("{hidden} other compiled programs of the system can be neither executed nor read"));
        }
    }
    if !system.programs.blocked.is_empty() {
        let blocked = system.programs.blocked.iter().map(|path| path.display().to_string());
        lines.push(format!("neither executed nor read: {}", blocked.collect::<Vec<_>>().join(", ")));
    }
    lines
}

fn network(policy: &Policy, cell: &CellPlan) -> Vec<String> {
    if let Some(proxy) = &cell.proxy {
        return proxied(proxy);
    }
    let line = match (&policy.network, cell.network) {
        (Network::Host { connect_ports, bind_ports }, NetworkSpace::Host) => {
            let list = |ports: &Option<Vec<u16>>| match ports {
                None => "any port".into(),
                Some(ports) => format!("TCP ports {ports:?} only, no UDP"),
            };
            format!("the host's: connect to {}, listen on {}", list(connect_ports), list(bind_ports))
        }
        _ => "loopback of its own, nothing else".into(),
    };
    vec![line]
}

fn proxied(proxy: &ProxyPlan) -> Vec<String> {
    let rules: Vec<String> = proxy.allow.iter().map(ToString::to_string).collect();
    let whom = if rules.is_empty() { "nobody: `allow_hosts` is empty".into() } else { rules.join(", ") };
    vec![
        format!("loopback of its own; through the broker's proxy on 127.0.0.1:{}: {whom}", proxy.port),
        "where no port is given, 80 and 443; a name is not followed to an address that is not public".into(),
    ]
}

fn limits(policy: &Policy, cell: &CellPlan) -> Vec<String> {
    let limits = &policy.limits;
    let mut lines = Vec::new();
    if let Some(groups) = &cell.groups {
        lines.push(format!(
            "cgroup: {} bytes of memory (no swap), {} CPUs, {} processes",
            groups.memory, groups.cpus, groups.processes
        ));
    }
    lines.push(format!(
        "{} open files, files of at most {} bytes, no core dumps",
        limits.open_files, limits.file_size.0
    ));
    lines.push(format!(
        "ends after {}, or {} without a byte in or out",
        time(limits.wall_time),
        time(limits.idle_time)
    ));
    lines.extend(limits.cpu_time.map(|cpu| format!("ends after {} of CPU time", time(cpu))));
    lines
}

fn time(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 60, seconds % 60) {
        (0, _) => format!("{:.1} s", duration.as_secs_f64()),
        (minutes, 0) => format!("{minutes} min"),
        (minutes, rest) => format!("{minutes} min {rest} s"),
    }
}

fn calls(policy: &Policy, system: &System, cell: &CellPlan) -> Vec<String> {
    let Some(filter) = &cell.filter else { return Vec::new() };
    let rules = syscalls::describe(&super::filter_input(policy, system));
    let allowed: usize = rules.iter().filter(|rule| rule.answer == "allowed").map(|rule| rule.calls.len()).sum();
    let judged: usize =
        rules.iter().filter(|rule| rule.answer.contains("arguments")).map(|rule| rule.calls.len()).sum();
    let line =
        format!("{allowed} allowed, {judged} by their arguments, all others refused ({} instructions)", filter.0.len());
    let groups = policy.syscalls.iter().map(|group| format!("added by the policy: {group:?}").to_lowercase());
    std::iter::once(line).chain(groups).collect()
}

fn landlock(cell: &CellPlan) -> Vec<String> {
    let Some(landlock) = &cell.landlock else { return Vec::new() };
    vec![format!("ABI {}: {} paths granted a second time, everything else denied", landlock.abi, landlock.paths.len())]
}
