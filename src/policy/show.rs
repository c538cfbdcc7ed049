//! A resolved policy as TOML again: complete, without `extends`, and fit to be read back.
//!
//! What is printed resolves, in the same workspace, to the same policy; only its name differs.

use std::fmt::{self, Write};

use super::error::visible;
use super::units::{show_bytes, show_duration};
use super::{
    Access, CommandRule, Demand, Expectation, HostUser, Network, Overflow, Policy, Surface, SyscallGroup, Verdict,
    words,
};

impl Policy {
    /// The policy in force, as a file.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        self.write(&mut text).expect("a String takes all that is written to it");
        text
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(
            out,
            "# `{}` as it is in force in the workspace `{}`.",
            visible(&self.name),
            visible(&self.workspace.display().to_string())
        )?;
        writeln!(out, "agent = {}", text(&self.agent))?;
        self.write_filesystem(out)?;
        writeln!(out, "\n[commands]")?;
        match &self.commands.shell {
            Some(shell) => writeln!(out, "shell = {}", text(&shell.display().to_string()))?,
            None => writeln!(out, "shell = false")?,
        }
        writeln!(out, "allowed = {}", list(self.commands.allowed.iter().map(rule)))?;
        writeln!(out, "blocked = {}", list(self.commands.blocked.iter().map(rule)))?;
        self.write_limits(out)?;
        self.write_network(out)?;
        self.write_environment(out)?;
        self.write_switches(out)?;
        self.expectations.iter().try_for_each(|expectation| write_expectation(out, expectation))
    }

    fn write_filesystem(&self, out: &mut String) -> fmt::Result {
        let filesystem = &self.filesystem;
        let roots = |access| {
            let granted = filesystem.grants.iter().filter(move |grant| grant.access == access);
            // A name that itself ends in `?` gets a second one, or it would be read as optional.
            list(
                granted
                    .map(|grant| grant.path.display().to_string())
                    .map(|path| if path.ends_with('?') { path + "?" } else { path }),
            )
        };
        writeln!(out, "\n[filesystem]\nallowed_roots = {}", roots(Access::ReadWrite))?;
        writeln!(out, "read_only_roots = {}", roots(Access::ReadOnly))?;
        writeln!(out, "hidden = {}", list(filesystem.hidden.iter().cloned()))?;
        writeln!(out, "tmp_size = \"{}\"", show_bytes(filesystem.tmp_size))?;
        writeln!(out, "tmp_inodes = {}", filesystem.tmp_inodes)?;
        writeln!(out, "max_file_bytes = \"{}\"", show_bytes(filesystem.max_file_bytes))
    }

    fn write_limits(&self, out: &mut String) -> fmt::Result {
        let limits = &self.limits;
        writeln!(out, "\n[limits]\nmemory = \"{}\"\ncpus = {:?}", show_bytes(limits.memory), limits.cpus)?;
        if let Some(time) = limits.cpu_time {
            writeln!(out, "cpu_time = \"{}\"", show_duration(time))?;
        }
        writeln!(out, "processes = {}\nopen_files = {}", limits.processes, limits.open_files)?;
        writeln!(out, "file_size = \"{}\"", show_bytes(limits.file_size))?;
        writeln!(out, "wall_time = \"{}\"", show_duration(limits.wall_time))?;
        writeln!(out, "max_wall_time = \"{}\"", show_duration(limits.max_wall_time))?;
        writeln!(out, "idle_time = \"{}\"", show_duration(limits.idle_time))?;
        writeln!(out, "output_bytes = \"{}\"", show_bytes(limits.output_bytes))?;
        writeln!(out, "output_overflow = \"{}\"", overflow_word(limits.output_overflow))?;
        writeln!(out, "inline_bytes = \"{}\"", show_bytes(limits.inline_bytes))?;
        let processes = &self.processes;
        writeln!(out, "\n[processes]\nper_session = {}\ntotal = {}", processes.per_session, processes.total)?;
        writeln!(out, "keep_finished = \"{}\"", show_duration(processes.keep_finished))
    }

    fn write_network(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "\n[network]")?;
        match &self.network {
            Network::None => writeln!(out, "mode = \"none\""),
            Network::Proxy { allow_hosts } => {
                writeln!(out, "mode = \"proxy\"\nallow_hosts = {}", list(allow_hosts.iter().map(ToString::to_string)))
            }
            Network::Host { connect_ports, bind_ports } => {
                writeln!(out, "mode = \"host\"")?;
                for (key, ports) in [("connect_ports", connect_ports), ("bind_ports", bind_ports)] {
                    if let Some(ports) = ports {
                        writeln!(out, "{key} = {ports:?}")?;
                    }
                }
                Ok(())
            }
        }
    }

    fn write_environment(&self, out: &mut String) -> fmt::Result {
        let environment = &self.environment;
        writeln!(out, "\n[environment]\npass = {}", list(environment.pass.iter().cloned()))?;
        writeln!(out, "redact = {}", list(environment.redact.iter().cloned()))?;
        let pairs: Vec<String> =
            environment.set.iter().map(|(name, value)| format!("{} = {}", text(name), text(value))).collect();
        match pairs.as_slice() {
            [] => Ok(()),
            pairs => writeln!(out, "set = {{ {} }}", pairs.join(", ")),
        }
    }

    fn write_switches(&self, out: &mut String) -> fmt::Result {
        let user = match self.identity {
            HostUser::Private => "private",
            HostUser::Owner => "owner",
            HostUser::Root => "root",
        };
        writeln!(out, "\n[identity]\nhost_user = \"{user}\"")?;
        writeln!(
            out,
            "\n[syscalls]\nallow = {}",
            list(self.syscalls.iter().map(|group| group_word(*group).to_owned()))
        )?;
        writeln!(out, "\n[enforcement]")?;
        let demands = &self.enforcement;
        for (key, demand) in [
            ("namespaces", demands.namespaces),
            ("landlock", demands.landlock),
            ("seccomp", demands.seccomp),
            ("cgroups", demands.cgroups),
        ] {
            let word = match demand {
                Demand::Required => "required",
                Demand::IfAvailable => "if-available",
            };
            writeln!(out, "{key} = \"{word}\"")?;
        }
        let tools = &self.tools;
        let surface = match tools.surface {
            Surface::Verbs => "verbs",
            Surface::Families => "families",
        };
        writeln!(out, "\n[tools]\nsurface = \"{surface}\"\nfiles = {}\nprocesses = {}", tools.files, tools.processes)?;
        writeln!(out, "repl = {}\nsystem = {}", tools.repl, tools.system)?;
        writeln!(out, "\n[retention]\nartifacts = \"{}\"", show_duration(self.retention.artifacts))?;
        writeln!(out, "max_bytes = \"{}\"", show_bytes(self.retention.max_bytes))
    }
}

fn overflow_word(overflow: Overflow) -> &'static str {
    match overflow {
        Overflow::DropOldest => "drop-oldest",
        Overflow::Pause => "pause",
        Overflow::Kill => "kill",
    }
}

fn group_word(group: SyscallGroup) -> &'static str {
    match group {
        SyscallGroup::Debug => "debug",
        SyscallGroup::Profile => "profile",
        SyscallGroup::IoUring => "io_uring",
    }
}

fn rule(rule: &CommandRule) -> String {
    words::join(std::iter::once(&rule.program).chain(&rule.arguments).map(String::as_str))
}

fn write_expectation(out: &mut String, expectation: &Expectation) -> fmt::Result {
    writeln!(out, "\n[[expect]]")?;
    if !expectation.why.is_empty() {
        writeln!(out, "why = {}", text(&expectation.why))?;
    }
    for verdict in [Verdict::Denied, Verdict::Allowed] {
        let claims = expectation.claims.iter().filter(|claim| claim.verdict == verdict);
        let entries: Vec<String> = claims.map(|claim| claim.attempt.to_string()).collect();
        if !entries.is_empty() {
            writeln!(out, "{verdict} = {}", list(entries.into_iter()))?;
        }
    }
    Ok(())
}

fn list(entries: impl Iterator<Item = String>) -> String {
    let entries: Vec<String> = entries.map(|entry| text(&entry)).collect();
    format!("[{}]", entries.join(", "))
}

/// A TOML string on one line, whatever is in it.
fn text(value: &str) -> String {
    let mut quoted = String::from("\"");
    for c in value.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => drop(write!(quoted, "\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
