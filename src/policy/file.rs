//! A policy file as written: every key optional, no unknown ones, nothing replaced or checked yet.
//!
//! The doc comments of the fields are the descriptions in `stockade policy schema`. What a key
//! means is decided in [`super::resolve`]; which file a missing key is taken from, in
//! [`super::layers`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::written::{Amount, At, Count, List, Shell};
use super::{Demand, HostUser, Overflow, Surface, SyscallGroup};

/// A stockade policy: what one agent may do.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct File {
    /// The policy this one starts from: a shipped name, or a path (`./base.toml`, relative to this file).
    pub extends: Option<At<String>>,
    /// The identity that state and audit are kept under; default: the file's name. Never inherited.
    pub agent: Option<At<String>>,
    pub filesystem: Filesystem,
    pub commands: Commands,
    pub limits: Limits,
    pub processes: Processes,
    pub network: Network,
    pub environment: Environment,
    pub identity: Identity,
    pub syscalls: Syscalls,
    pub enforcement: Enforcement,
    pub tools: Tools,
    pub retention: Retention,
    /// What the policy promises of itself; `stockade policy check` holds it to them. Added to the parent's.
    pub expect: Vec<At<Expect>>,
}

/// What the agent sees of the host's files.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Filesystem {
    /// Directories the agent may read and write, at their own paths. `{workspace}` and `~` are
    /// replaced; a trailing `?` skips a directory that does not exist. Replaces the parent's list.
    pub allowed_roots: Option<List>,
    /// Directories the agent may only read. Replaces the parent's list.
    pub read_only_roots: Option<List>,
    /// Masked inside the roots: a path relative to every root, an absolute path, or `**/name`.
    /// Added to the parent's list.
    pub hidden: Option<List>,
    /// Bound on `/tmp`, home and `/dev/shm` together: `"512M"`.
    pub tmp_size: Option<At<Amount>>,
    /// Bound on the number of files there; default: one for every 4 KiB of `tmp_size`.
    pub tmp_inodes: Option<At<Count>>,
    /// Bound on one `fs_*` call: `"1M"`.
    pub max_file_bytes: Option<At<Amount>>,
}

/// Which programs may run. `blocked` wins over `allowed`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Commands {
    /// The shell for `command` strings; `false`: exact `argv` only.
    pub shell: Option<At<Shell>>,
    /// `git`, `python3*`, `/usr/lib/gcc/**`, `git log` (first arguments), or `*` for every program.
    /// Replaces the parent's list.
    pub allowed: Option<List>,
    /// The same spellings. Added to the parent's list.
    pub blocked: Option<List>,
}

/// Bounds on what the agent's processes may use.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// `"2G"`; swap is always 0.
    pub memory: Option<At<Amount>>,
    /// How many CPUs' worth of time: `2` or `0.5`.
    pub cpus: Option<At<f64>>,
    /// CPU time of one process with its descendants: `"5m"`. Without it only wall time counts.
    pub cpu_time: Option<At<Amount>>,
    /// Processes and threads in the cell.
    pub processes: Option<At<Count>>,
    /// Open files per process.
    pub open_files: Option<At<Count>>,
    /// The largest file a process may write: `"1G"`.
    pub file_size: Option<At<Amount>>,
    /// How long a `run` may take unless it asks otherwise: `"10m"`.
    pub wall_time: Option<At<Amount>>,
    /// The most a call may ask for: `"1h"`.
    pub max_wall_time: Option<At<Amount>>,
    /// A process that neither reads nor writes for this long is stopped: `"30m"`.
    pub idle_time: Option<At<Amount>>,
    /// Output kept per process: `"8M"`.
    pub output_bytes: Option<At<Amount>>,
    /// What happens when a process has written `output_bytes`.
    pub output_overflow: Option<At<Overflow>>,
    /// Output returned in one reply: `"16K"`.
    pub inline_bytes: Option<At<Amount>>,
}

/// Bounds on managed processes.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Processes {
    /// Running at once in one session.
    pub per_session: Option<At<Count>>,
    /// Running at once in all sessions.
    pub total: Option<At<Count>>,
    /// How long a finished process stays readable: `"1h"`.
    pub keep_finished: Option<At<Amount>>,
}

/// Where the agent's processes may connect.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Network {
    pub mode: Option<At<Mode>>,
    /// TCP ports that may be connected to; `mode = "host"` only. Without it, any.
    pub connect_ports: Option<At<Vec<At<Count>>>>,
    /// TCP ports that may be listened on; `mode = "host"` only. Without it, any.
    pub bind_ports: Option<At<Vec<At<Count>>>>,
    /// Hosts that may be reached (`crates.io`, `*.crates.io`, `crates.io:8080`); without a port 80 and 443;
    /// an address that is not public only when it is written out (`127.0.0.1:8080`). `mode = "proxy"` only.
    pub allow_hosts: Option<List>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Mode {
    /// Own network, loopback only.
    None,
    /// The host's network.
    Host,
    /// Only `allow_hosts`, through the broker.
    Proxy,
}

/// What the agent's processes find in their environment; everything not named here starts empty.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Environment {
    /// Names (or `LC_*`) taken over from the operator's environment. Replaces the parent's list.
    pub pass: Option<List>,
    /// Names and values; `~/` or `{workspace}` at a value's beginning is replaced. Merged with the
    /// parent's by name.
    pub set: BTreeMap<String, At<String>>,
    /// Names (`*TOKEN*`) whose values never reach a log. Added to the parent's list.
    pub redact: Option<List>,
}

/// Whom the host sees when stockade was started by root.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Identity {
    pub host_user: Option<At<HostUser>>,
}

/// Groups of system calls added to the filter.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Syscalls {
    /// Replaces the parent's list.
    pub allow: Option<At<Vec<At<SyscallGroup>>>>,
}

/// Which walls may be missing on a host that cannot build them.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Enforcement {
    pub namespaces: Option<At<Demand>>,
    pub landlock: Option<At<Demand>>,
    pub seccomp: Option<At<Demand>>,
    pub cgroups: Option<At<Demand>>,
}

/// Which tools the agent is offered.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tools {
    pub surface: Option<At<Surface>>,
    /// `fs_*` and `search_*`.
    pub files: Option<At<bool>>,
    /// All that runs anything.
    pub processes: Option<At<bool>>,
    /// `proc_*` and `session_*`.
    pub repl: Option<At<bool>>,
    /// `config_*`, `usage_stats`, `recent_calls`, `feedback`, `health`.
    pub system: Option<At<bool>>,
}

/// How long, and how many, files about the agent are kept.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Retention {
    /// Output logs, backups and recordings: `"24h"`.
    pub artifacts: Option<At<Amount>>,
    /// Output kept on disk for this agent, all processes together; the oldest goes first: `"1G"`.
    pub max_bytes: Option<At<Amount>>,
}

/// One promise: `read PATH`, `write PATH`, `execute PROGRAM`, `connect HOST:PORT`, `run ARGV…`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    /// The reason, for whoever breaks it.
    pub why: Option<At<String>>,
    /// What must fail.
    pub denied: Option<List>,
    /// What must work.
    pub allowed: Option<List>,
}
