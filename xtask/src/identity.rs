//! Who runs the tests: root, or an ordinary user with a cgroup subtree of its own.
//!
//! Started by root, the ordinary user is an account made for this, `stockade-test`, and it gets
//! what systemd would delegate to a login: on cgroup v2 a subtree that its processes start in, on
//! v1 one directory in each hierarchy. The delegation is taken back when the value is dropped.

use crate::shell::{About, Result, is_root, output, run_quietly};
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

const ACCOUNT: &str = "stockade-test";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Root,
    User,
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Who::Root => "root",
            Who::User => "user",
        })
    }
}

/// An identity with everything it needs to run a program.
#[derive(Debug)]
pub struct Identity {
    pub who: Who,
    pub uid: u32,
    pub gid: u32,
    pub name: String,
    /// Words before the command that turn us into this identity.
    prefix: Vec<OsString>,
    delegation: Vec<PathBuf>,
}

impl Identity {
    /// Root: ourselves, or through a `sudo` that asks nothing.
    pub fn root() -> Identity {
        let sudo: &[&str] = if is_root() { &[] } else { &["sudo", "-n"] };
        Identity {
            who: Who::Root,
            uid: 0,
            gid: 0,
            name: "root".into(),
            prefix: sudo.iter().map(OsString::from).collect(),
            delegation: Vec::new(),
        }
    }

    /// The ordinary user: ourselves, or started by root the test account with its delegation.
    pub fn user() -> Result<Identity> {
        let started_by_root = is_root();
        let name = if started_by_root {
            make_account()?;
            ACCOUNT.to_owned()
        } else {
            number_or_name(&["-un"])?
        };
        let id = |flag| number_or_name(&[flag, &name])?.parse().about("id");
        let mut identity = Identity {
            who: Who::User,
            uid: id("-u")?,
            gid: id("-g")?,
            name: name.clone(),
            prefix: Vec::new(),
            delegation: Vec::new(),
        };
        if started_by_root {
            identity.delegate()?;
        }
        Ok(identity)
    }

    /// A command run as this identity, with no environment but what the caller adds by `env`.
    pub fn command(&self, env: &[(String, OsString)], program: &Path) -> Command {
        let mut words = self.prefix.clone();
        words.extend(["env".into(), "-i".into()]);
        for (key, value) in env {
            let mut pair = OsString::from(format!("{key}="));
            pair.push(value);
            words.push(pair);
        }
        words.push(program.into());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    }

    /// Delegated directories, the top of each hierarchy.
    pub fn delegated(&self) -> &[PathBuf] {
        &self.delegation
    }

    /// Takes the delegation back; gives what could not be removed because something lives in it.
    pub fn remove_delegation(&self) -> Vec<&Path> {
        let tops = self.delegation.iter().map(PathBuf::as_path);
        tops.filter(|top| !remove_cgroup(top)).collect()
    }

    /// Gives this identity a directory of its own.
    pub fn make_directory(&self, path: &Path) -> Result {
        fs::create_dir_all(path).about(path.display())?;
        if is_root() {
            chown(path, Some(self.uid), Some(self.gid)).about(path.display())?;
        }
        Ok(())
    }

    fn delegate(&mut self) -> Result {
        let name = format!("stockade-{}", self.uid);
        let mut enter = OsString::from(":");
        for mount in cgroup_mounts()? {
            let top = mount.path.join(&name);
            if mount.version == Version::Two {
                spread_controllers(&mount.path);
            }
            // One that is there comes from a run that was killed.
            remove_cgroup(&top);
            fs::create_dir_all(&top).about(top.display())?;
            self.delegation.push(top.clone());
            if mount.version == Version::Two {
                let leaf = top.join("runner");
                spread_controllers(&top);
                fs::create_dir_all(&leaf).about(leaf.display())?;
                enter = "echo 0 > \"$0\"".into();
                self.prefix = vec![leaf.join("cgroup.procs").into()];
            }
            let owner = format!("{}:{}", self.uid, self.gid);
            run_quietly(Command::new("chown").args(["-R", &owner]).arg(&top))?;
        }
        // The move into the leaf needs root, so it comes before the drop.
        let (uid, gid) = (self.uid, self.gid);
        enter.push(format!(" && exec setpriv --reuid {uid} --regid {gid} --clear-groups --inh-caps=-all -- \"$@\""));
        let leaf = self.prefix.pop().unwrap_or_else(|| "none".into());
        self.prefix = vec!["sh".into(), "-c".into(), enter, leaf];
        Ok(())
    }
}

impl Drop for Identity {
    fn drop(&mut self) {
        self.remove_delegation();
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    One,
    Two,
}

#[derive(Debug)]
pub struct CgroupMount {
    pub path: PathBuf,
    pub version: Version,
}

/// The hierarchies that carry limits, and the unified one.
pub fn cgroup_mounts() -> Result<Vec<CgroupMount>> {
    let table = fs::read_to_string("/proc/self/mounts").about("/proc/self/mounts")?;
    Ok(parse_mounts(&table))
}

fn parse_mounts(table: &str) -> Vec<CgroupMount> {
    let limits = ["memory", "cpu", "cpuacct", "pids", "freezer"];
    let mut mounts: Vec<CgroupMount> = Vec::new();
    for line in table.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let &[_, path, kind, options, ..] = &words[..] else {
            continue;
        };
        let version = match kind {
            "cgroup2" => Version::Two,
            "cgroup" if options.split(',').any(|word| limits.contains(&word)) => Version::One,
            _ => continue,
        };
        let path = PathBuf::from(path);
        mounts.push(CgroupMount { path, version });
    }
    mounts
}

/// Lets children of a v2 cgroup use its controllers. One that is busy elsewhere stays off.
fn spread_controllers(cgroup: &Path) {
    let controllers = fs::read_to_string(cgroup.join("cgroup.controllers")).unwrap_or_default();
    for name in controllers.split_whitespace() {
        if ["memory", "cpu", "pids"].contains(&name) {
            let _ = fs::write(cgroup.join("cgroup.subtree_control"), format!("+{name}"));
        }
    }
}

/// Removes a delegated cgroup with everything in it; whether it is gone.
fn remove_cgroup(top: &Path) -> bool {
    // A killed process leaves its cgroup a moment later.
    for _ in 0..20 {
        end_cgroup(top);
        if !top.exists() {
            return true;
        }
        sleep(Duration::from_millis(50));
    }
    false
}

fn end_cgroup(dir: &Path) {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    for child in entries.filter(|entry| entry.path().is_dir()) {
        end_cgroup(&child.path());
    }
    let members = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
    for pid in members.lines() {
        let _ = run_quietly(Command::new("kill").args(["-KILL", pid]));
    }
    let _ = fs::remove_dir(dir);
}

fn make_account() -> Result {
    if number_or_name(&["-u", ACCOUNT]).is_ok() {
        return Ok(());
    }
    let words = ["--system", "--user-group", "--create-home", "--shell"];
    run_quietly(Command::new("useradd").args(words).args(["/bin/bash", ACCOUNT]))
}

fn number_or_name(flags: &[&str]) -> Result<String> {
    output(Command::new("id").args(flags)).map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Version, parse_mounts};

    #[test]
    fn a_hybrid_layout_gives_the_limiting_hierarchies_and_the_unified_one() {
        let table = "cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu,cpuacct 0 0\n\
                     cgroup /sys/fs/cgroup/cpuset cgroup rw,relatime,cpuset 0 0\n\
                     cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n\
                     tmpfs /tmp tmpfs rw 0 0\n";
        let mounts = parse_mounts(table);
        let versions: Vec<_> = mounts.iter().map(|mount| mount.version).collect();
        assert_eq!(versions, [Version::One, Version::Two]);
        assert!(mounts[0].path.ends_with("cpu"));
    }
}
