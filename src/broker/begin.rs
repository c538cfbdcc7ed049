//! From a command to a running process: decided by `plan`, given to a sealed process, entered in the registry.

use super::Broker;
use super::answer::{End, Reason, Usage};
use super::beginning::Beginning;
use super::cell::Ready;
use super::ends::Ends;
use super::face::Face;
use super::fault::Trouble;
use super::managed::{Birth, Ended, Managed};
use super::output::Bounds;
use super::process::{Activity, Deadlines};
use super::refused::{Code, Refused};
use super::registry::{Ground, shown};
use super::request::Command;
use super::session;
use super::supervise::{Order, Started};
use super::transcript::Transcript;
use crate::plan::command::{self, CommandPlan, Request, Words};
use crate::policy::Policy;
use crate::sys::Errno;
use crate::sys::terminal::Size;
use crate::wire::Stage;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::{mpsc, watch};

/// A waiting process may have died; so often another one is tried.
const TRIES: usize = 3;

/// How much of a command a list shows.
const SHOWN_COMMAND: usize = 1024;

/// How a process is started, besides its command.
#[derive(Debug, Clone, Copy)]
pub struct How {
    pub ground: Ground,
    pub terminal: Option<Size>,
    pub wall: Duration,
    pub idle: Duration,
    pub lines: Option<u64>,
    pub record: bool,
}

/// Kills what was started when whoever asked for it goes away before it was handed over.
#[derive(Debug)]
pub struct Custody(Option<Arc<Managed>>);

impl Custody {
    pub fn managed(&self) -> &Arc<Managed> {
        self.0.as_ref().unwrap_or_else(|| unreachable!("taken only by value"))
    }

    /// It may go on by itself.
    pub fn release(mut self) -> Arc<Managed> {
        self.0.take().unwrap_or_else(|| unreachable!("taken only by value"))
    }
}

impl Drop for Custody {
    fn drop(&mut self) {
        if let Some(managed) = self.0.take() {
            managed.order(Order::Kill(Reason::Canceled));
        }
    }
}

impl Broker {
    /// Starts a command. Whether it could be executed shows at the door, or by its end.
    pub(super) async fn begin(self: &Arc<Self>, asked: &Command, how: How) -> Result<Custody, Refused> {
        self.expire();
        let policy = self.policy();
        let session = asked.session.as_deref().unwrap_or(session::DEFAULT);
        let plan = self.decide(&policy, asked, session)?;
        self.books.redactor.learn(&asked.env);
        let seat = self.registry.reserve(session, how.ground, &policy.processes)?;
        let pool = self.home.pool().await?;
        let mut tries = 0;
        let (ready, ends) = loop {
            tries += 1;
            let ready = pool.take().await?;
            match Ends::hand_over(&ready, &plan, how.terminal).await {
                Ok(ends) => break (ready, ends),
                // It died while it waited; nothing was executed.
                Err(trouble) if tries < TRIES && trouble.stage.is_none_or(|stage| stage == Stage::Receive) => {}
                Err(trouble) => return Err(trouble.into()),
            }
        };
        let managed = self.enter(asked, session, &plan, &policy, how, Arc::new(ready), ends);
        drop(seat);
        Ok(Custody(Some(managed?)))
    }

    fn decide(&self, policy: &Policy, asked: &Command, session: &str) -> Result<CommandPlan, Refused> {
        let defaults = self.sessions.get(session)?;
        let request = Request {
            words: asked.words.clone(),
            cwd: asked.cwd.clone().or(defaults.cwd),
            env: defaults.env.into_iter().chain(asked.env.iter().cloned()).collect(),
        };
        Ok(command::plan(policy, &request, &self.operator)?)
    }

    #[expect(clippy::too_many_arguments, reason = "everything that makes a process, brought together once")]
    fn enter(
        self: &Arc<Self>,
        asked: &Command,
        session: &str,
        plan: &CommandPlan,
        policy: &Policy,
        how: How,
        ready: Arc<Ready>,
        ends: Ends,
    ) -> Result<Arc<Managed>, Refused> {
        let id = super::state::new_id("p");
        let bounds =
            Bounds { kept: policy.limits.output_bytes.0, lines: how.lines, overflow: policy.limits.output_overflow };
        let output = self.state.output(&id, bounds, &self.scribe);
        let beginning = Arc::new(Beginning::new(self.inline_bytes() / 2));
        let activity = Arc::new(Activity::new());
        let (orders, obeyed) = mpsc::unbounded_channel();
        let (tell, told) = watch::channel(None);
        let birth = Birth {
            id,
            session: session.into(),
            // Both reach the journal and the operator's screen.
            command: self.books.redactor.text(&in_one_line(&asked.words)),
            description: asked.description.as_deref().map(|text| self.books.redactor.text(text)),
            cwd: plan.cwd.to_string(),
            pid: ready.pid,
            started_at: SystemTime::now(),
            output: Arc::clone(&output),
            activity: Arc::clone(&activity),
            beginning: Arc::clone(&beginning),
            ready: Some(Arc::clone(&ready)),
        };
        let face = how.terminal.map(|size| {
            let transcript = how.record.then(|| self.transcript(&birth, size)).flatten();
            Arc::new(Face::new(Arc::clone(&ends.stdout), size, transcript))
        });
        let managed = Arc::new(Managed::new(birth, ends.input, face.clone(), how.ground, orders, told));
        self.write_down(self.state.started(managed.record()));
        let started = Started {
            ready,
            stdout: ends.stdout,
            stderr: ends.stderr,
            _theirs: ends.theirs,
            face,
            output,
            beginning,
            activity,
            deadlines: Deadlines { wall: how.wall, idle: how.idle, cpu: policy.limits.cpu_time },
            orders: obeyed,
        };
        self.registry.insert(&managed);
        tokio::spawn(Arc::clone(self).look_after(started, Arc::clone(&managed), tell));
        Ok(managed)
    }

    /// A recording that cannot be made is no reason not to run.
    fn transcript(&self, birth: &Birth, size: Size) -> Option<Transcript> {
        let path = self.state.transcript(&birth.id)?;
        Transcript::create(&path, size, &birth.command, birth.description.as_deref())
            .inspect_err(|error| tracing::warn!("no recording: {error}"))
            .ok()
    }

    /// Until its end, which is written down before it is told.
    async fn look_after(
        self: Arc<Self>,
        mut started: Started,
        managed: Arc<Managed>,
        tell: watch::Sender<Option<Ended>>,
    ) {
        let (end, trouble) = match started.until_dead().await {
            Ok(end) => (end, None),
            Err(trouble) => (failed(&trouble), Some(trouble)),
        };
        let ended = Ended { end, trouble, at: SystemTime::now(), when: Some(Instant::now()) };
        managed.let_go();
        if ended.trouble.is_none() {
            self.write_down(self.state.ended(managed.end_record(&ended)));
        }
        let gone = self.registry.finish(&managed);
        let _ = tell.send(Some(ended));
        // Whoever waits for the end comes first; then all that belonged to the process is closed.
        tokio::task::yield_now().await;
        drop(started);
        for old in gone {
            self.write_down(self.state.removed(&old.id));
        }
        if let Ok(pool) = self.home.pool().await {
            pool.refill();
        }
    }

    /// Ok: worth another try, with what waited out of date let go. Something hidden was replaced on the host meanwhile.
    pub(super) async fn refresh(&self, never: Never, tries: &mut usize) -> Result<(), Refused> {
        *tries += 1;
        match never {
            Never::Refused(refused) => Err(refused),
            Never::Stale if *tries < TRIES => {
                self.home.pool().await?.discard();
                Ok(())
            }
            Never::Stale => {
                Err(Trouble { stage: Some(Stage::CoverHidden), errno: Errno::ESTALE, at: String::new() }.into())
            }
        }
    }

    /// Why nothing was executed, when that is so; it is then no process at all.
    pub(super) fn never_was(&self, managed: &Managed, program: &str) -> Option<Never> {
        let trouble = managed.ended()?.trouble?;
        self.registry.remove(&managed.id);
        self.write_down(self.state.removed(&managed.id));
        Some(Never::Refused(match trouble.stage {
            Some(Stage::CoverHidden) => return Some(Never::Stale),
            Some(Stage::WorkingDirectory) => Refused::new(
                Code::PathNotAllowed,
                format!("the working directory `{}` cannot be entered: {}", managed.cwd, trouble.errno.desc()),
            ),
            Some(Stage::Exec) => {
                let errno = trouble.errno;
                let message = format!("`{}`: {}; {}", shown(program), errno.desc(), super::fault::exec_hint(errno));
                Refused::new(Code::SpawnFailed, message).with("errno", format!("{errno:?}"))
            }
            _ => trouble.into(),
        }))
    }
}

/// Why a process never was.
#[derive(Debug)]
pub enum Never {
    /// What waited ready no longer had everything covered that the policy hides.
    Stale,
    Refused(Refused),
}

impl From<Refused> for Never {
    fn from(refused: Refused) -> Self {
        Never::Refused(refused)
    }
}

/// A process that never was, or was lost with the launcher.
fn failed(trouble: &Trouble) -> End {
    let (reason, signal) = match trouble.stage {
        Some(_) => (Reason::SpawnFailed, None),
        None => (Reason::Signal, Some(libc::SIGKILL)),
    };
    End { reason, exit_code: None, signal, usage: Usage::default() }
}

fn in_one_line(words: &Words) -> String {
    let text = match words {
        Words::Shell(text) => text.clone(),
        Words::Argv(argv) => argv.join(" "),
    };
    match text.char_indices().nth(SHOWN_COMMAND) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}
