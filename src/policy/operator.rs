//! Who started stockade, and which of their places no agent may be given.
//!
//! `~` is the home of the password database, not `$HOME`: a client may have chosen the environment
//! that stockade starts in, and must not choose with it what a policy grants.

use std::env;
use std::path::{Path, PathBuf};

use nix::unistd::{User, geteuid};

use super::error::Error;

/// The facts of the host that a policy is resolved against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operator {
    pub uid: u32,
    /// `~` is the first; none of them may be a read-write root.
    pub homes: Vec<PathBuf>,
    /// Where stockade keeps its state, or has kept it under another environment.
    pub states: Vec<PathBuf>,
    /// The directory of the stockade binary.
    pub program: Option<PathBuf>,
    /// The workspace, when none is named.
    pub cwd: PathBuf,
}

impl Operator {
    pub fn current() -> Result<Self, Error> {
        let uid = geteuid();
        let listed = User::from_uid(uid).ok().flatten().map(|user| user.dir);
        let told = env::var_os("HOME").map(PathBuf::from);
        let mut homes: Vec<PathBuf> =
            listed.into_iter().chain(told).filter(|home| home.is_absolute()).map(|home| settle(&home)).collect();
        homes.dedup();
        let told = env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let states = homes.iter().map(|home| home.join(".local/state")).chain(told).chain([PathBuf::from("/var/lib")]);
        // Gone or unreadable: whatever is then written relative to it is missing, and is told so where it is needed.
        let cwd = env::current_dir().unwrap_or_else(|_| PathBuf::from("/proc/self/cwd"));
        Ok(Operator {
            uid: uid.as_raw(),
            states: states.map(|state| settle(&state.join("stockade"))).collect(),
            program: env::current_exe().ok().as_deref().and_then(Path::parent).map(settle),
            homes,
            cwd,
        })
    }
}

/// Canonical as far as the path exists; what does not exist yet is kept as it is.
fn settle(path: &Path) -> PathBuf {
    let existing = path.ancestors().find_map(|ancestor| Some((ancestor, ancestor.canonicalize().ok()?)));
    match existing {
        Some((ancestor, canonical)) => path.strip_prefix(ancestor).map_or(canonical.clone(), |rest| {
            if rest.as_os_str().is_empty() { canonical } else { canonical.join(rest) }
        }),
        None => path.to_owned(),
    }
}
