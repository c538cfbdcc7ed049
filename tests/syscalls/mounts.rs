//! The mounts are a wall: none can be made, moved, loosened or looked behind (MT).

use crate::controls::Outside::{DiffersWithin, IfKnown, WorksWithin};
use crate::controls::{Case, check};
use crate::support::{Scratch, Yard};
use libc::{ENOSYS, EPERM, EROFS};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

const MOVING: &[Case<'_>] = &[
    ("MT-01 mount", "call mount :none :/tmp :tmpfs 0 0", EPERM, WorksWithin),
    ("MT-01 bind", "call mount :/usr :/tmp 0 0x1000 0", EPERM, DiffersWithin),
    ("MT-01 recursive bind", "call mount :/usr :/tmp 0 0x5000 0", EPERM, WorksWithin),
    ("MT-01 private", "call mount 0 :/ 0 0x44000 0", EPERM, WorksWithin),
    ("MT-01 shared", "call mount 0 :/ 0 0x104000 0", EPERM, WorksWithin),
    ("MT-01 remount", "call mount 0 :/usr 0 0x1020 0", EPERM, DiffersWithin),
    ("MT-01 move", "call mount :/usr :/tmp 0 0x2000 0", EPERM, DiffersWithin),
    ("MT-01 chroot", "call chroot :/tmp", EPERM, WorksWithin),
    ("MT-01 pivot_root", "call pivot_root :/tmp :/tmp", EPERM, DiffersWithin),
    ("MT-01 fsopen", "call fsopen :tmpfs 0", EPERM, WorksWithin),
    ("MT-01 fsconfig", "call fsconfig -1 0 0 0 0", EPERM, DiffersWithin),
    ("MT-01 fsmount", "call fsmount -1 0 0", EPERM, DiffersWithin),
    ("MT-01 fspick", "call fspick -100 :/nowhere 0", EPERM, DiffersWithin),
    ("MT-01 open_tree", "call open_tree -100 :/usr 0", EPERM, DiffersWithin),
    ("MT-01 open_tree clone", "call open_tree -100 :/tmp 0x8001", EPERM, WorksWithin),
    ("MT-01 move_mount", "call move_mount -1 :x -1 :y 0", EPERM, DiffersWithin),
    ("MT-01 mount_setattr", "call mount_setattr -100 :/ 0 @32 32", EPERM, WorksWithin),
    ("MT-01 umount", "call umount2 :/tmp 2", EPERM, DiffersWithin),
    ("MT-04 statmount", "call statmount 0 0 0 0", ENOSYS, IfKnown),
    ("MT-04 listmount", "call listmount 0 0 0 0", ENOSYS, IfKnown),
];

#[test]
fn no_mount_can_be_made_moved_or_changed() {
    check(&Yard::new(), MOVING);
}

/// A line of mountinfo, as proc(5) has it.
struct Mount<'a> {
    device: &'a str,
    root: &'a str,
    point: &'a str,
    options: Vec<&'a str>,
    shared: bool,
}

fn mounts(text: &str) -> Vec<Mount<'_>> {
    let mount = |line| {
        let (before, _) = str::split_once(line, " - ").expect("a separator");
        let words: Vec<&str> = before.split(' ').collect();
        let shared = words[6..].iter().any(|word| word.starts_with("shared:"));
        Mount { device: words[2], root: words[3], point: words[4], options: words[5].split(',').collect(), shared }
    };
    text.lines().map(mount).collect()
}

fn both_tables() -> (String, String) {
    let inside = Yard::new().run(&["/bin/cat", "/proc/self/mountinfo"]);
    assert_eq!(inside.code, 0, "{inside:?}");
    (inside.stdout, std::fs::read_to_string("/proc/self/mountinfo").expect("mounts"))
}

#[test]
fn the_old_root_is_gone() {
    let (inside, outside) = both_tables();
    let (inside, outside) = (mounts(&inside), mounts(&outside));
    let host_root = outside.iter().find(|mount| mount.point == "/").expect("a root");
    let leads_out = |mount: &&Mount<'_>| mount.device == host_root.device && mount.root == host_root.root;
    assert_eq!(inside.iter().filter(leads_out).map(|mount| mount.point).collect::<Vec<_>>(), [""; 0]);
    assert!(outside.iter().any(|mount| leads_out(&mount)));
    assert!(inside.iter().all(|mount| !mount.point.contains("old")), "a mount is called so");
    let outcome = Yard::new().shell("ls -d /*old* /.old* /put_old");
    assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""), "{outcome:?}");
}

#[test]
fn every_mount_is_nosuid_and_nodev_and_shared_with_nobody() {
    let (inside, outside) = both_tables();
    // Only where device nodes are meant to work: `/dev`, and files of `/proc` that are covered with `/dev/null`.
    let is_device = |mount: &Mount<'_>| mount.point.starts_with("/dev/") || mount.root == "/null";
    let loose = |mount: &Mount<'_>| {
        let has = |word| mount.options.contains(&word);
        mount.shared || !has("nosuid") || (!has("nodev") && !is_device(mount))
    };
    let found: Vec<&str> = mounts(&inside).into_iter().filter(loose).map(|mount| mount.point).collect();
    assert_eq!(found, [""; 0]);
    assert!(mounts(&outside).iter().any(loose), "the host has no loose mount, so this proves nothing");
}

/// What masks are made of must not be the agent's to replace (CVE-2025-31133).
#[test]
fn the_devices_cannot_be_replaced() {
    let yard = Yard::new();
    for words in [["remove", "/dev/null"], ["remove", "/dev/fd"], ["mkdir", "/dev/mine"], ["mkdir", "/mnt/mine"]] {
        assert_eq!(yard.probe(&words), EROFS, "{words:?}");
    }
    assert_eq!(yard.probe(&["rename", "/dev/zero", "/dev/null"]), EROFS);
    assert_eq!(yard.probe(&["mkdir", "/dev/shm/mine"]), 0);
}

/// Someone who shares a root swaps a directory for a link to a secret while a cell is being made (CVE-2025-52881).
#[test]
fn a_root_swapped_during_the_start_never_leads_outside() {
    let secret = Scratch::new();
    secret.file("marker", "SECRET");
    let yard = Yard::with("[filesystem]\nread_only_roots = [\"{beside}/data/sub\"]\nhidden = [\"key\"]");
    yard.beside.file("data/sub/marker", "mine");
    let (path, link) = (yard.beside.path().join("data/sub"), yard.beside.path().join("data/link"));
    std::os::unix::fs::symlink(secret.path(), &link).expect("a link");
    let swap = || {
        let flags = nix::fcntl::RenameFlags::RENAME_EXCHANGE;
        nix::fcntl::renameat2(nix::fcntl::AT_FDCWD, &path, nix::fcntl::AT_FDCWD, &link, flags).expect("a swap");
    };
    swap();
    assert_eq!(std::fs::read_to_string(path.join("marker")).expect("the control"), "SECRET");
    let (over, swaps, mut mine) = (AtomicBool::new(false), AtomicU32::new(0), 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                swap();
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        });
        let marker = path.join("marker").display().to_string();
        let outcomes: Vec<_> = (0..25).map(|_| yard.run(&["/bin/cat", &marker])).collect();
        over.store(true, Ordering::Relaxed);
        for outcome in outcomes {
            assert!(!outcome.stdout.contains("SECRET"), "{outcome:?}");
            mine += usize::from(outcome.stdout == "mine");
            assert!(outcome.stdout == "mine" || outcome.code != 0, "{outcome:?}");
        }
    });
    assert!(swaps.into_inner() > 25, "too few swaps to mean anything");
    // With the swapper gone and the directory back in its place, the same run reads it.
    if std::fs::symlink_metadata(&path).expect("it is there").is_symlink() {
        swap();
    }
    let marker = path.join("marker").display().to_string();
    assert_eq!(yard.run(&["/bin/cat", &marker]).stdout, "mine", "{mine} of 25 read it during the swaps");
}
