//! Makes every base ready for cells, once, before the first cell; afterwards all are `Ready`.
//!
//! This is the one place that writes `cgroup.procs` (about 10 ms each time), and only where a v2
//! layout asks for it: nothing is moved on v1, nor for root below an ancestor that serves as it is.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::{GroupError, file, scope};
use crate::host::{Base, CgroupLayout, Controller};

/// Where we ourselves sit when our group becomes the cells' base.
const LEAF: &str = "broker";

/// A scope is made in a few milliseconds; a manager that hangs must not hang us.
const SCOPE_PATIENCE: Duration = Duration::from_secs(3);

/// `us`: the processes to move, broker and launcher; the caller must be one of them.
pub fn prepare(layout: &mut CgroupLayout, us: &[u32]) -> Result<(), GroupError> {
    if let Some(&controller) = layout.missing().first() {
        return Err(GroupError::Missing { controller });
    }
    for hierarchy in &mut layout.hierarchies {
        let wanted = &hierarchy.controllers;
        let path = match &hierarchy.base {
            Base::Ready { .. } => continue,
            Base::Closed { why } => {
                return Err(GroupError::Closed { controllers: wanted.clone(), why: why.clone() });
            }
            Base::Enable { path } => {
                enable(path, wanted)?;
                path.clone()
            }
            Base::Settle { path } => {
                settle(path, wanted, us)?;
                path.clone()
            }
            Base::Scope { sockets } => {
                let path = enter_scope(sockets, &hierarchy.mount, us)?;
                settle(&path, wanted, us)?;
                hierarchy.own = Some(path.join(LEAF));
                path
            }
        };
        hierarchy.base = Base::Ready { path };
    }
    Ok(())
}

/// Adds our controllers to what is passed down; never takes one away.
fn enable(group: &Path, wanted: &[Controller]) -> Result<(), GroupError> {
    let dir = file::open_dir(group).map_err(|source| GroupError::at(group, source))?;
    for &controller in wanted {
        file::write(&dir, "cgroup.subtree_control", &format!("+{controller}")).map_err(|source| GroupError::Limit {
            controller,
            path: group.to_owned(),
            source,
        })?;
    }
    Ok(())
}

fn settle(group: &Path, wanted: &[Controller], us: &[u32]) -> Result<(), GroupError> {
    let leaf = group.join(LEAF);
    if let Err(source) = fs::create_dir(&leaf)
        && source.kind() != std::io::ErrorKind::AlreadyExists
    {
        return Err(GroupError::at(&leaf, source));
    }
    let dir = file::open_dir(&leaf).map_err(|source| GroupError::at(&leaf, source))?;
    for pid in us {
        file::write(&dir, "cgroup.procs", &pid.to_string()).map_err(|source| GroupError::at(&leaf, source))?;
    }
    enable(group, wanted)
}

/// Tries the sockets in turn, then waits until the kernel says that we were moved.
fn enter_scope(sockets: &[PathBuf], mount: &Path, us: &[u32]) -> Result<PathBuf, GroupError> {
    let unit = format!("stockade-{}.scope", std::process::id());
    let mut why = "no socket".to_owned();
    for socket in sockets {
        match scope::start(socket, &unit, us, SCOPE_PATIENCE) {
            Ok(()) => return await_scope(mount, &unit),
            Err(error) => why = format!("{}: {error}", socket.display()),
        }
    }
    Err(GroupError::Scope { why })
}

fn await_scope(mount: &Path, unit: &str) -> Result<PathBuf, GroupError> {
    let deadline = Instant::now() + SCOPE_PATIENCE;
    loop {
        let memberships = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let own = memberships.lines().find_map(|line| line.strip_prefix("0::/"));
        if let Some(own) = own.filter(|own| own.ends_with(unit)) {
            return Ok(mount.join(own));
        }
        if Instant::now() >= deadline {
            return Err(GroupError::Scope { why: format!("`{unit}` was granted, but we were not moved into it") });
        }
        thread::sleep(Duration::from_millis(1));
    }
}
