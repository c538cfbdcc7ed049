//! Who says whether a policy keeps its promises. Reading them is in [`super::promises`].
//!
//! [`Paper`] judges by the policy alone, without a cell; a [`Judge`] that asks the plan or a real
//! cell takes its place where there is one. [`verdict`] is the rule every wall repeats: the most
//! specific path wins and, on a tie, the stricter one.

use std::path::{Path, PathBuf};

use super::hosts::{Destination, Host, HostRule};
use super::places::lexical;
use super::{Access, Attempt, CommandRule, Network, Policy, Verdict, glob, words};

/// Says how an attempt would end; an error when it cannot tell.
pub trait Judge {
    fn judge(&self, policy: &Policy, attempt: &Attempt) -> Result<Verdict, String>;
}

/// Judges by what the policy says, on paper.
#[derive(Debug, Clone, Copy, Default)]
pub struct Paper;

/// What every cell has besides its roots, as far as paper can tell.
const SYSTEM: [&str; 9] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/passwd", "/etc/ssl"];
const PRIVATE: [&str; 4] = ["/tmp", "/var/tmp", "/dev/shm", "/home/agent"];
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

impl Judge for Paper {
    fn judge(&self, policy: &Policy, attempt: &Attempt) -> Result<Verdict, String> {
        let allowed = match attempt {
            Attempt::Read(path) => may_read(policy, path),
            Attempt::Write(path) => reach(policy, path) == Some(Access::ReadWrite),
            Attempt::Execute(program) => may_execute(policy, program),
            Attempt::Connect(host, port) => may_connect(&policy.network, host, *port),
            Attempt::Run(argv) => may_run(policy, argv),
        };
        Ok(if allowed { Verdict::Allowed } else { Verdict::Denied })
    }
}

/// What the policy's own rules say about a path; `None` when it is outside every root.
pub fn verdict(policy: &Policy, path: &Path) -> Option<Access> {
    let path = lexical(path);
    let grants = policy.filesystem.grants.iter();
    let roots =
        grants.clone().filter(|grant| path.starts_with(&grant.path)).map(|grant| (depth(&grant.path), grant.access));
    let hidden = policy.filesystem.hidden.iter().filter_map(|entry| hidden_depth(policy, entry, &path));
    // Tuples compare depth first, then strictness: the rule itself.
    roots.chain(hidden.map(|depth| (depth, Access::Hidden))).max().map(|(_, access)| access)
}

fn depth(path: &Path) -> usize {
    path.components().count()
}

/// How deep the deepest place is at which a `hidden` entry covers `path`.
fn hidden_depth(policy: &Policy, entry: &str, path: &Path) -> Option<usize> {
    let roots = policy.filesystem.grants.iter().map(|grant| &grant.path).filter(|root| path.starts_with(root));
    if let Some(name) = entry.strip_prefix("**/") {
        let name = name.trim_end_matches('/');
        let top = roots.map(|root| depth(root)).min()?;
        let below = path.components().enumerate().skip(top);
        return below
            .filter(|(_, part)| glob::matches(name, &part.as_os_str().to_string_lossy()))
            .map(|(at, _)| at + 1)
            .max();
    }
    if entry.starts_with('/') {
        return path.starts_with(entry).then(|| depth(Path::new(entry)));
    }
    roots
        .map(|root| lexical(&root.join(entry)))
        .filter(|place| path.starts_with(place))
        .map(|place| depth(&place))
        .max()
}

/// A new cell's private directories are empty: the host's file of that name is not there to be read.
fn may_read(policy: &Policy, path: &Path) -> bool {
    let private = PRIVATE.iter().any(|top| path.starts_with(top) && path != Path::new(top));
    match verdict(policy, path) {
        None if private => false,
        _ => reach(policy, path).is_some_and(|access| access <= Access::ReadOnly),
    }
}

fn reach(policy: &Policy, path: &Path) -> Option<Access> {
    let path = &lexical(path);
    let under = |list: &[&str]| list.iter().any(|entry| path.starts_with(entry));
    verdict(policy, path).or_else(|| match () {
        () if under(&PRIVATE) || under(&DEVICES) => Some(Access::ReadWrite),
        () if under(&SYSTEM) => Some(Access::ReadOnly),
        () => None,
    })
}

/// Argument rules do not count: the kernel sees only which file is executed.
fn may_execute(policy: &Policy, program: &str) -> bool {
    let fits = |rule: &&CommandRule| glob::matches_program(&rule.program, program);
    let there =
        !program.starts_with('/') || reach(policy, Path::new(program)).is_some_and(|access| access <= Access::ReadOnly);
    let blocked = policy.commands.blocked.iter().filter(fits).any(|rule| rule.arguments.is_empty());
    there && !blocked && policy.commands.allowed.iter().any(|rule| fits(&rule))
}

fn may_run(policy: &Policy, argv: &[String]) -> bool {
    let Some((program, arguments)) = argv.split_first() else {
        return false;
    };
    let fits =
        |rule: &CommandRule| glob::matches_program(&rule.program, program) && arguments.starts_with(&rule.arguments);
    may_execute(policy, program)
        && !policy.commands.blocked.iter().any(fits)
        && policy.commands.allowed.iter().any(fits)
}

/// With its own network an agent reaches nobody: its loopback is not the host's.
fn may_connect(network: &Network, host: &str, port: u16) -> bool {
    match network {
        Network::None => false,
        Network::Host { connect_ports, .. } => connect_ports.as_ref().is_none_or(|ports| ports.contains(&port)),
        Network::Proxy { allow_hosts } => proxied(allow_hosts, host, port),
    }
}

/// On paper a name is judged by its spelling alone; what it resolves to is judged when it is asked for.
fn proxied(rules: &[HostRule], host: &str, port: u16) -> bool {
    let bracketed = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    Host::parse(&bracketed).is_ok_and(|host| Destination { host, port }.rule(rules).is_some())
}

impl std::fmt::Display for Attempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = |path: &PathBuf| path.display().to_string();
        match self {
            Attempt::Read(place) => write!(f, "read {}", path(place)),
            Attempt::Write(place) => write!(f, "write {}", path(place)),
            Attempt::Execute(program) => write!(f, "execute {program}"),
            Attempt::Connect(host, port) if host.contains(':') => {
                write!(f, "connect [{host}]:{port}")
            }
            Attempt::Connect(host, port) => write!(f, "connect {host}:{port}"),
            Attempt::Run(argv) => write!(f, "run {}", words::join(argv.iter().map(String::as_str))),
        }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Verdict::Allowed => "allowed",
            Verdict::Denied => "denied",
        })
    }
}
