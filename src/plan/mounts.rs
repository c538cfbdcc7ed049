//! The cell's tree, as steps: system, devices, scratch, roots, masks, in this order.

use super::cell::{Absent, Executable, Identity, MaskHolds, Origin, Step, Writable};
use crate::host::System;
use crate::host::programs::{Kept, Listed, Unlisted};
use crate::host::system::{Etc, Top};
use crate::path::{CellPath, HostPath};
use crate::policy::{Access, Policy};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A directory with more programs to cover than this is rebuilt from what stays, when that is less.
const MANY_MASKS: usize = 8;

pub fn steps(policy: &Policy, system: &System, identity: &Identity) -> Vec<Step> {
    let anything_runs = if system.programs.listed.is_some() { Executable::No } else { Executable::Yes };
    let mut steps = skeleton(policy, identity);
    steps.extend(operating_system(system));
    steps.extend(devices());
    for (at, name, mode) in [
        ("/tmp", "tmp", 0o1777),
        ("/var/tmp", "var-tmp", 0o1777),
        ("/home/agent", "home", 0o700),
        ("/dev/shm", "shm", 0o1777),
    ] {
        steps.push(Step::Scratch { at: CellPath::new(at), name: name.into(), mode, executable: anything_runs });
    }
    steps.extend(roots(policy, system, anything_runs));
    steps.extend(programs(system));
    steps.push(Step::SealSkeleton);
    steps
}

fn skeleton(policy: &Policy, identity: &Identity) -> Vec<Step> {
    let file = |at: &str, text: String| Step::File { at: CellPath::new(at), text };
    let directory = |at: &str, mode| Step::Directory { at: CellPath::new(at), mode };
    let (uid, gid) = (identity.inner_uid, identity.inner_gid);
    let shell = policy.commands.shell.as_deref().unwrap_or(Path::new("/bin/sh")).display();
    let root = if uid == 0 { "" } else { "root:x:0:0:root:/root:/usr/sbin/nologin\n" };
    let root_group = if gid == 0 { "" } else { "root:x:0:\n" };
    let nobody = "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
    vec![
        // Empty: what directories in `/proc` are covered with.
        directory("/mnt", 0o555),
        directory("/run", 0o755),
        directory("/var", 0o755),
        file("/etc/passwd", format!("agent:x:{uid}:{gid}:agent:/home/agent:{shell}\n{root}{nobody}")),
        file("/etc/group", format!("agent:x:{gid}:\n{root_group}tty:x:5:\nnogroup:x:65534:\n")),
        file("/etc/hosts", "127.0.0.1 localhost stockade\n::1 localhost\n".into()),
        file("/etc/hostname", "stockade\n".into()),
        file("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n".into()),
        file("/etc/gitconfig", "[safe]\n\tdirectory = *\n".into()),
    ]
}

fn bind(from: impl Into<PathBuf>, origin: Origin, writable: Writable, executable: Executable) -> Step {
    let from = HostPath::new(from);
    Step::Bind { at: from.in_cell(), from, origin, writable, executable }
}

fn operating_system(system: &System) -> Vec<Step> {
    let shown = |path: &Path| bind(path, Origin::System, Writable::No, Executable::Yes);
    let mut steps = vec![shown(Path::new("/usr")), Step::EmptyProc { at: CellPath::new("/proc") }];
    for top in &system.top {
        steps.push(match top {
            Top::Link { at, to } => Step::Link { at: CellPath::new(at), to: to.display().to_string() },
            Top::Directory(path) => shown(path),
        });
    }
    steps.extend(system.etc.iter().map(|entry| match entry {
        Etc::Copy(path) => Step::Copy { from: HostPath::new(path), at: CellPath::new(path) },
        Etc::Link { at, to } => Step::Link { at: CellPath::new(at), to: to.display().to_string() },
        Etc::Show(path) => shown(path),
    }));
    steps
}

fn devices() -> Vec<Step> {
    let node = |name: &str| bind(format!("/dev/{name}"), Origin::Device, Writable::Yes, Executable::No);
    let link = |name: &str, to: &str| Step::Link { at: CellPath::new(format!("/dev/{name}")), to: to.into() };
    let mut steps: Vec<Step> = ["null", "zero", "full", "random", "urandom", "tty"].map(node).into();
    steps.push(Step::Terminals { at: CellPath::new("/dev/pts") });
    steps.push(link("ptmx", "pts/ptmx"));
    steps.push(link("fd", "/proc/self/fd"));
    for (number, name) in ["stdin", "stdout", "stderr"].into_iter().enumerate() {
        steps.push(link(name, &format!("/proc/self/fd/{number}")));
    }
    steps
}

/// The rule for each path: the most specific path wins, and on a tie the stricter one.
pub fn rules(policy: &Policy, hidden: &[PathBuf]) -> BTreeMap<PathBuf, Access> {
    let mut rules: BTreeMap<PathBuf, Access> = BTreeMap::new();
    let grants = policy.filesystem.grants.iter().map(|grant| (grant.path.clone(), grant.access));
    for (path, access) in grants.chain(hidden.iter().map(|path| (path.clone(), Access::Hidden))) {
        rules.entry(path).and_modify(|known| *known = access.max(*known)).or_insert(access);
    }
    rules
}

fn roots(policy: &Policy, system: &System, executable: Executable) -> Vec<Step> {
    let rules = rules(policy, &system.hidden);
    // A BTreeMap of paths is sorted by component, so a path comes after everything above it.
    let mut steps = Vec::new();
    let mut places = places(&rules, system.programs.listed.as_ref(), executable);
    pin(&mut places);
    let hidden_above = |path: &Path| {
        let nearest = path.ancestors().skip(1).find_map(|above| rules.get(above));
        nearest == Some(&Access::Hidden)
    };
    for (path, (access, executable)) in places {
        // Below what is hidden there is nothing left to hide.
        if access == Access::Hidden && hidden_above(&path) {
            continue;
        }
        let granted = |(other, access): (&PathBuf, &Access)| {
            other.starts_with(&path) && *other != path && *access != Access::Hidden
        };
        // A read-only root of the system itself is there already.
        let above = |other: &PathBuf| path.starts_with(other) && *other != path;
        if access == Access::ReadOnly && path.starts_with("/usr") && !rules.keys().any(above) {
            continue;
        }
        steps.push(match access {
            Access::ReadWrite => bind(path, Origin::Root, Writable::Yes, executable),
            Access::ReadOnly => bind(path, Origin::Root, Writable::No, executable),
            Access::Hidden => {
                let holds = if rules.iter().any(granted) { MaskHolds::Grants } else { MaskHolds::Nothing };
                Step::Mask { at: CellPath::new(path), holds, absent: Absent::Refused }
            }
        });
    }
    steps
}

/// Directories between a read-write root and a rule below it become mounts too: a mount point cannot be renamed, so the
/// agent cannot move what the rule is about to where the next cell would not look for it.
fn pin(places: &mut BTreeMap<PathBuf, (Access, Executable)>) {
    for path in places.keys().cloned().collect::<Vec<_>>() {
        for above in path.ancestors().skip(1) {
            // The nearest place above decides; only in a read-write one can anything be renamed.
            let Some((root, (access, executable))) = above.ancestors().find_map(|p| places.get_key_value(p)) else {
                break;
            };
            if *access != Access::ReadWrite || root == above {
                break;
            }
            let place = (*access, *executable);
            places.insert(above.to_path_buf(), place);
        }
    }
}

/// The rules with what may run there. Allowed programs inside a root become places of their own: mounted over
/// themselves, executable this time, and before what is stricter below them.
fn places(
    rules: &BTreeMap<PathBuf, Access>,
    listed: Option<&Listed>,
    executable: Executable,
) -> BTreeMap<PathBuf, (Access, Executable)> {
    let runs = |path: &Path| listed.is_some_and(|l| l.directories.iter().any(|known| path.starts_with(known)));
    let place = |(path, access): (&PathBuf, &Access)| {
        (path.clone(), (*access, if runs(path) { Executable::Yes } else { executable }))
    };
    let mut places: BTreeMap<PathBuf, (Access, Executable)> = rules.iter().map(place).collect();
    let rule = |path: &PathBuf| rules.iter().rev().find(|(root, _)| path.starts_with(root)).map(|(_, access)| *access);
    let directories = listed.iter().flat_map(|l| &l.directories).map(|path| (path, Access::ReadWrite));
    // An allowed file is read-only: else the agent could put another program into it.
    let files = listed.iter().flat_map(|l| &l.allowed).map(|path| (path, Access::ReadOnly));
    for (path, most) in directories.chain(files) {
        if let Some(access) = rule(path).filter(|access| *access != Access::Hidden) {
            places.entry(path.clone()).or_insert((access.max(most), Executable::Yes));
        }
    }
    places
}

/// Blocked programs, and with an explicit list every other compiled program, can neither run nor be read.
fn programs(system: &System) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    // A set: a path covered twice would be a mask upon a mask.
    let mut covered: BTreeSet<&PathBuf> = system.programs.blocked.iter().collect();
    let listed = system.programs.listed.as_ref();
    for directory in listed.iter().flat_map(|listed| &listed.data) {
        steps.push(bind(directory, Origin::System, Writable::No, Executable::No));
    }
    for (listed, unlisted) in listed.iter().flat_map(|listed| listed.others.iter().map(move |other| (listed, other))) {
        let rebuilt = rebuild(unlisted, listed);
        if unlisted.programs.len() > MANY_MASKS && rebuilt.len() <= unlisted.programs.len() {
            steps.extend(rebuilt);
        } else {
            covered.extend(&unlisted.programs);
        }
    }
    let mask =
        |path: &PathBuf| Step::Mask { at: CellPath::new(path), holds: MaskHolds::Nothing, absent: Absent::Skipped };
    steps.extend(covered.into_iter().map(mask));
    steps
}

/// Covers a directory and puts back what may stay. Of programs, scripts and links to them only the name stays.
fn rebuild(unlisted: &Unlisted, listed: &Listed) -> Vec<Step> {
    let covers = |path: &PathBuf| {
        listed.allowed.contains(path) || listed.directories.iter().any(|directory| path.starts_with(directory))
    };
    let within = CellPath::new(&unlisted.directory);
    let mut steps = vec![Step::Mask { at: within.clone(), holds: MaskHolds::Rebuilt, absent: Absent::Refused }];
    let mut names: Vec<&PathBuf> = unlisted.programs.iter().collect();
    for kept in &unlisted.rest {
        match kept {
            Kept::Link { at, to, real } if covers(real) => {
                steps.push(Step::Link { at: CellPath::new(at), to: to.display().to_string() });
            }
            Kept::Link { at, .. } => names.push(at),
            Kept::Script(path) => names.push(path),
            Kept::File(path) => steps.push(bind(path, Origin::System, Writable::No, Executable::Yes)),
        }
    }
    let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    steps.push(Step::Placeholders { within, names: names.into_iter().filter_map(name).collect() });
    steps
}
