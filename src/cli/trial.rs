//! Trying a cell for real: `doctor`'s last line, and `policy check --live`.

use super::policy::{Judges, PolicyCommand};
use super::say::Complaint;
use super::{doctor, policy};
use crate::broker::cell::{Cell, Ready, Stdio};
use crate::broker::fault::Trouble;
use crate::host::{Host, System};
use crate::launch::Launcher;
use crate::path::CellPath;
use crate::plan::command::{CommandPlan, Request, Task, Words};
use crate::plan::{self, refusal::Refusal};
use crate::policy::expect::{Judge, Paper};
use crate::policy::{Attempt, Network, Overrides, Policy, Verdict};
use crate::sys::{Errno, process};
use crate::wire::Stage;
use std::cell::RefCell;
use std::fs::File;
use std::io::{stderr, stdout};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::path::Path;

/// The findings, then a command in a real cell of the default policy: what is said can be enforced was enforced.
pub fn doctor(json: bool, launcher: Launcher) -> Result<u8, Complaint> {
    let host = Host::probe();
    let findings = host.findings();
    let format = if json { doctor::Format::Json } else { doctor::Format::Text };
    let trial = match try_default(&host, launcher) {
        Ok(()) => {
            doctor::Trial::Passed { how: "a cell of the default policy was made, and a process sealed in it".into() }
        }
        Err((what, remedy)) => doctor::Trial::Failed { what, remedy },
    };
    Ok(doctor::report(&findings, Some(&trial), format, &mut stdout())?)
}

fn try_default(host: &Host, launcher: Launcher) -> Result<(), (String, Option<String>)> {
    let workspace = tempdir().map_err(|error| (error.to_string(), None))?;
    let policy =
        Policy::load(None, Some(workspace.path()), &Overrides::default()).map_err(|error| (error.to_string(), None))?;
    let refused = |refusal: Refusal| (refusal.to_string(), Some(refusal.hint()));
    let system = System::look(&plan::question(&policy)).map_err(|failed| (failed.why, None))?;
    let plan = plan::make_cell(&policy, host, &system).map_err(refused)?;
    let troubled = |trouble: Trouble| (trouble.to_string(), trouble.hint());
    let mut live = Live { cell: Cell::make(launcher, plan).map_err(troubled)? };
    match live.try_out("read", "/usr").map_err(troubled)? {
        Errno::UnknownErrno => Ok(()),
        errno => Err((format!("`/usr` cannot be read inside a cell: {}", errno.desc()), None)),
    }
}

/// An empty directory that goes away again.
struct TemporaryDirectory(std::path::PathBuf);

impl TemporaryDirectory {
    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

fn tempdir() -> std::io::Result<TemporaryDirectory> {
    let path = nix::unistd::mkdtemp(&std::env::temp_dir().join("stockade-doctor-XXXXXX"))?;
    Ok(TemporaryDirectory(path.canonicalize()?))
}

pub fn policy(command: &PolicyCommand, launcher: Option<Launcher>) -> Result<u8, Complaint> {
    let live = LiveJudge { launcher: RefCell::new(launcher), live: RefCell::new(None) };
    Ok(policy::run(command, Judges { paper: &Paper, live: &live }, &mut stdout(), &mut stderr())?)
}

/// Asks a real cell, made at the first question.
struct LiveJudge {
    launcher: RefCell<Option<Launcher>>,
    live: RefCell<Option<Live>>,
}

struct Live {
    cell: Cell,
}

impl Judge for LiveJudge {
    fn judge(&self, policy: &Policy, attempt: &Attempt) -> Result<Verdict, String> {
        let mut live = self.live.borrow_mut();
        if live.is_none() {
            let launcher = self.launcher.borrow_mut().take().ok_or("no launcher")?;
            let system = System::look(&plan::question(policy)).map_err(|failed| failed.why)?;
            let plan = plan::make_cell(policy, &Host::probe(), &system).map_err(|refusal| refusal.to_string())?;
            *live = Some(Live { cell: Cell::make(launcher, plan).map_err(|trouble| trouble.to_string())? });
        }
        let live = live.as_mut().ok_or("no cell")?;
        let answer = match attempt {
            Attempt::Read(path) => live.try_out("read", &path.to_string_lossy()),
            Attempt::Write(path) => live.try_out("write", &path.to_string_lossy()),
            Attempt::Connect(host, port) => match host.parse::<IpAddr>() {
                // A loopback of the cell's own answers, but it is not the one that was meant.
                Ok(address) if address.is_loopback() && !matches!(policy.network, Network::Host { .. }) => {
                    return Paper.judge(policy, attempt);
                }
                // A listed address is reached through the broker alone.
                Ok(_)
                    if matches!(policy.network, Network::Proxy { .. })
                        && Paper.judge(policy, attempt)? == Verdict::Allowed =>
                {
                    return Ok(Verdict::Allowed);
                }
                Ok(address) => live.try_out("connect", &SocketAddr::new(address, *port).to_string()),
                // Inside there is nobody to ask what a name means.
                Err(_) => return Paper.judge(policy, attempt),
            },
            Attempt::Execute(program) => live.execute(policy, program),
            Attempt::Run(argv) => return Ok(verdict(command(policy, argv).is_ok())),
        };
        answer.map(|errno| verdict(errno == Errno::UnknownErrno)).map_err(|trouble| trouble.to_string())
    }
}

fn verdict(allowed: bool) -> Verdict {
    if allowed { Verdict::Allowed } else { Verdict::Denied }
}

fn command(policy: &Policy, argv: &[String]) -> Result<CommandPlan, Refusal> {
    let request = Request { words: Words::Argv(argv.to_vec()), cwd: Some("/tmp".into()), env: Vec::new() };
    plan::command::plan(policy, &request, &[])
}

impl Live {
    /// The kernel's answer to one attempt; `UnknownErrno` stands for success.
    fn try_out(&mut self, kind: &str, what: &str) -> Result<Errno, Trouble> {
        let argv = vec![kind.to_owned(), what.to_owned()];
        self.ask(&CommandPlan {
            candidates: Vec::new(),
            argv,
            env: Vec::new(),
            cwd: CellPath::new("/tmp"),
            task: Task::Attempt,
        })
    }

    /// Executes a program and ends it as soon as it runs.
    fn execute(&mut self, policy: &Policy, program: &str) -> Result<Errno, Trouble> {
        let mut plan = match command(policy, &[program.to_owned()]) {
            Ok(plan) => plan,
            // Whatever the lists say of the words, the kernel is asked too.
            Err(_) => match command(policy, &["true".to_owned()]) {
                Ok(plan) => plan,
                Err(_) => return Ok(Errno::EACCES),
            },
        };
        plan.argv = vec![program.to_owned()];
        let name = |directory: &&str| CellPath::new(Path::new(directory).join(program));
        plan.candidates = if program.contains('/') {
            vec![CellPath::new(program)]
        } else {
            crate::host::programs::PROGRAM_DIRECTORIES.iter().map(name).collect()
        };
        self.ask(&plan)
    }

    fn ask(&mut self, plan: &CommandPlan) -> Result<Errno, Trouble> {
        let ready = self.cell.take()?;
        let null = || File::options().read(true).write(true).open("/dev/null").map(Into::into);
        let lost = |_| Trouble::lost("the process");
        let stdio = [null().map_err(lost)?, null().map_err(lost)?, null().map_err(lost)?];
        ready.start(plan, &Stdio::Descriptors(stdio))?;
        let answer = answer(&ready);
        let _ = process::pidfd_signal(ready.pidfd.as_fd(), libc::SIGKILL);
        answer
    }
}

/// What is said at the door: an answer, a failure to execute, or nothing because exec worked.
fn answer(ready: &Ready) -> Result<Errno, Trouble> {
    match ready.verdict() {
        None => Ok(Errno::UnknownErrno),
        Some(Trouble { stage: Some(Stage::Attempt | Stage::Exec), errno, .. }) => Ok(errno),
        Some(trouble) => Err(trouble),
    }
}
