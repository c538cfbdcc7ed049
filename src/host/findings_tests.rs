//! What is said of hosts of many kinds, and what remedy is named.

use std::path::PathBuf;

use super::*;
use crate::host::{CgroupLayout, Container, Controller, Hierarchy, Mounts, Release, UserNamespaces};

/// An ordinary user on a current kernel, everything open.
fn open_host() -> Host {
    Host {
        kernel: Release::parse("6.12.1"),
        uid: 1000,
        gid: 1000,
        capabilities: Vec::new(),
        landlock_abi: 6,
        seccomp: true,
        namespaces: UserNamespaces {
            max: Some(1000),
            unprivileged_clone: None,
            apparmor_restricts: false,
            apparmor_profile: None,
            unshare: Call::Open,
        },
        container: None,
        mounts: Mounts { new_api: Call::Open, setattr: Call::Open, idmapped: false, overlay: true, proc_visible: true },
        cgroups: CgroupLayout {
            hierarchies: vec![Hierarchy {
                version: Version::V2,
                mount: PathBuf::from("/sys/fs/cgroup"),
                own: None,
                controllers: vec![Controller::Memory, Controller::Cpu, Controller::Pids],
                base: Base::Scope { sockets: vec![PathBuf::from("/run/user/1000/bus")] },
            }],
        },
        program: PathBuf::from("/usr/bin/stockade"),
    }
}

fn state(host: &Host, wall: &str) -> State {
    host.findings().into_iter().find(|finding| finding.wall == wall).expect("a wall of that name").state
}

/// The wall is missing, and both the reason and the remedy name what they must.
fn check_missing(wall: &str, says: &str, remedy_says: &str, change: impl Fn(&mut Host)) {
    let mut host = open_host();
    assert!(matches!(state(&host, wall), State::Enforced { .. }), "control: {:?}", state(&host, wall));
    change(&mut host);
    match state(&host, wall) {
        State::Missing { what, remedy } => {
            assert!(what.contains(says), "{what}");
            assert!(remedy.contains(remedy_says), "{remedy}");
        }
        other => panic!("{wall}: {other:?}"),
    }
}

#[test]
fn every_missing_wall_names_its_reason_and_its_remedy() {
    check_missing("user namespaces", "max_user_namespaces", "sysctl -w user.max", |host| host.namespaces.max = Some(0));
    check_missing("user namespaces", "unprivileged_userns_clone", "=1", |host| {
        host.namespaces.unprivileged_clone = Some(false);
    });
    check_missing("user namespaces", "AppArmor", "profile stockade /usr/bin/stockade", |host| {
        host.namespaces.apparmor_restricts = true;
        host.namespaces.apparmor_profile = Some("unconfined".to_owned());
    });
    check_missing("user namespaces", "seccomp filter", "seccomp=unconfined", |host| {
        host.container = Some(Container::Docker);
        host.namespaces.unshare = Call::Blocked;
    });
    check_missing("mounts", "masked", "procMount: Unmasked", |host| {
        host.container = Some(Container::Kubernetes);
        host.mounts.proc_visible = false;
    });
    check_missing("mounts", "5.12", "5.12", |host| host.mounts.setattr = Call::Unknown);
    check_missing("landlock", "5.13, this is 5.10.0-33", "if-available", |host| {
        host.landlock_abi = 0;
        host.kernel = Release::parse("5.10.0-33");
    });
    check_missing("landlock", "not switched on", "lsm=landlock", |host| host.landlock_abi = 0);
    check_missing("seccomp", "no seccomp", "CONFIG_SECCOMP_FILTER", |host| host.seccomp = false);
    check_missing("cgroups", "carries memory, cpu and pids", "mount -t cgroup2", |host| {
        host.cgroups.hierarchies.clear();
    });
    check_missing("cgroups", "not yours", "enable-linger 1000", |host| {
        host.cgroups.hierarchies[0].base = Base::Closed { why: "not yours".to_owned() };
    });
    check_missing("cgroups", "not yours", "chown -R 1000:1000 /sys/fs/cgroup/stockade-1000", |host| {
        host.cgroups.hierarchies[0].version = Version::V1;
        host.cgroups.hierarchies[0].controllers.push(Controller::Cpuacct);
        host.cgroups.hierarchies[0].base = Base::Closed { why: "not yours".to_owned() };
    });
}

#[test]
fn an_apparmor_profile_of_our_own_lifts_ubuntus_rule() {
    let mut host = open_host();
    host.namespaces.apparmor_restricts = true;
    host.namespaces.apparmor_profile = Some("stockade (unconfined)".to_owned());
    assert!(matches!(state(&host, "user namespaces"), State::Enforced { .. }));
}

#[test]
fn root_without_idmapped_mounts_is_limited_not_missing() {
    let mut host = open_host();
    host.uid = 0;
    assert!(matches!(state(&host, "identity"), State::Limited { .. }));
}

#[test]
fn findings_serialize_flat() {
    let json = serde_json::to_value(open_host().findings()).expect("plain data");
    assert_eq!(json[0]["wall"], "user namespaces");
    assert_eq!(json[0]["state"], "enforced");
    assert!(json[0]["how"].is_string());
}
