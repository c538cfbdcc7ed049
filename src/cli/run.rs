//! `stockade run` and `stockade shell`: one command in a cell of its own.
//!
//! The main thread watches the process, the deadlines and our signals; one thread per stream moves bytes, so that
//! a reader who stops reading delays nothing but himself.

use super::say::{Complaint, printable};
use super::streams::{Movers, capture, feed, pipes};
use super::{CellArgs, REFUSED, RunArgs, terminal};
use crate::broker::answer::{End, Reason};
use crate::broker::capture::{Capture, Shown};
use crate::broker::cell::{Cell, Ready, Stdio};
use crate::broker::fault::{Trouble, exec_hint};
use crate::broker::process::{Activity, Deadlines, Process};
use crate::broker::watch::Wish;
use crate::host::{Host, System};
use crate::launch::Launcher;
use crate::plan;
use crate::plan::cell::CellPlan;
use crate::plan::command::{CommandPlan, Request, Words};
use crate::policy::Policy;
use crate::sys::Errno;
use crate::wire::Stage;
use nix::sys::signal::Signal;
use nix::sys::signalfd::SignalFd;
use serde::Serialize;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The key that ends a terminal's input (termios(3), VEOF).
const END_OF_INPUT: u8 = 4;

const TIMED_OUT: u8 = 124;
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

pub fn run(args: &RunArgs, launcher: Launcher) -> Result<u8, Complaint> {
    let policy = args.cell.load()?;
    let words = Words::Argv(args.command.clone());
    let with_terminal = args.tty || (!args.no_tty && !args.json && terminal::is_interactive());
    let job = Job::plan(&policy, &args.cell, words, policy.limits.wall_time)?;
    if args.json {
        return job.run_for_json(launcher);
    }
    if with_terminal { job.run_in_terminal(launcher) } else { job.run_through_pipes(launcher) }
}

pub fn shell(args: &CellArgs, launcher: Launcher) -> Result<u8, Complaint> {
    let policy = args.load()?;
    let shell = policy.commands.shell.clone().ok_or(plan::refusal::Refusal::NoShell)?;
    let words = Words::Argv(vec![shell.display().to_string(), "-i".into()]);
    // A person at a prompt is not a runaway command.
    let wall = policy.limits.max_wall_time;
    Job::plan(&policy, args, words, wall)?.run_in_terminal(launcher)
}

/// Everything that can be decided without doing anything.
pub fn decide(policy: &Policy, args: &CellArgs, words: Words) -> Result<(System, CellPlan, CommandPlan), Complaint> {
    let system = System::look(&plan::question(policy))?;
    let cell = plan::make_cell(policy, &Host::probe(), &system)?;
    // As any program would take it: relative to where it was typed.
    let cwd = args.cwd.as_ref().map(std::path::absolute).transpose()?;
    let request = Request { words, cwd, env: Vec::new() };
    let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    let operator: Vec<(String, String)> = std::env::vars_os().filter_map(text).collect();
    let command = plan::command::plan(policy, &request, &operator)?;
    Ok((system, cell, command))
}

/// Everything decided, nothing done.
struct Job {
    cell: CellPlan,
    command: CommandPlan,
    deadlines: Deadlines,
    inline_bytes: usize,
    weaker: Vec<&'static str>,
}

/// The `run` result of the tool surface.
#[derive(Serialize)]
struct Outcome<'a> {
    proc_id: String,
    state: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    reason: &'a str,
    stdout: String,
    stderr: String,
    stdout_bytes: u64,
    stderr_bytes: u64,
    truncated: bool,
    #[serde(skip_serializing_if = "usize_is_zero")]
    invalid_utf8: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    highlights: Vec<crate::broker::capture::Highlight>,
    duration_ms: u64,
    cwd: String,
    usage: Usage,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_enforced: Vec<&'a str>,
}

#[derive(Serialize)]
struct Usage {
    cpu_ms: u64,
    max_rss_kb: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn usize_is_zero(number: &usize) -> bool {
    *number == 0
}

impl Job {
    fn plan(policy: &Policy, args: &CellArgs, words: Words, wall: Duration) -> Result<Job, Complaint> {
        let (_, cell, command) = decide(policy, args, words)?;
        let deadlines = Deadlines { wall, idle: policy.limits.idle_time, cpu: policy.limits.cpu_time };
        let weaker = cell.missing_walls();
        Ok(Job { cell, command, deadlines, inline_bytes: policy.limits.inline_bytes.0 as usize, weaker })
    }

    fn begin(&self, launcher: Launcher) -> Result<(Cell, Ready, SignalFd), Complaint> {
        for wall in &self.weaker {
            eprintln!(
                "warning: running without `{wall}`: this host cannot enforce it, and the policy allows going without"
            );
        }
        let signals = terminal::signals().map_err(std::io::Error::from)?;
        let mut cell = Cell::make(launcher, self.cell.clone())?;
        let ready = cell.take()?;
        Ok((cell, ready, signals))
    }

    fn run_through_pipes(self, launcher: Launcher) -> Result<u8, Complaint> {
        let (cell, ready, signals) = self.begin(launcher)?;
        let activity = Arc::new(Activity::new());
        let (theirs, [input, output, errors]) = pipes()?;
        ready.start(&self.command, &Stdio::Descriptors(theirs))?;
        feed(input, None, &activity);
        let mut movers = Movers::new(&activity);
        movers.start(output, std::io::stdout());
        movers.start(errors, std::io::stderr());
        let end = self.watch(&cell, &ready, &signals, &activity);
        drop(ready);
        let code = self.answer(end);
        let lost = movers.last_words();
        drop(cell);
        match lost {
            Some(error) => Err(Complaint::new(format!("output was lost: {error}"))),
            None => code,
        }
    }

    fn run_in_terminal(self, launcher: Launcher) -> Result<u8, Complaint> {
        let (cell, ready, signals) = self.begin(launcher)?;
        let activity = Arc::new(Activity::new());
        ready.start(&self.command, &Stdio::Terminal(terminal::size()))?;
        let master = File::from(match ready.terminal() {
            Ok(master) => master,
            Err(trouble) => return self.answer(Err(trouble)),
        });
        let raw = terminal::Raw::enter();
        feed(master.try_clone()?.into(), Some(END_OF_INPUT), &activity);
        let mut movers = Movers::new(&activity);
        movers.start(master.try_clone()?.into(), std::io::stdout());
        let end = self.watch_resizing(&cell, &ready, &signals, &activity, Some(&master));
        drop(ready);
        movers.last_words();
        drop(raw);
        drop(cell);
        self.answer(end)
    }

    fn run_for_json(self, launcher: Launcher) -> Result<u8, Complaint> {
        let (cell, ready, signals) = self.begin(launcher)?;
        let activity = Arc::new(Activity::new());
        let (theirs, [input, output, errors]) = pipes()?;
        let start = Instant::now();
        ready.start(&self.command, &Stdio::Descriptors(theirs))?;
        feed(input, None, &activity);
        // The two streams share what a reply may hold.
        let captures = [output, errors].map(|pipe| capture(pipe, self.inline_bytes / 2, &activity));
        let end = self.watch(&cell, &ready, &signals, &activity);
        drop(ready);
        let duration = start.elapsed();
        let [stdout, stderr] = captures.map(|thread| thread.join().unwrap_or_else(|_| Capture::new(0)).show());
        drop(cell);
        let end = match end {
            Ok(end) => end,
            Err(trouble) => return self.answer(Err(trouble)),
        };
        let outcome = self.outcome(&end, stdout, stderr, duration);
        let text = serde_json::to_string(&outcome).map_err(Complaint::new)?;
        writeln!(std::io::stdout(), "{text}")
            .map_err(|error| Complaint::new(format!("the result was lost: {error}")))?;
        Ok(exit_code(&end))
    }

    fn outcome(&self, end: &End, stdout: Shown, stderr: Shown, duration: Duration) -> Outcome<'_> {
        let mut highlights = stdout.highlights;
        highlights.extend(stderr.highlights);
        Outcome {
            proc_id: format!("p-{}", std::process::id()),
            state: "exited",
            exit_code: end.exit_code,
            signal: end.signal.and_then(|number| Signal::try_from(number).ok()).map(|signal| signal.as_str().into()),
            reason: end.reason.name(),
            stdout: stdout.text,
            stderr: stderr.text,
            stdout_bytes: stdout.bytes,
            stderr_bytes: stderr.bytes,
            truncated: stdout.truncated || stderr.truncated,
            invalid_utf8: stdout.invalid_utf8 + stderr.invalid_utf8,
            highlights,
            duration_ms: duration.as_millis() as u64,
            cwd: self.command.cwd.to_string(),
            usage: Usage { cpu_ms: end.usage.cpu.as_millis() as u64, max_rss_kb: end.usage.max_rss_kib },
            not_enforced: self.weaker.clone(),
        }
    }

    fn watch(&self, cell: &Cell, ready: &Ready, signals: &SignalFd, activity: &Activity) -> Result<End, Trouble> {
        self.watch_resizing(cell, ready, signals, activity, None)
    }

    fn watch_resizing(
        &self,
        cell: &Cell,
        ready: &Ready,
        signals: &SignalFd,
        activity: &Activity,
        master: Option<&File>,
    ) -> Result<End, Trouble> {
        let process = Process::new(ready, cell.launcher().map(AsFd::as_fd), self.deadlines, activity);
        let mut asked = 0;
        process.wait(signals.as_fd(), || {
            let number = signals.read_signal().ok().flatten().map_or(0, |info| info.ssi_signo as i32);
            match (number, master) {
                (0, _) => Wish::Nothing,
                (libc::SIGWINCH, Some(master)) => {
                    let _ = crate::sys::terminal::resize(master.as_fd(), terminal::size());
                    Wish::Nothing
                }
                (libc::SIGWINCH, None) => Wish::Nothing,
                (number, _) => {
                    asked += 1;
                    // Whoever asks twice means it.
                    if asked > 1 { Wish::Kill } else { Wish::End(number) }
                }
            }
        })
    }

    /// The exit code, with a word on stderr where the command itself could not have said it.
    fn answer(&self, end: Result<End, Trouble>) -> Result<u8, Complaint> {
        match end {
            Ok(end) => {
                match end.reason {
                    Reason::Timeout => eprintln!("stockade: the time limit was reached; everything was killed"),
                    Reason::IdleTimeout => eprintln!("stockade: idle for too long; everything was killed"),
                    Reason::Memory => eprintln!("stockade: the memory limit was reached; everything was killed"),
                    _ => {}
                }
                Ok(exit_code(&end))
            }
            Err(Trouble { stage: Some(Stage::Exec), errno, .. }) => Ok(self.not_started(errno)),
            Err(Trouble { stage: Some(Stage::WorkingDirectory), errno, .. }) => {
                eprintln!("error: the working directory `{}` cannot be entered: {}", self.command.cwd, errno.desc());
                Ok(REFUSED)
            }
            Err(trouble) => Err(trouble.into()),
        }
    }

    fn not_started(&self, errno: Errno) -> u8 {
        let program = &self.command.argv[0];
        let code = match errno {
            Errno::ENOENT | Errno::ENOTDIR => NOT_FOUND,
            _ => NOT_EXECUTABLE,
        };
        let hint = exec_hint(errno);
        eprintln!("error: `{}`: {}", printable(program), errno.desc());
        eprintln!("hint: {hint}");
        code
    }
}

fn exit_code(end: &End) -> u8 {
    match (end.reason, end.exit_code, end.signal) {
        (Reason::Timeout | Reason::IdleTimeout, ..) => TIMED_OUT,
        (Reason::Memory, ..) => 128 + libc::SIGKILL as u8,
        (_, Some(code), _) => code as u8,
        (_, None, Some(signal)) => 128 + signal as u8,
        (_, None, None) => REFUSED,
    }
}
