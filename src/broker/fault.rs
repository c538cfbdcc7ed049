//! Faults in words: what the launcher or a child reported, and what an operator can do about it.

use crate::sys::Errno;
use crate::wire::{Fault, Report, Stage};
use std::fmt;

/// Why a cell or a process could not be made, or a command not be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    pub stage: Option<Stage>,
    pub errno: Errno,
    pub at: String,
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Self {
        Trouble { stage: Some(fault.step), errno: Errno::from_raw(fault.errno), at: fault.at }
    }
}

impl From<Report> for Trouble {
    fn from(report: Report) -> Self {
        let stage = Stage::from_number(report.stage);
        Trouble { stage, errno: Errno::from_raw(report.errno), at: String::new() }
    }
}

impl Trouble {
    pub fn lost(who: &str) -> Self {
        Trouble { stage: None, errno: Errno::UnknownErrno, at: who.into() }
    }

    pub fn hint(&self) -> Option<String> {
        let Some(stage) = self.stage else { return Some("start stockade again".into()) };
        let hint = match (stage, self.errno) {
            (Stage::Idmap, _) => {
                "this filesystem cannot map ids: say `host_user = \"owner\"` under `[identity]` to run as the owner of \
                 the root, or start stockade as an ordinary user"
            }
            (Stage::Namespaces | Stage::MapIdentity | Stage::NewRoot | Stage::MountProc, _) => {
                "`stockade doctor` says what this host allows and how to mend it"
            }
            (Stage::Source | Stage::MountPoint | Stage::Attach, Errno::ELOOP | Errno::ENOENT | Errno::ENOTDIR) => {
                "it changed while the cell was being made; try again"
            }
            (Stage::Group | Stage::EnterGroup, _) => {
                "`stockade doctor` says which cgroup is meant and how to delegate one"
            }
            _ => return None,
        };
        Some(hint.into())
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(stage) = self.stage else { return write!(f, "{} ended unexpectedly", self.at) };
        f.write_str(in_words(stage))?;
        if !self.at.is_empty() {
            write!(f, " (`{}`)", self.at)?;
        }
        write!(f, ": {}", self.errno.desc())
    }
}

/// What to do about a program that the kernel would not execute.
pub fn exec_hint(errno: Errno) -> &'static str {
    match errno {
        Errno::ENOENT | Errno::ENOTDIR => {
            "inside a cell there are the system's programs and the policy's roots; a script's interpreter must be there too"
        }
        Errno::EACCES => "it is not executable, or the policy's command lists do not let it run",
        Errno::ENOEXEC => "it is neither a program for this machine nor a script that names its interpreter",
        Errno::E2BIG => "arguments and environment together are too long",
        _ => "the kernel would not execute it",
    }
}

fn in_words(stage: Stage) -> &'static str {
    match stage {
        Stage::Clone => "making a process",
        Stage::MapIdentity => "mapping the agent's ids",
        Stage::Source => "opening what the cell should show",
        Stage::Idmap => "mapping the owner of a root to the agent",
        Stage::NewRoot => "making the cell's root",
        Stage::MountPoint => "making a mount point",
        Stage::Attach => "mounting",
        Stage::Pivot => "leaving the old root",
        Stage::Loopback => "raising loopback",
        Stage::Proxy => "opening the proxy's socket",
        Stage::Hostname => "naming the cell",
        Stage::LandlockRule => "opening what Landlock should grant",
        Stage::Namespaces => "making namespaces",
        Stage::EnterGroup => "entering the cgroup",
        Stage::JoinCell => "joining the cell",
        Stage::MountProc => "mounting a fresh /proc",
        Stage::MaskProc => "covering parts of /proc",
        Stage::CoverHidden => "covering what the policy hides",
        Stage::Rlimit => "setting rlimits",
        Stage::Identity => "becoming the agent",
        Stage::Capabilities => "dropping capabilities",
        Stage::NoNewPrivileges => "setting no_new_privs",
        Stage::Landlock => "sealing files with Landlock",
        Stage::Descriptors => "closing descriptors",
        Stage::Seccomp => "sealing system calls with seccomp",
        Stage::Fork => "forking the command",
        Stage::Receive => "receiving the command",
        Stage::Terminal => "opening a terminal",
        Stage::Stdio => "taking standard input and output",
        Stage::WorkingDirectory => "entering the working directory",
        Stage::Exec => "executing",
        Stage::Group => "making the cgroup",
        Stage::Attempt => "trying it",
    }
}
