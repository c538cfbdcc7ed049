//! What to type to get a missing wall. Texts only: `findings` decides which one applies.
//!
//! A remedy is exact: a command, a file or a setting that can be copied, never "see the manual".

use std::path::Path;

use super::base::delegated;
use super::cgroup::{Controller, list};
use super::{Base, Container, Host, Version};

pub(super) const USER_NS_KERNEL: &str = "run a kernel built with CONFIG_USER_NS";

pub(super) const OLD_KERNEL_LANDLOCK: &str =
    "run a kernel of 5.13 or later (6.7 for TCP rules), or set `landlock = \"if-available\"` under `[enforcement]`";

pub(super) const LANDLOCK_LSM: &str = "add `landlock` to the list: put `lsm=landlock,$(cat /sys/kernel/security/lsm)` on the \
     kernel command line and reboot, or set `landlock = \"if-available\"` under `[enforcement]`";

/// Ubuntu: a profile for this one program, or the switch for the whole machine.
pub(super) fn apparmor(program: &Path) -> String {
    format!(
        "give this program a profile:\n\
         sudo tee /etc/apparmor.d/stockade <<'END'\n\
         abi <abi/4.0>,\n\
         include <tunables/global>\n\
         profile stockade {} flags=(unconfined) {{\n  userns,\n}}\n\
         END\n\
         sudo apparmor_parser -r /etc/apparmor.d/stockade\n\
         or lift the rule for every program: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        program.display()
    )
}

pub(super) fn container_filter(host: &Host) -> String {
    match host.container {
        Some(Container::Kubernetes) => "in the pod: `securityContext: { seccompProfile: { type: Unconfined }, \
             appArmorProfile: { type: Unconfined }, procMount: Unmasked }` and `hostUsers: false`"
            .to_owned(),
        Some(Container::Podman) => {
            "podman run --security-opt seccomp=unconfined --security-opt unmask=ALL …".to_owned()
        }
        Some(Container::Docker) | None => "docker run --security-opt seccomp=unconfined --security-opt \
             apparmor=unconfined --security-opt systempaths=unconfined …"
            .to_owned(),
    }
}

pub(super) fn masked_proc(host: &Host) -> String {
    match host.container {
        Some(Container::Kubernetes) => {
            "in the pod: `securityContext: { procMount: Unmasked }` and `hostUsers: false`".to_owned()
        }
        Some(Container::Podman) => "podman run --security-opt unmask=ALL …".to_owned(),
        Some(Container::Docker) => "docker run --security-opt systempaths=unconfined …".to_owned(),
        None => "unmount what lies over parts of /proc: grep ' /proc/' /proc/self/mountinfo".to_owned(),
    }
}

pub(super) fn no_controller(host: &Host, absent: &[Controller]) -> String {
    if host.cgroups.hierarchies.is_empty() && host.container.is_none() {
        return "sudo mount -t cgroup2 none /sys/fs/cgroup".to_owned();
    }
    if host.container.is_some() {
        return container_groups(host);
    }
    if absent.contains(&Controller::Memory) {
        return "put `cgroup_enable=memory` on the kernel command line and reboot".to_owned();
    }
    format!("run a kernel with the cgroup controllers {}, mounted below /sys/fs/cgroup", list(absent))
}

/// No place for cells: what an operator hands over, for this layout and this user.
pub(super) fn no_delegation(host: &Host) -> String {
    let closed = host.cgroups.hierarchies.iter().filter(|hierarchy| matches!(hierarchy.base, Base::Closed { .. }));
    let mut lines = Vec::new();
    for hierarchy in closed {
        match hierarchy.version {
            Version::V1 => {
                let path = delegated(hierarchy, host.uid).display().to_string();
                lines.push(format!("sudo mkdir -p {path} && sudo chown -R {}:{} {path}", host.uid, host.gid));
            }
            Version::V2 if host.container.is_some() => lines.push(container_groups(host)),
            Version::V2 if host.uid == 0 => {
                lines.push("start it in its own group: systemd-run --scope -p Delegate=yes stockade …".to_owned());
            }
            Version::V2 => lines.push(format!(
                "let the user's systemd run without a login: sudo loginctl enable-linger {uid}\n\
                 or start it in a delegated group: systemd-run --user --scope -p Delegate=yes stockade …\n\
                 if cpu or pids is not offered: sudo systemctl edit user@.service, add `[Service]` and \
                 `Delegate=cpu memory pids`, and log in again",
                uid = host.uid
            )),
        }
    }
    if host.container.is_some() && closed_v1(host) {
        lines.push("or, where these hierarchies are mounted read-only: docker run --privileged …".to_owned());
    }
    lines.join("\n")
}

fn closed_v1(host: &Host) -> bool {
    let mut hierarchies = host.cgroups.hierarchies.iter();
    hierarchies.any(|hierarchy| hierarchy.version == Version::V1 && matches!(hierarchy.base, Base::Closed { .. }))
}

fn container_groups(host: &Host) -> String {
    match host.container {
        Some(Container::Kubernetes) => "in the pod: `securityContext: { privileged: true }` on a node with cgroup v2, or \
             set `cgroups = \"if-available\"` under `[enforcement]` and let the pod's own limits hold"
            .to_owned(),
        _ => "docker run --cgroupns=private --security-opt writable-cgroups=true … (Docker 28; before it: --privileged), \
             with stockade as the container's own command; if a shell must come first, let it make room: mkdir \
             /sys/fs/cgroup/init && xargs -rn1 < /sys/fs/cgroup/cgroup.procs > /sys/fs/cgroup/init/cgroup.procs"
            .to_owned(),
    }
}
