//! The probe in words: one finding per wall, with the remedy where a wall is missing or weaker.
//!
//! Pure: a [`Host`] in, findings out. The remedies' texts are in `remedy`.

use serde::Serialize;

use super::cgroup::list;
use super::{Base, Call, Host, Version, remedy};

/// What one wall amounts to here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub wall: &'static str,
    #[serde(flatten)]
    pub state: State,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum State {
    Enforced {
        how: String,
    },
    /// It stands, but not all of it.
    Limited {
        how: String,
        what: String,
        remedy: String,
    },
    Missing {
        what: String,
        remedy: String,
    },
}

pub(super) fn of(host: &Host) -> Vec<Finding> {
    let states = [
        ("user namespaces", user_namespaces(host)),
        ("mounts", mounts(host)),
        ("identity", identity(host)),
        ("landlock", landlock(host)),
        ("seccomp", seccomp(host)),
        ("cgroups", cgroups(host)),
    ];
    states.into_iter().map(|(wall, state)| Finding { wall, state }).collect()
}

fn user_namespaces(host: &Host) -> State {
    let namespaces = &host.namespaces;
    let privileged = host.has_capability("CAP_SYS_ADMIN");
    match (namespaces.unshare, namespaces.max) {
        (Call::Blocked, _) => {
            return missing("a seccomp filter around us refuses `unshare`", remedy::container_filter(host));
        }
        (Call::Unknown, _) | (_, None) => {
            return missing("this kernel is built without user namespaces", remedy::USER_NS_KERNEL);
        }
        (Call::Open, Some(0)) => {
            return missing("`user.max_user_namespaces` is 0", "sudo sysctl -w user.max_user_namespaces=15000");
        }
        (Call::Open, Some(_)) => {}
    }
    if !privileged && namespaces.unprivileged_clone == Some(false) {
        let what = "`kernel.unprivileged_userns_clone` is 0";
        return missing(what, "sudo sysctl -w kernel.unprivileged_userns_clone=1");
    }
    let unconfined = namespaces.apparmor_profile.as_deref().is_none_or(|profile| profile == "unconfined");
    if !privileged && namespaces.apparmor_restricts && unconfined {
        let what = "AppArmor takes all power from a user namespace of an unconfined program (Ubuntu 23.10 and later)";
        return missing(what, remedy::apparmor(&host.program));
    }
    enforced(if privileged { "open to us, and we are privileged" } else { "open to ordinary users" })
}

fn mounts(host: &Host) -> State {
    let mounts = &host.mounts;
    if mounts.new_api == Call::Blocked || mounts.setattr == Call::Blocked {
        return missing("a seccomp filter around us refuses the mount calls", remedy::container_filter(host));
    }
    if !mounts.proc_visible {
        return missing("parts of /proc are masked, so the kernel refuses a fresh one", remedy::masked_proc(host));
    }
    if mounts.new_api == Call::Unknown || mounts.setattr == Call::Unknown {
        let what = format!("`mount_setattr` came with Linux 5.12, this is {}", host.kernel.text);
        return missing(what, "run a kernel of 5.12 or later");
    }
    enforced("new root per process, fresh /proc, read-only by mount_setattr")
}

fn identity(host: &Host) -> State {
    if host.uid != 0 {
        return enforced(format!("processes run as user {} in a user namespace", host.uid));
    }
    if host.mounts.idmapped {
        return enforced("started by root: a uid of its own per agent, idmapped mounts for its roots");
    }
    State::Limited {
        how: "started by root: a uid of its own per agent".to_owned(),
        what: "no idmapped mounts, so such a uid cannot own files in the roots".to_owned(),
        remedy: "run a kernel of 5.12 or later with CAP_SYS_ADMIN, start stockade as an ordinary user, or set \
                 `host_user = \"owner\"` under `[identity]`"
            .to_owned(),
    }
}

fn landlock(host: &Host) -> State {
    match host.landlock_abi {
        0 if !host.kernel.at_least(5, 13) => {
            let what = format!("Landlock came with Linux 5.13, this is {}", host.kernel.text);
            missing(what, remedy::OLD_KERNEL_LANDLOCK)
        }
        0 => missing("Landlock is not switched on in this kernel", remedy::LANDLOCK_LSM),
        abi @ 1..=3 => State::Limited {
            how: format!("files, ABI {abi}"),
            what: format!("TCP rules need ABI 4, Linux 6.7; this is {}", host.kernel.text),
            remedy: "run a kernel of 6.7 or later, or use `network = \"none\"`, which needs no TCP rules".to_owned(),
        },
        abi @ 4..=5 => enforced(format!("files and TCP, ABI {abi}")),
        abi => enforced(format!("files, TCP, signals and abstract sockets, ABI {abi}")),
    }
}

fn seccomp(host: &Host) -> State {
    if host.seccomp {
        return enforced("filter with errno and kill actions");
    }
    missing("this kernel has no seccomp filters", "run a kernel with CONFIG_SECCOMP_FILTER, 4.14 or later")
}

fn cgroups(host: &Host) -> State {
    let absent = host.cgroups.missing();
    if !absent.is_empty() {
        let what = format!("no mounted hierarchy carries {}", list(&absent));
        return missing(what, remedy::no_controller(host, &absent));
    }
    let mut how = Vec::new();
    for hierarchy in &host.cgroups.hierarchies {
        let version = match hierarchy.version {
            Version::V1 => "v1",
            Version::V2 => "v2",
        };
        let place = match &hierarchy.base {
            Base::Ready { path } | Base::Enable { path } | Base::Settle { path } => path.display().to_string(),
            Base::Scope { .. } => "a scope from the user's systemd".to_owned(),
            Base::Closed { why } => return missing(why.clone(), remedy::no_delegation(host)),
        };
        how.push(format!("{version} {} in {place}", list(&hierarchy.controllers)));
    }
    enforced(how.join("; "))
}

fn enforced(how: impl Into<String>) -> State {
    State::Enforced { how: how.into() }
}

fn missing(what: impl Into<String>, remedy: impl Into<String>) -> State {
    State::Missing { what: what.into(), remedy: remedy.into() }
}

#[cfg(test)]
#[path = "findings_tests.rs"]
mod tests;
