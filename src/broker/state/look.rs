//! What brokers left, for someone who only looks: no lock is taken, nothing is adopted, changed or deleted.
//!
//! A living broker's directory may be read too. What it writes meanwhile is seen or not; what it has finished stays as
//! it is until it is deleted, and then it is gone.

use super::directory::{self, PREFIX};
use super::journal::{self, Told};
use super::recover::{self, Recovered};
use crate::broker::output::Output;
use crate::broker::output::folder::{Files, Folder};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// The directory of a broker, living or dead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub agent: String,
    /// `broker-<id>`.
    pub name: String,
    pub path: PathBuf,
}

/// The directories of all brokers of all agents, by agent and name. None where there is no state.
pub fn brokers(base: &Path) -> io::Result<Vec<Found>> {
    let mut found = Vec::new();
    let agents = match directory::entries(base) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        other => other?,
    };
    for (agent, _) in agents.into_iter().filter(|(_, about)| about.is_dir()) {
        // One that cannot be read is somebody else's.
        let Ok(entries) = directory::entries(&base.join(&agent)) else { continue };
        for (name, about) in entries {
            if about.is_dir() && name.strip_prefix(PREFIX).is_some_and(|rest| rest.starts_with('-')) {
                found.push(Found { agent: agent.clone(), path: base.join(&agent).join(&name), name });
            }
        }
    }
    found.sort_by(|one, other| (&one.agent, &one.name).cmp(&(&other.agent, &other.name)));
    Ok(found)
}

impl Found {
    /// The processes that its journal tells of, with their output.
    pub fn processes(&self) -> Result<Vec<Recovered>, String> {
        let about = |error: io::Error| format!("`{}`: {error}", self.path.display());
        let folder = Arc::new(Folder::open(&self.path).map_err(about)?);
        let records = match journal::read(&folder) {
            Told::Records { records, .. } => records,
            Told::Strange(why) => return Err(format!("`{}`: {why}", self.path.display())),
        };
        let mut files = recover::segments(&directory::entries(&self.path).map_err(about)?);
        let now = SystemTime::now();
        let read = |story: recover::Story| {
            let proc_id = &story.started.proc_id;
            let own = files.remove(proc_id).unwrap_or_default();
            let output = Output::recovered(recover::remains(&folder, proc_id, own, Some(&story), now));
            Recovered { record: story.started, end: story.ended, output }
        };
        Ok(recover::stories(records).into_iter().map(read).collect())
    }

    /// The recording of a process, if there is one here.
    pub fn recording(&self, proc_id: &str) -> io::Result<File> {
        Folder::open(&self.path)?.read(&super::recording(proc_id))
    }
}
