//! `run`: a command from its start to its end, or until it goes on as a managed process.

use super::answer::{Ran, Stream};
use super::begin::{Custody, How, Never};
use super::capture::Highlight;
use super::managed::Managed;
use super::output::Output;
use super::refused::Refused;
use super::registry::Ground;
use super::render;
use super::request::{Filter, Run};
use super::{Broker, PROGRESS_PAUSE, Progress};
use crate::plan::command::Words;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How much of the fresh output a progress notification carries.
const PROGRESS_BYTES: usize = 4 << 10;

/// A disk that takes longer must not hold up answers.
const LONGEST_WRITE: Duration = Duration::from_secs(2);

/// The output between head and tail is looked through in such steps, with others served in between.
const LOOKED_AT_ONCE: usize = 64 << 10;

/// At the beginning, and again before the end: a reply must not wait for more.
const LOOKED_THROUGH: u64 = 1 << 20;

impl Broker {
    /// Dropping the future before its answer kills what it started.
    pub async fn run(self: &Arc<Self>, asked: Run, progress: Option<&Progress>) -> Result<Ran, Refused> {
        let mut tries = 0;
        loop {
            match self.run_once(&asked, progress).await {
                Ok(ran) => return Ok(ran),
                Err(never) => self.refresh(never, &mut tries).await?,
            }
        }
    }

    async fn run_once(self: &Arc<Self>, asked: &Run, progress: Option<&Progress>) -> Result<Ran, Never> {
        let policy = self.policy();
        let limits = &policy.limits;
        let how = How {
            ground: if asked.yield_after.is_zero() { Ground::Back } else { Ground::Fore },
            terminal: None,
            wall: asked.command.timeout.unwrap_or(limits.wall_time).min(limits.max_wall_time),
            idle: limits.idle_time,
            lines: None,
            record: false,
        };
        let yield_at = Instant::now() + asked.yield_after;
        let custody = self.begin(&asked.command, how).await?;
        let managed = Arc::clone(custody.managed());
        feed(&managed, &asked.stdin);
        self.until_ended_or(&managed, yield_at, progress).await;
        if managed.is_running() {
            self.until_executed(&managed).await;
        }
        if let Some(never) = self.never_was(&managed, program(&asked.command.words)) {
            return Err(never);
        }
        let answer = self.told(&managed, asked.max_output.unwrap_or_else(|| self.inline_bytes())).await;
        managed.to_background();
        Custody::release(custody);
        Ok(answer)
    }

    /// Waits for the end, telling what is new as often as that is wanted.
    async fn until_ended_or(&self, managed: &Managed, yield_at: Instant, progress: Option<&Progress>) {
        let Some(progress) = progress else {
            let _ = tokio::time::timeout_at(yield_at, managed.until_ended()).await;
            return;
        };
        let mut seen = 0;
        while managed.is_running() && Instant::now() < yield_at {
            let pause = (Instant::now() + PROGRESS_PAUSE).min(yield_at);
            let _ = tokio::time::timeout_at(pause, managed.until_ended()).await;
            seen = tell_fresh(managed, seen, progress);
        }
    }

    /// What a reply shows: everything, or head, tail and what looks like errors between them.
    async fn told(&self, managed: &Managed, limit: usize) -> Ran {
        settle(&managed.output).await;
        // The end is looked at before the output: an answer that says `exited` holds all of it.
        let end = managed.end();
        let totals = managed.output.totals();
        let for_stderr = (limit / 2).max(limit.saturating_sub(totals.stdout_bytes as usize));
        let shown_stderr = (totals.stderr_bytes as usize).min(for_stderr);
        let stdout = managed.beginning.excerpt(&managed.output, Stream::Stdout, limit.saturating_sub(shown_stderr));
        let stderr = managed.beginning.excerpt(&managed.output, Stream::Stderr, shown_stderr);
        let cut = stdout.omitted > 0 || stderr.omitted > 0;
        let highlights = if cut { highlights(managed).await } else { Vec::new() };
        // A read without a cursor goes on where this answer ended, unless something was left out.
        if !cut {
            *managed.cursor() = totals.total_bytes;
        }
        Ran {
            proc_id: managed.id.clone(),
            end,
            stdout,
            stderr,
            highlights,
            duration: managed.runtime(),
            cwd: managed.cwd.clone(),
            usage: managed.usage(),
            dropped_bytes: totals.dropped_bytes,
        }
    }
}

/// What a reply shows must outlive the broker.
pub(super) async fn settle(output: &Output) {
    if !output.flush_small() {
        let _ = tokio::time::timeout(LONGEST_WRITE, output.persisted(output.totals().total_bytes)).await;
    }
}

/// The input is written beside everything else: a command that does not read it is not held up by it.
fn feed(managed: &Arc<Managed>, stdin: &[u8]) {
    let (writing, stdin) = (Arc::clone(managed), stdin.to_vec());
    if stdin.is_empty() {
        if let Ok(mut input) = managed.input.try_lock() {
            input.close();
        }
        return;
    }
    tokio::spawn(async move {
        let mut input = writing.input.lock().await;
        let whole = async {
            input.write_patiently(&stdin, &writing.activity).await;
        };
        tokio::select! {
            () = whole => {}
            _ = writing.until_ended() => {}
        }
        input.close();
    });
}

pub(super) fn program(words: &Words) -> &str {
    match words {
        Words::Argv(argv) => argv.first().map_or("", String::as_str),
        Words::Shell(_) => "the policy's shell",
    }
}

/// Tells what came since `seen`; returns how far was told.
pub(super) fn tell_fresh(managed: &Managed, seen: u64, progress: &Progress) -> u64 {
    let total = managed.output.totals().total_bytes;
    if total > seen {
        let from = seen.max(total.saturating_sub(PROGRESS_BYTES as u64));
        let (fresh, _) = managed.output.bytes(from, PROGRESS_BYTES, Filter::All);
        progress(total, &fresh);
    }
    total
}

/// Looks through the beginning and the end of what is kept, a piece at a time.
async fn highlights(managed: &Managed) -> Vec<Highlight> {
    let mut found = render::Highlights::default();
    let total = managed.output.totals().total_bytes;
    let (mut from, mut looked) = (0, 0);
    while from < total {
        let lines = managed.output.lines_at(from, Filter::All, LOOKED_AT_ONCE);
        for line in &lines.lines {
            found.look(line.number, &line.text);
        }
        looked += lines.next.saturating_sub(from.max(lines.start));
        let end = total.saturating_sub(LOOKED_THROUGH);
        from = match looked > LOOKED_THROUGH && lines.next < end {
            true => end,
            false if lines.next > from => lines.next,
            false => break,
        };
        tokio::task::yield_now().await;
    }
    found.finish()
}

impl Broker {
    /// A process that runs on is one that was executed: waits until the door says so.
    pub(super) async fn until_executed(&self, managed: &Managed) {
        let _ = tokio::time::timeout(Duration::from_secs(20), managed.until_executed()).await;
    }
}
