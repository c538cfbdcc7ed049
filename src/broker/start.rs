//! `proc_start`: a process that runs until it ends or is ended, and the first it has to say.

use super::answer::Started;
use super::begin::{How, Never};
use super::read::Wait;
use super::refused::Refused;
use super::registry::Ground;
use super::request::Start;
use super::{Broker, run};
use std::sync::Arc;
use std::time::Duration;

/// The first output counts as complete when nothing more has come for so long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

impl Broker {
    /// Dropping the future before its answer kills what it started.
    pub async fn start(self: &Arc<Self>, asked: Start) -> Result<Started, Refused> {
        let mut tries = 0;
        loop {
            match self.start_once(&asked).await {
                Ok(started) => return Ok(started),
                Err(never) => self.refresh(never, &mut tries).await?,
            }
        }
    }

    async fn start_once(self: &Arc<Self>, asked: &Start) -> Result<Started, Never> {
        let policy = self.policy();
        let limits = &policy.limits;
        let how = How {
            ground: Ground::Back,
            terminal: asked.terminal,
            wall: asked.command.timeout.unwrap_or(limits.max_wall_time).min(limits.max_wall_time),
            idle: asked.idle_timeout.unwrap_or(limits.idle_time).min(limits.idle_time),
            lines: asked.buffer_lines,
            record: asked.record,
        };
        let custody = self.begin(&asked.command, how).await?;
        let managed = Arc::clone(custody.managed());
        self.until_executed(&managed).await;
        let wait = Wait {
            quiet: asked.until.is_none().then_some(FIRST_PAUSE),
            until: asked.until.clone(),
            ..Wait::new(asked.initial_read, self.inline_bytes())
        };
        let mut heard = self.hear(&managed, wait, None).await;
        if let Some(never) = self.never_was(&managed, run::program(&asked.command.words)) {
            return Err(never);
        }
        let managed = custody.release();
        Ok(Started {
            proc_id: managed.id.clone(),
            pid: managed.pid,
            first_output: heard.take_text(),
            next_cursor: heard.next_cursor,
            matched: heard.matched,
            end: heard.end,
        })
    }
}
