//! What an agent is told once, before it calls anything: how this terminal works and where its walls are.

use crate::mcp::operation::Feature;
use crate::policy::{Access, Network, Policy, Surface};
use std::fmt::Write;

/// Roots named in full; a policy may have hundreds.
const ROOTS: usize = 8;

pub fn instructions(policy: &Policy) -> String {
    let mut lines: Vec<String> = Vec::new();
    let repl = Feature::Repl.is_on(&policy.tools);
    let names = Names::of(policy.tools.surface);
    lines.push("A Linux terminal inside kernel walls; what lies outside them does not exist for a command.".into());
    if policy.tools.processes {
        lines.push(running(policy, &names));
    }
    if repl {
        let Names { start, send, read, stop, open } = names;
        lines.push(format!(
            "Servers, REPLs and terminal programs (pty): {start}, then {send} and {read}; end with {stop}."
        ));
        lines.push(format!(
            "Wait, do not poll: {read} and {send} return when `until` (a regex) matches; {read} also after output and \
             `quiet_ms` of silence."
        ));
        lines.push(format!(
            "{read} goes on where your last read ended; pass `cursor` (a `next_cursor`) to read from there again."
        ));
        lines.push(format!(
            "A reply holds {} bytes: head, tail and `highlights`; page through the rest with {read} (`from_line`, \
             `tail_lines`, `max_bytes`).",
            policy.limits.inline_bytes.0
        ));
        lines.push(format!(
            "Sessions ({open}) keep a cwd, an env and their processes together; the first is `default`."
        ));
    }
    let mut around = files(policy);
    if policy.tools.files {
        let (read, edit, search) = match policy.tools.surface {
            Surface::Verbs => ("fs_read", "fs_edit", "search_start"),
            Surface::Families => ("fs read", "fs edit", "search start"),
        };
        let _ = write!(around, " {read}, {edit} (it keeps a backup) and {search} see exactly what a command sees.");
    }
    lines.push(around);
    lines.push(network(policy));
    lines.push(
        "An error names the rule and what it accepts; `code` is stable. Trying again unchanged does not help.".into(),
    );
    lines.join("\n")
}

/// The tools by the names of the surface in force.
#[derive(Debug, Clone, Copy)]
struct Names {
    start: &'static str,
    send: &'static str,
    read: &'static str,
    stop: &'static str,
    open: &'static str,
}

impl Names {
    fn of(surface: Surface) -> Self {
        match surface {
            Surface::Verbs => Names {
                start: "proc_start",
                send: "proc_send",
                read: "proc_read",
                stop: "proc_stop",
                open: "session_open",
            },
            Surface::Families => Names {
                start: "process start",
                send: "process send",
                read: "process read",
                stop: "process stop",
                open: "session open",
            },
        }
    }
}

fn running(policy: &Policy, names: &Names) -> String {
    let mut line = String::from("run: one command to its end, `argv` exactly");
    match &policy.commands.shell {
        Some(shell) => write!(line, " or `command` for {}", shell.display()),
        None => write!(line, " (this policy has no shell)"),
    }
    .expect("a String takes all that is written to it");
    let time = policy.limits.wall_time.as_secs();
    if Feature::Repl.is_on(&policy.tools) {
        let read = names.read;
        write!(
            line,
            ". After 45 s (`yield_ms`) it goes on as a process: follow its `proc_id` with {read}. It ends at {time} s."
        )
    } else {
        write!(line, ". It is ended after {time} s unless `timeout_ms` says otherwise.")
    }
    .expect("a String takes all that is written to it");
    line
}

fn files(policy: &Policy) -> String {
    let roots = |access| {
        let granted = policy.filesystem.grants.iter().filter(move |grant| grant.access == access);
        let mut paths: Vec<_> = granted.map(|grant| grant.path.display().to_string()).collect();
        let more = paths.len().saturating_sub(ROOTS);
        paths.truncate(ROOTS);
        if more > 0 {
            paths.push(format!("{more} more"));
        }
        paths
    };
    let writable = [roots(Access::ReadWrite), vec!["/tmp and $HOME (private, empty at first)".into()]].concat();
    let read_only = [vec!["the system".into()], roots(Access::ReadOnly)].concat();
    format!(
        "Writable: {}. Read-only: {}. Commands start in {}.",
        writable.join(", "),
        read_only.join(", "),
        policy.workspace.display()
    )
}

fn network(policy: &Policy) -> String {
    match &policy.network {
        Network::None => "Network: none but loopback, shared by your commands; nothing can be downloaded.".into(),
        Network::Host { .. } => "Network: the host's, as far as the policy's ports go.".into(),
        Network::Proxy { allow_hosts } => format!(
            "Network: HTTP and HTTPS through the proxy in $HTTPS_PROXY, to the {} hosts the policy names.",
            allow_hosts.len()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::instructions;
    use crate::policy::{Network, Overrides, Policy, Surface};

    fn default() -> Policy {
        let workspace = std::env::temp_dir().join(format!("stockade-instructions-{}", std::process::id()));
        std::fs::create_dir_all(&workspace).unwrap();
        let policy = Policy::load(Some("default"), Some(&workspace), &Overrides::default());
        std::fs::remove_dir(&workspace).unwrap();
        policy.unwrap()
    }

    #[test]
    fn the_instructions_are_short_and_speak_of_the_policy_in_force() {
        let mut policy = default();
        let text = instructions(&policy);
        assert_eq!(text.lines().count(), 10, "{text}");
        assert!(text.contains("Network: none") && text.contains("proc_read"), "{text}");
        assert!(text.contains(&policy.workspace.display().to_string()), "{text}");
        policy.network = Network::Host { connect_ports: None, bind_ports: None };
        policy.tools.surface = Surface::Families;
        let text = instructions(&policy);
        assert!(text.contains("Network: the host's") && !text.contains("proc_read"), "{text}");
        policy.tools.repl = false;
        let text = instructions(&policy);
        assert!(text.contains("run: one command") && !text.contains("yield"), "{text}");
        policy.tools.processes = false;
        assert!(!instructions(&policy).contains("run:"));
    }
}
