//! What one agent may do: a TOML file as written (`file.rs`) becomes a [`Policy`] as meant.
//!
//! Nothing here touches the kernel or decides about a request; `plan` does that. A value of
//! [`Policy`] proves that every key was known, every unit parsed, every root is absolute,
//! canonical and existing, and that the file itself is out of the agent's reach.

#![forbid(unsafe_code)]

mod commands;
mod error;
pub mod expect;
mod file;
mod forbidden;
pub use crate::host::glob;
pub mod hosts;
mod json;
mod layers;
pub(crate) mod limits;
mod load;
mod network;
mod operator;
mod places;
mod promises;
mod read;
mod resolve;
mod roots;
mod schema;
pub mod shipped;
mod show;
mod source;
pub(crate) mod units;
mod words;
mod written;

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

pub use error::{Error, Place};
pub(crate) use error::{nearest, one_of};
pub use json::keys;
pub use operator::Operator;
pub use schema::schema;
pub use source::parse_toml;

/// A policy as meant: `extends` folded in, `{workspace}` and `~` replaced, units parsed.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// The shipped name (`coder`) or the path it was read from.
    pub name: String,
    /// The identity that state and audit are kept under; `[a-z0-9][a-z0-9_-]{0,63}`.
    pub agent: String,
    /// The directory that `{workspace}` stands for; canonical.
    pub workspace: PathBuf,
    pub filesystem: Filesystem,
    pub commands: Commands,
    pub limits: Limits,
    pub processes: Processes,
    pub network: Network,
    pub environment: Environment,
    pub identity: HostUser,
    pub syscalls: Vec<SyscallGroup>,
    pub enforcement: Enforcement,
    pub tools: Tools,
    pub retention: Retention,
    pub expectations: Vec<Expectation>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Filesystem {
    /// Roots, canonical and existing; never `/` or a system directory when read-write.
    pub grants: Vec<Grant>,
    /// As written: a path relative to every root, an absolute path, or a `**/name` glob.
    pub hidden: Vec<String>,
    /// Bound on everything private and in memory: `/tmp`, `/var/tmp`, `$HOME`, `/dev/shm` together.
    pub tmp_size: Bytes,
    /// Bound on the number of files there; empty files would otherwise fill memory past `tmp_size`.
    pub tmp_inodes: u64,
    /// Per `fs_*` call.
    pub max_file_bytes: Bytes,
}

/// One root and what may be done in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    pub path: PathBuf,
    pub access: Access,
}

/// Ordered from lax to strict: on a tie between rules for one path, the greater wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    ReadWrite,
    ReadOnly,
    Hidden,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Commands {
    /// The shell for `command` strings; `None` when the policy says `shell = false`.
    pub shell: Option<PathBuf>,
    /// `["*"]` is no list at all; anything else is an explicit list.
    pub allowed: Vec<CommandRule>,
    pub blocked: Vec<CommandRule>,
}

/// One entry of a command list: which program, and optionally which first arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandRule {
    /// `git`, `python3*`, `/usr/lib/gcc/**`, `{workspace}/bin/tool` (already replaced), or `*`.
    pub program: String,
    /// Leading arguments (`["push"]` for `git push`): checked on the requested argv only.
    pub arguments: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// For the agent's cell as a whole and for each process in it; swap is always 0.
    pub memory: Bytes,
    pub cpus: f64,
    /// CPU seconds of one process with all its descendants; `None`: no bound but wall time.
    pub cpu_time: Option<Duration>,
    pub processes: u64,
    pub open_files: u64,
    pub file_size: Bytes,
    pub wall_time: Duration,
    pub max_wall_time: Duration,
    pub idle_time: Duration,
    pub output_bytes: Bytes,
    pub output_overflow: Overflow,
    pub inline_bytes: Bytes,
}

/// `[limits] output_overflow`: what happens when a process has written `output_bytes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Overflow {
    /// The oldest output is forgotten.
    DropOldest,
    /// Nothing more is read of it until its output is removed: it waits as behind a full pipe.
    Pause,
    /// It is killed.
    Kill,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Processes {
    pub per_session: u32,
    pub total: u32,
    pub keep_finished: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Network {
    /// Own namespace, loopback only.
    None,
    /// The host's network; `None` for ports means any.
    Host { connect_ports: Option<Vec<u16>>, bind_ports: Option<Vec<u16>> },
    /// Only these hosts, through the broker; nobody when there is none.
    Proxy { allow_hosts: Vec<hosts::HostRule> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// Names (or `LC_*` globs) taken over from the operator's environment.
    pub pass: Vec<String>,
    pub set: Vec<(String, String)>,
    /// Globs for names whose values never reach a log.
    pub redact: Vec<String>,
}

/// `[identity] host_user`: whom the host sees when stockade was started by root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum HostUser {
    /// A uid of this agent's own; idmapped mounts let it own files in the roots.
    Private,
    /// The owner of the read-write roots: for filesystems without idmapped mounts.
    Owner,
    /// Real root. Only for throw-away machines.
    Root,
}

/// `[syscalls] allow`: groups added to the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum SyscallGroup {
    /// ptrace, process_vm_readv/writev: gdb, strace inside one process's own PID namespace.
    Debug,
    /// perf_event_open.
    Profile,
    /// io_uring_*.
    IoUring,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enforcement {
    pub namespaces: Demand,
    pub landlock: Demand,
    pub seccomp: Demand,
    pub cgroups: Demand,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Demand {
    Required,
    IfAvailable,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tools {
    pub surface: Surface,
    pub files: bool,
    pub processes: bool,
    pub repl: bool,
    pub system: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Surface {
    Verbs,
    Families,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    pub artifacts: Duration,
    /// Of all output kept for this agent, on disk; the oldest goes first.
    pub max_bytes: Bytes,
}

/// One `[[expect]]`: what the policy promises of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    pub why: String,
    pub claims: Vec<Claim>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub verdict: Verdict,
    pub attempt: Attempt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Allowed,
    Denied,
}

/// `read PATH`, `write PATH`, `execute PROGRAM`, `connect ADDRESS:PORT`, `run ARGV…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attempt {
    Read(PathBuf),
    Write(PathBuf),
    Execute(String),
    Connect(String, u16),
    Run(Vec<String>),
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// The command line's flags as typed. They are the operator's own words and are laid over the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Added to `allowed_roots`.
    pub rw: Vec<PathBuf>,
    /// Added to `read_only_roots`.
    pub ro: Vec<PathBuf>,
    pub memory: Option<String>,
    pub cpus: Option<String>,
    pub processes: Option<String>,
    /// Sets `wall_time`; never past the policy's `max_wall_time`.
    pub timeout: Option<String>,
    pub network: Option<String>,
    /// `K=V`, laid over `environment.set`.
    pub env: Vec<String>,
}
