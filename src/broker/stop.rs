//! `proc_stop` and `proc_remove`: an end that is waited for.

use super::Broker;
use super::answer::{End, Reason, State, Stopped};
use super::managed::Managed;
use super::refused::{Code, Refused};
use super::registry::shown;
use super::request::{Stop, Target};
use super::supervise::Order;
use std::sync::Arc;
use std::time::Duration;

/// After the kill: only a process that hangs inside the kernel takes longer.
const AFTER_KILL: Duration = Duration::from_secs(5);

/// What is removed of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    Everything,
    OutputOnly,
}

impl Broker {
    /// Asks, waits, kills; returns when everything is dead. Again: the same answer.
    pub async fn stop(&self, asked: Stop) -> Result<Stopped, Refused> {
        match &asked.target {
            Target::Process(id) => match self.registry.find(id) {
                Some(managed) => self.stop_all(&[managed], &asked).await,
                None => Ok(Stopped {
                    success: false,
                    message: format!("no process `{}`", shown(id)),
                    state: State::NoSuchProcess,
                    end: None,
                }),
            },
            Target::Session(session) => {
                self.sessions.get(session)?;
                let own = self.registry.running().into_iter().filter(|m| m.session() == *session);
                self.stop_all(&own.collect::<Vec<_>>(), &asked).await
            }
        }
    }

    pub(super) async fn stop_all(&self, all: &[Arc<Managed>], asked: &Stop) -> Result<Stopped, Refused> {
        for managed in all.iter().filter(|managed| managed.is_running()) {
            managed.order(Order::End { reason: Reason::Stopped, signal: asked.signal, grace: asked.grace });
        }
        let patience = tokio::time::Instant::now() + asked.grace + AFTER_KILL;
        for managed in all {
            if tokio::time::timeout_at(patience, managed.until_ended()).await.is_err() {
                let message = format!("`{}` hangs inside the kernel and cannot be killed now", managed.id);
                return Err(Refused::new(Code::StopFailed, message));
            }
        }
        let end = match all {
            [one] => one.end(),
            _ => None,
        };
        let message = match (all, &end) {
            ([one], Some(end)) => format!("`{}` has ended: {}", one.id, in_words(end)),
            _ => format!("{} processes have ended", all.len()),
        };
        Ok(Stopped { success: true, message, state: State::Exited, end })
    }

    /// A running process is stopped first, unless only its output is to go.
    pub async fn remove(&self, proc_id: &str, what: Removal) -> Result<(), Refused> {
        let managed = self.registry.get(proc_id)?;
        if what == Removal::OutputOnly {
            self.write_down(self.state.output_removed(proc_id));
            return Ok(());
        }
        managed.order(Order::Kill(Reason::Stopped));
        if tokio::time::timeout(AFTER_KILL, managed.until_ended()).await.is_err() {
            let message = format!("`{}` hangs inside the kernel and cannot be killed now", managed.id);
            return Err(Refused::new(Code::StopFailed, message));
        }
        self.registry.remove(proc_id);
        self.write_down(self.state.removed(proc_id));
        Ok(())
    }
}

fn in_words(end: &End) -> String {
    match (end.exit_code, end.signal) {
        (Some(code), _) => format!("exit code {code} ({})", end.reason.name()),
        (None, Some(signal)) => format!("signal {signal} ({})", end.reason.name()),
        (None, None) => end.reason.name().into(),
    }
}
