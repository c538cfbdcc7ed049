//! Questions with a short answer: what there is, and that it shall end.

use super::message::{Answer, End, Process, Status, Stop};
use crate::broker::Broker;
use crate::broker::answer::{self, State};
use crate::broker::managed::Managed;
use crate::broker::request;
use std::time::Duration;

/// As long as an agent may wait.
const MAX_GRACE: Duration = Duration::from_secs(60);

impl Broker {
    pub(super) fn status(&self) -> Status {
        let policy = self.policy();
        Status {
            agent: policy.agent.clone(),
            policy: policy.name.clone(),
            pid: std::process::id(),
            uptime_ms: self.started.elapsed().as_millis() as u64,
            processes: self.registry.all().iter().map(|managed| Process::of(managed)).collect(),
        }
    }

    pub(super) async fn stop_for_operator(&self, asked: Stop) -> Answer {
        let which = match &asked.proc_id {
            Some(id) => match self.registry.get(id) {
                Ok(managed) => vec![managed],
                Err(refused) => return Answer::from(&refused),
            },
            None => self.registry.running(),
        };
        let stop = request::Stop {
            target: request::Target::Process(String::new()),
            signal: asked.signal,
            grace: Duration::from_millis(asked.grace_ms).min(MAX_GRACE),
        };
        match self.stop_all(&which, &stop).await {
            Ok(_) => Answer::Stopped { stopped: which.iter().map(|managed| managed.id.clone()).collect() },
            Err(refused) => Answer::from(&refused),
        }
    }
}

impl Process {
    pub(crate) fn of(managed: &Managed) -> Process {
        let (usage, totals) = (managed.usage(), managed.output.totals());
        let end = managed.end();
        Process {
            proc_id: managed.id.clone(),
            pid: managed.pid,
            session: managed.session(),
            command: managed.command.clone(),
            description: managed.description.clone(),
            state: managed.state().name().into(),
            reason: end.as_ref().map(|end| end.reason.name().into()),
            exit_code: end.as_ref().and_then(|end| end.exit_code),
            signal: end.as_ref().and_then(|end| end.signal),
            runtime_ms: managed.runtime().as_millis() as u64,
            cpu_ms: usage.cpu.as_millis() as u64,
            max_rss_kb: usage.max_rss_kib,
            output_bytes: totals.total_bytes,
            dropped_bytes: totals.dropped_bytes,
            terminal: managed.face.is_some(),
        }
    }
}

impl End {
    pub(crate) fn of(end: Option<&answer::End>) -> End {
        End {
            state: if end.is_some() { State::Exited } else { State::Running }.name().into(),
            reason: end.map(|end| end.reason.name().into()),
            exit_code: end.and_then(|end| end.exit_code),
            signal: end.and_then(|end| end.signal),
        }
    }
}
