//! What this kernel and this user can enforce: one cheap look, no forks, nothing changed.
//!
//! [`Host::probe`] reads a handful of files and makes system calls that cannot succeed
//! (`sys::probe`). [`Host::findings`] says it in words, with a remedy for what is missing, for
//! `stockade doctor`. `plan` decides from the values; nothing here decides about a request.

pub mod base;
pub mod cgroup;
mod findings;
pub mod glob;
mod kernel;
pub mod programs;
mod remedy;
pub mod system;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

pub use cgroup::{Base, CgroupLayout, Controller, Hierarchy, Version};
pub use findings::{Finding, State};
pub use kernel::{Call, Release};
pub use system::{Question, System};

use crate::sys::probe;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Host {
    pub kernel: Release,
    pub uid: u32,
    pub gid: u32,
    /// Effective capabilities, by name.
    pub capabilities: Vec<String>,
    /// 0: none.
    pub landlock_abi: u32,
    /// Filters that can answer with an errno and kill a process.
    pub seccomp: bool,
    pub namespaces: UserNamespaces,
    pub container: Option<Container>,
    pub mounts: Mounts,
    pub cgroups: CgroupLayout,
    /// Our own program, for the remedies that name it.
    pub program: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UserNamespaces {
    /// `/proc/sys/user/max_user_namespaces`; `None` when the kernel has no user namespaces.
    pub max: Option<u64>,
    /// Debian's switch, where it exists.
    pub unprivileged_clone: Option<bool>,
    /// Ubuntu's AppArmor rule: an unconfined program gets a namespace without power in it.
    pub apparmor_restricts: bool,
    /// The AppArmor profile we run under, where there is one.
    pub apparmor_profile: Option<String>,
    pub unshare: Call,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mounts {
    /// `open_tree`, `move_mount`, `fsopen`: Linux 5.2.
    pub new_api: Call,
    /// `mount_setattr`: Linux 5.12.
    pub setattr: Call,
    /// Mounts that show files under another owner; needs root and Linux 5.12.
    pub idmapped: bool,
    pub overlay: bool,
    /// Nothing is mounted over parts of `/proc`; else a user namespace may not mount its own.
    pub proc_visible: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Container {
    Docker,
    Podman,
    Kubernetes,
}

impl Host {
    /// A look at this machine. What cannot be read counts as not there.
    pub fn probe() -> Host {
        let kernel = Release::parse(&read("/proc/sys/kernel/osrelease"));
        let uid = nix::unistd::geteuid().as_raw();
        let mountinfo = read("/proc/self/mountinfo");
        let program = env::current_exe().unwrap_or_else(|_| PathBuf::from("stockade"));
        let capabilities = effective_capabilities();
        let mounts = Mounts::probe(&kernel, &mountinfo, uid == 0 && has(&capabilities, "CAP_SYS_ADMIN"));
        Host {
            uid,
            gid: nix::unistd::getegid().as_raw(),
            landlock_abi: probe::landlock_abi(),
            seccomp: probe::seccomp_action_available(libc::SECCOMP_RET_ERRNO)
                && probe::seccomp_action_available(libc::SECCOMP_RET_KILL_PROCESS),
            namespaces: UserNamespaces::probe(),
            container: Container::probe(),
            mounts,
            cgroups: probe_cgroups(&mountinfo, uid, &program),
            kernel,
            capabilities,
            program,
        }
    }

    pub fn has_capability(&self, name: &str) -> bool {
        has(&self.capabilities, name)
    }

    /// What is missing of these walls, and the remedy; `None` when all of them stand.
    pub fn obstacle(&self, walls: &[&str]) -> Option<(String, String)> {
        self.findings().into_iter().filter(|finding| walls.contains(&finding.wall)).find_map(|finding| {
            match finding.state {
                State::Missing { what, remedy } => Some((what, remedy)),
                State::Enforced { .. } | State::Limited { .. } => None,
            }
        })
    }

    pub fn findings(&self) -> Vec<Finding> {
        findings::of(self)
    }
}

impl UserNamespaces {
    fn probe() -> UserNamespaces {
        let switch = |path: &str| read_if_there(path).map(|text| text.trim() != "0");
        UserNamespaces {
            max: read_if_there("/proc/sys/user/max_user_namespaces").and_then(|text| text.trim().parse().ok()),
            unprivileged_clone: switch("/proc/sys/kernel/unprivileged_userns_clone"),
            apparmor_restricts: switch("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == Some(true),
            apparmor_profile: read_if_there("/proc/self/attr/apparmor/current").map(|text| text.trim().to_owned()),
            unshare: Call::from_answer(probe::unshare_user_answer()),
        }
    }
}

impl Mounts {
    fn probe(kernel: &Release, mountinfo: &str, privileged: bool) -> Mounts {
        let setattr = Call::from_answer(probe::mount_setattr_answer());
        Mounts {
            new_api: Call::from_answer(probe::open_tree_answer()),
            setattr,
            idmapped: kernel.at_least(5, 12) && setattr == Call::Open && privileged,
            overlay: read("/proc/filesystems").lines().any(|line| line.ends_with("\toverlay")),
            proc_visible: proc_is_visible(mountinfo),
        }
    }
}

impl Container {
    fn probe() -> Option<Container> {
        if env::var_os("KUBERNETES_SERVICE_HOST").is_some() {
            Some(Container::Kubernetes)
        } else if Path::new("/.dockerenv").exists() {
            Some(Container::Docker)
        } else if Path::new("/run/.containerenv").exists() {
            Some(Container::Podman)
        } else {
            None
        }
    }
}

fn probe_cgroups(mountinfo: &str, uid: u32, program: &Path) -> CgroupLayout {
    let asker = base::Asker {
        uid,
        program: program.to_owned(),
        runtime: env::var_os("XDG_RUNTIME_DIR")
            .map_or_else(|| PathBuf::from(format!("/run/user/{uid}")), PathBuf::from),
    };
    let mut layout = CgroupLayout::parse(mountinfo, &read("/proc/self/cgroup"));
    for hierarchy in &mut layout.hierarchies {
        hierarchy.base = base::choose(hierarchy, &asker);
    }
    layout
}

/// A container masks `/proc/kcore` and the like with mounts; the kernel then refuses a fresh proc
/// in a user namespace, because it would show what was masked. `binfmt_misc` sits on a directory
/// that is always empty and does not count.
fn proc_is_visible(mountinfo: &str) -> bool {
    let mut points = mountinfo.lines().filter_map(|line| line.split(' ').nth(4));
    !points.any(|point| point.starts_with("/proc/") && point != "/proc/sys/fs/binfmt_misc")
}

fn effective_capabilities() -> Vec<String> {
    let held = caps::read(None, caps::CapSet::Effective).unwrap_or_default();
    let mut names: Vec<String> = held.iter().map(ToString::to_string).collect();
    names.sort();
    names
}

fn has(capabilities: &[String], name: &str) -> bool {
    capabilities.iter().any(|held| held == name)
}

fn read(path: &str) -> String {
    read_if_there(path).unwrap_or_default()
}

fn read_if_there(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masked_proc_is_seen_and_binfmt_is_not_a_mask() {
        let plain =
            "22 27 0:21 / /proc rw - proc proc rw\n70 22 0:30 / /proc/sys/fs/binfmt_misc rw - autofs systemd-1 rw\n";
        assert!(proc_is_visible(plain));
        assert!(!proc_is_visible(&format!("{plain}90 22 0:5 /null /proc/kcore ro - tmpfs tmpfs rw\n")));
    }

    #[test]
    fn a_probe_is_cheap_and_knows_its_user() {
        let started = std::time::Instant::now();
        let host = Host::probe();
        assert!(started.elapsed() < std::time::Duration::from_millis(20), "{:?}", started.elapsed());
        assert_eq!(host.uid, nix::unistd::geteuid().as_raw());
        assert!(host.kernel.at_least(5, 0), "{:?}", host.kernel);
    }
}
