//! Layouts as the kernel tells them, and what is read out of each.

use super::*;
use Controller::{Cpu, Cpuacct, Memory, Pids};

/// Version, mount, own group (or `-`), controllers: one line per hierarchy.
fn check(
    name: &str,
    mountinfo: &str,
    memberships: &str,
    expect: &[(Version, &str, &str, &[Controller])],
    missing: &[Controller],
) {
    let layout = CgroupLayout::parse(mountinfo, memberships);
    let found: Vec<_> = layout
        .hierarchies
        .iter()
        .map(|h| {
            (
                h.version,
                h.mount.to_str().unwrap(),
                h.own.as_ref().map_or("-", |own| own.to_str().unwrap()),
                &h.controllers[..],
            )
        })
        .collect();
    assert_eq!(found, expect, "{name}");
    assert_eq!(layout.missing(), missing, "{name}");
}

const V1: Version = Version::V1;
const V2: Version = Version::V2;

#[test]
fn a_v1_machine_with_an_empty_v2_beside_it() {
    let mountinfo = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
37 31 0:34 / /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";
    let memberships = "9:name=systemd:/\n8:pids:/\n4:memory:/jobs/a1\n2:cpuacct:/\n1:cpu:/\n0::/\n";
    check(
        "v1",
        mountinfo,
        memberships,
        &[
            (V1, "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu", &[Cpu]),
            (V1, "/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/cpuacct", &[Cpuacct]),
            (V1, "/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory/jobs/a1", &[Memory]),
            (V1, "/sys/fs/cgroup/pids", "/sys/fs/cgroup/pids", &[Pids]),
        ],
        &[],
    );
}

#[test]
fn a_v2_machine_and_a_systemd_user_session() {
    let mountinfo = "28 22 0:25 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n";
    check(
        "v2",
        mountinfo,
        "0::/user.slice/user-1000.slice/session-3.scope\n",
        &[(V2, "/sys/fs/cgroup", "/sys/fs/cgroup/user.slice/user-1000.slice/session-3.scope", &[Memory, Cpu, Pids])],
        &[],
    );
}

#[test]
fn a_hybrid_where_only_pids_and_cpu_are_on_v1() {
    let mountinfo = "\
30 25 0:26 / /sys/fs/cgroup/unified rw shared:5 - cgroup2 cgroup2 rw
33 25 0:30 / /sys/fs/cgroup/cpu,cpuacct rw shared:6 - cgroup cgroup rw,cpu,cpuacct
34 25 0:31 / /sys/fs/cgroup/pids rw shared:7 - cgroup cgroup rw,pids
";
    let memberships = "5:pids:/user.slice\n3:cpu,cpuacct:/user.slice\n0::/user.slice/session.scope\n";
    check(
        "hybrid",
        mountinfo,
        memberships,
        &[
            (V1, "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct/user.slice", &[Cpu, Cpuacct]),
            (V1, "/sys/fs/cgroup/pids", "/sys/fs/cgroup/pids/user.slice", &[Pids]),
            (V2, "/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified/user.slice/session.scope", &[Memory]),
        ],
        &[],
    );
}

#[test]
fn docker_on_v1_shows_its_own_part_of_the_hierarchy() {
    let mountinfo = "\
700 690 0:33 /docker/4f2a /sys/fs/cgroup/memory ro,nosuid master:16 - cgroup cgroup rw,memory
701 690 0:34 /docker/4f2a /sys/fs/cgroup/pids ro,nosuid master:17 - cgroup cgroup rw,pids
702 690 0:35 /docker/4f2a /sys/fs/cgroup/cpu,cpuacct ro,nosuid master:18 - cgroup cgroup rw,cpu,cpuacct
";
    let memberships = "11:memory:/docker/4f2a\n5:pids:/docker/4f2a/inner\n3:cpu,cpuacct:/other\n";
    check(
        "docker v1",
        mountinfo,
        memberships,
        &[
            (V1, "/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory", &[Memory]),
            (V1, "/sys/fs/cgroup/pids", "/sys/fs/cgroup/pids/inner", &[Pids]),
            (V1, "/sys/fs/cgroup/cpu,cpuacct", "-", &[Cpu, Cpuacct]),
        ],
        &[],
    );
}

#[test]
fn docker_on_v2_with_a_private_namespace() {
    let mountinfo = "900 890 0:26 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw,nsdelegate\n";
    check("docker v2", mountinfo, "0::/\n", &[(V2, "/sys/fs/cgroup", "/sys/fs/cgroup", &[Memory, Cpu, Pids])], &[]);
    check("outside", mountinfo, "0::/../other\n", &[(V2, "/sys/fs/cgroup", "-", &[Memory, Cpu, Pids])], &[]);
}

#[test]
fn what_no_hierarchy_carries_is_named() {
    check("nothing", "22 27 0:21 / /proc rw - proc proc rw\n", "", &[], &[Memory, Cpu, Pids]);
    let no_memory = "33 31 0:30 / /c/cpu rw - cgroup cgroup rw,cpu\n39 31 0:36 / /c/pids rw - cgroup cgroup rw,pids\n";
    check(
        "no memory",
        no_memory,
        "2:pids:/\n1:cpu:/\n",
        &[(V1, "/c/cpu", "/c/cpu", &[Cpu]), (V1, "/c/pids", "/c/pids", &[Pids])],
        &[Memory, Cpuacct],
    );
}

#[test]
fn a_mount_point_with_a_space_is_unescaped() {
    let mountinfo = "35 31 0:32 / /mnt/my\\040groups rw - cgroup2 cgroup2 rw\n";
    check("space", mountinfo, "0::/a b\n", &[(V2, "/mnt/my groups", "/mnt/my groups/a b", &[Memory, Cpu, Pids])], &[]);
}
