//! Which cgroup hierarchy carries which controller, and where in it we live.
//!
//! [`CgroupLayout::parse`] is pure: two texts in, a layout out. Where cells may be made is a
//! question to the file system and is answered by [`super::base`]; nothing here changes anything.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupLayout {
    /// Only hierarchies that carry at least one [`Controller`].
    pub hierarchies: Vec<Hierarchy>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hierarchy {
    pub version: Version,
    pub mount: PathBuf,
    /// Our own group as a directory below `mount`; `None` when the mount does not show it.
    pub own: Option<PathBuf>,
    pub controllers: Vec<Controller>,
    pub base: Base,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Version {
    V1,
    V2,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Controller {
    Memory,
    Cpu,
    Pids,
    /// v1 only; v2 counts CPU time in every group.
    Cpuacct,
}

/// Where cells may be made, and what has to happen once before they can be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum Base {
    Ready {
        path: PathBuf,
    },
    /// v2: cells go below `path` once its `cgroup.subtree_control` names our controllers.
    Enable {
        path: PathBuf,
    },
    /// v2: `path` is ours, but we sit in it; a group with processes cannot have limited children,
    /// so we move to a leaf first.
    Settle {
        path: PathBuf,
    },
    /// v2: the user's service manager, behind one of these sockets, will give us a group.
    Scope {
        sockets: Vec<PathBuf>,
    },
    Closed {
        why: String,
    },
}

impl CgroupLayout {
    /// From `/proc/self/mountinfo` and `/proc/self/cgroup`. Every base is still `Closed`.
    ///
    /// A controller is on v2 exactly when no v1 hierarchy has it, so what v1 leaves over is
    /// expected of v2; whether v2 really offers it is checked when the base is chosen.
    pub fn parse(mountinfo: &str, memberships: &str) -> CgroupLayout {
        let mounts: Vec<Mount> = mountinfo.lines().filter_map(Mount::parse).collect();
        let mut hierarchies: Vec<Hierarchy> = Vec::new();
        for mount in mounts.iter().filter(|mount| mount.version == Version::V1) {
            let own = mount.own(memberships);
            let known = hierarchies.iter_mut().find(|known| known.controllers == mount.controllers);
            match known {
                // The same hierarchy mounted twice: keep the view that shows our own group.
                Some(known) if known.own.is_none() && own.is_some() => *known = mount.hierarchy(own),
                Some(_) => {}
                None if mount.controllers.is_empty() => {}
                None => hierarchies.push(mount.hierarchy(own)),
            }
        }
        let rest: Vec<Controller> = [Controller::Memory, Controller::Cpu, Controller::Pids]
            .into_iter()
            .filter(|wanted| !hierarchies.iter().any(|known| known.controllers.contains(wanted)))
            .collect();
        let unified = mounts.iter().filter(|mount| mount.version == Version::V2);
        let unified = unified.max_by_key(|mount| mount.own(memberships).is_some());
        if let (Some(mount), false) = (unified, rest.is_empty()) {
            let own = mount.own(memberships);
            hierarchies.push(Hierarchy { controllers: rest, ..mount.hierarchy(own) });
        }
        CgroupLayout { hierarchies }
    }

    pub fn carrier(&self, controller: Controller) -> Option<&Hierarchy> {
        self.hierarchies.iter().find(|hierarchy| hierarchy.controllers.contains(&controller))
    }

    /// Controllers that no mounted hierarchy carries.
    pub fn missing(&self) -> Vec<Controller> {
        let mut wanted = vec![Controller::Memory, Controller::Cpu, Controller::Pids];
        if self.carrier(Controller::Cpu).is_some_and(|cpu| cpu.version == Version::V1) {
            wanted.push(Controller::Cpuacct);
        }
        wanted.retain(|&controller| self.carrier(controller).is_none());
        wanted
    }
}

/// One line of mountinfo that is a cgroup file system.
struct Mount {
    version: Version,
    /// Which part of the hierarchy is mounted: a container sees only its own.
    root: PathBuf,
    point: PathBuf,
    controllers: Vec<Controller>,
}

impl Mount {
    fn parse(line: &str) -> Option<Mount> {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let (root, point) = (unescape(mount.next()?), unescape(mount.next()?));
        let mut filesystem = filesystem.split(' ');
        let version = match filesystem.next()? {
            "cgroup" => Version::V1,
            "cgroup2" => Version::V2,
            _ => return None,
        };
        let options = filesystem.nth(1).unwrap_or("");
        let controllers = match version {
            Version::V1 => options.split(',').filter_map(Controller::parse).collect(),
            Version::V2 => Vec::new(),
        };
        Some(Mount { version, root, point, controllers })
    }

    /// Our group in this hierarchy as a path below the mount point.
    fn own(&self, memberships: &str) -> Option<PathBuf> {
        let path = memberships.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':');
            let (id, names, path) = (fields.next()?, fields.next()?, fields.next()?);
            let ours = match self.version {
                Version::V1 => names.split(',').any(|name| {
                    Controller::parse(name).is_some_and(|controller| self.controllers.contains(&controller))
                }),
                Version::V2 => id == "0" && names.is_empty(),
            };
            ours.then_some(path)
        })?;
        let inside = Path::new(path).strip_prefix(&self.root).ok()?;
        // A path that climbs out of the cgroup namespace is shown as `/../..`.
        let visible = !inside.components().any(|part| part == std::path::Component::ParentDir);
        visible.then(|| if inside.as_os_str().is_empty() { self.point.clone() } else { self.point.join(inside) })
    }

    fn hierarchy(&self, own: Option<PathBuf>) -> Hierarchy {
        Hierarchy {
            version: self.version,
            mount: self.point.clone(),
            own,
            controllers: self.controllers.clone(),
            base: Base::Closed { why: "not looked at".to_owned() },
        }
    }
}

/// mountinfo writes space, tab, newline and backslash as three octal digits (proc_pid_mountinfo(5)).
fn unescape(text: &str) -> PathBuf {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or("").to_owned();
    for part in parts {
        match part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                plain.push(char::from(byte));
                plain.push_str(&part[3..]);
            }
            None => {
                plain.push('\\');
                plain.push_str(part);
            }
        }
    }
    PathBuf::from(plain)
}

impl Controller {
    fn parse(name: &str) -> Option<Controller> {
        match name {
            "memory" => Some(Controller::Memory),
            "cpu" => Some(Controller::Cpu),
            "pids" => Some(Controller::Pids),
            "cpuacct" => Some(Controller::Cpuacct),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Controller::Memory => "memory",
            Controller::Cpu => "cpu",
            Controller::Pids => "pids",
            Controller::Cpuacct => "cpuacct",
        }
    }
}

impl fmt::Display for Controller {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// `memory, cpu and pids`, for messages.
pub fn list(controllers: &[Controller]) -> String {
    let names: Vec<&str> = controllers.iter().map(|controller| controller.name()).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

#[cfg(test)]
#[path = "cgroup_tests.rs"]
mod tests;
