//! `proc_read`: waiting for output, and what of it is shown.
//!
//! Nothing here polls: a wait ends with output, the process's end, or its own deadline. Where a read starts and ends is
//! settled in one step without waiting, so that of several readers without a cursor each byte goes to exactly one.

use super::answer::{Content, Heard, Screen};
use super::managed::Managed;
use super::output::{Lines, Output, Totals};
use super::refused::Refused;
use super::request::{Filter, Form, Read, Span};
use super::{Broker, PROGRESS_PAUSE, Progress, render, run};
use regex::bytes::Regex;
use std::time::Duration;
use tokio::time::Instant;

/// How much of what matched is repeated.
const MATCHED_CHARS: usize = 200;

/// So much is searched without leaving the thread that serves everyone.
const SEARCHED_AT_ONCE: usize = 16 << 10;

/// What ends a wait, and what is shown then.
#[derive(Debug)]
pub struct Wait {
    pub timeout: Duration,
    pub max: usize,
    pub cursor: Option<u64>,
    pub until: Option<Regex>,
    /// What came before is not searched.
    pub searched_from: u64,
    pub quiet: Option<Duration>,
    pub stream: Filter,
    pub span: Span,
    pub form: Form,
    pub strip_ansi: bool,
}

impl Wait {
    pub fn new(timeout: Duration, max: usize) -> Self {
        Wait {
            timeout,
            max,
            cursor: None,
            until: None,
            searched_from: 0,
            quiet: None,
            stream: Filter::All,
            span: Span::Next,
            form: Form::Text,
            strip_ansi: false,
        }
    }
}

impl Broker {
    /// `None`: there is no such process.
    pub async fn read(&self, asked: Read, progress: Option<&Progress>) -> Result<Option<Heard>, Refused> {
        self.expire();
        let Some(managed) = self.registry.find(&asked.proc_id) else { return Ok(None) };
        let total = managed.output.totals().total_bytes;
        if let Some(cursor) = asked.cursor.filter(|cursor| *cursor > total) {
            let message = format!("cursor {cursor} is beyond the end; the output has {total} bytes so far");
            return Err(Refused::invalid(message).with("total_bytes", total));
        }
        if asked.form == Form::Screen && managed.face.is_none() {
            let message = format!("`{}` has no terminal and so no screen; start it with `pty: true`", managed.id);
            return Err(Refused::invalid(message));
        }
        let wait = Wait {
            timeout: asked.timeout,
            max: asked.max_bytes.unwrap_or_else(|| self.inline_bytes()),
            cursor: asked.cursor,
            until: asked.until,
            searched_from: 0,
            quiet: asked.quiet,
            stream: asked.stream,
            span: asked.span,
            form: asked.form,
            strip_ansi: asked.strip_ansi,
        };
        Ok(Some(self.hear(&managed, wait, progress).await))
    }

    /// Waits as long as it is worth waiting, then shows what is there.
    pub(super) async fn hear(&self, managed: &Managed, wait: Wait, progress: Option<&Progress>) -> Heard {
        let deadline = Instant::now() + wait.timeout;
        let mut told = managed.output.totals().total_bytes;
        let mut tell_at = progress.map(|_| Instant::now() + PROGRESS_PAUSE);
        let mut gathered = Gathered::default();
        let matched = loop {
            // In this order: what ended has said everything.
            let has_ended = !managed.is_running();
            let totals = managed.output.totals();
            let from = wait.cursor.unwrap_or_else(|| *managed.cursor());
            let matched = wait.matched(managed, from, &mut gathered).await;
            let now = Instant::now();
            let quiet_at = wait.quiet_at(managed, from, &totals);
            let enough = wait.is_enough(from, &totals) || quiet_at.is_some_and(|at| at <= now);
            if matched.is_some() || has_ended || enough || now >= deadline {
                break matched;
            }
            let wake = [quiet_at, tell_at].into_iter().flatten().fold(deadline, Instant::min);
            tokio::select! {
                () = managed.output.changed(totals.total_bytes) => {}
                _ = managed.until_ended() => {}
                () = tokio::time::sleep_until(wake) => {}
            }
            if let (Some(progress), Some(at)) = (progress, tell_at.filter(|at| *at <= Instant::now())) {
                told = run::tell_fresh(managed, told, progress);
                tell_at = Some(at + PROGRESS_PAUSE);
            }
        };
        run::settle(&managed.output).await;
        let screen = match (&managed.face, wait.form) {
            (Some(face), Form::Screen) => Some(face.show(&managed.output).await),
            _ => None,
        };
        wait.show(managed, matched, screen)
    }
}

impl Wait {
    /// The text that `until` found. A long text is searched by another thread: patterns differ in how long they take.
    async fn matched(&self, managed: &Managed, from: u64, gathered: &mut Gathered) -> Option<String> {
        let until = self.until.as_ref()?;
        gathered.go_on(managed, from.max(self.searched_from), self.max, self.stream);
        let strips = self.strip_ansi;
        if gathered.bytes.len() <= SEARCHED_AT_ONCE {
            return search(until, &gathered.bytes, strips);
        }
        let (until, bytes) = (until.clone(), gathered.bytes.clone());
        tokio::task::spawn_blocking(move || search(&until, &bytes, strips)).await.ok().flatten()
    }

    fn is_enough(&self, from: u64, totals: &Totals) -> bool {
        let unread = totals.total_bytes.saturating_sub(from);
        match self.span {
            Span::Next if self.form == Form::Screen => self.until.is_none() && self.quiet.is_none(),
            // How much of it is one stream's is not known before it is read.
            Span::Next => self.stream == Filter::All && unread >= self.max as u64,
            // Asked for by number: there or not.
            Span::TailLines(_) => self.until.is_none() && self.quiet.is_none() && totals.total_bytes > 0,
            Span::Lines { from, .. } => totals.total_lines > from,
        }
    }

    /// When output that has come will have been followed by silence.
    fn quiet_at(&self, managed: &Managed, from: u64, totals: &Totals) -> Option<Instant> {
        let quiet = self.quiet.filter(|_| totals.total_bytes > from)?;
        Some(Instant::from_std(managed.output.last_activity().0) + quiet)
    }

    /// Settles where the read starts and ends, in one step.
    fn show(&self, managed: &Managed, matched: Option<String>, screen: Option<Screen>) -> Heard {
        let end = managed.end();
        let output = &managed.output;
        let mut cursor = managed.cursor();
        let from = self.cursor.unwrap_or(*cursor);
        let (content, next_cursor) = match (self.form, self.span) {
            (Form::Screen, _) => {
                let at = output.totals().total_bytes;
                (screen.map_or_else(|| Content::Text(Vec::new()), Content::Screen), at)
            }
            (form, Span::TailLines(count)) => {
                let lines = output.tail_lines(count as usize, self.stream, self.max);
                (self.of_lines(output, form, lines), output.totals().total_bytes)
            }
            (form, Span::Lines { from, count }) => {
                let lines = output.lines(from, count as usize, self.stream, self.max);
                let next = lines.next;
                (self.of_lines(output, form, lines), next)
            }
            (Form::Lines, Span::Next) => {
                let lines = output.lines_at(from, self.stream, self.max);
                (Content::Lines(lines.lines), lines.next)
            }
            (Form::Chunks, Span::Next) => {
                let page = output.read(from, self.max, self.stream);
                (Content::Chunks(page.chunks), page.next)
            }
            (Form::Text, Span::Next) => self.text(managed, from, end.is_some()),
        };
        *cursor = next_cursor;
        drop(cursor);
        let totals = output.totals();
        Heard {
            content,
            end,
            next_cursor,
            more: next_cursor < totals.total_bytes,
            total_bytes: totals.total_bytes,
            total_lines: totals.total_lines,
            dropped_bytes: totals.dropped_bytes,
            paused: output.is_paused(),
            matched,
        }
    }

    /// Lines as they were asked for; as text, exactly the bytes that were written.
    fn of_lines(&self, output: &Output, form: Form, lines: Lines) -> Content {
        if form == Form::Lines {
            return Content::Lines(lines.lines);
        }
        let mut chunks = output.read(lines.start, self.max, self.stream).chunks;
        chunks.retain(|chunk| chunk.seq < lines.next);
        for chunk in &mut chunks {
            chunk.data.truncate((lines.next - chunk.seq) as usize);
        }
        match form {
            Form::Chunks => Content::Chunks(chunks),
            Form::Text | Form::Lines | Form::Screen => {
                Content::Text(chunks.into_iter().flat_map(|chunk| chunk.data).collect())
            }
        }
    }

    /// A character or a terminal code that is cut by the end of the page waits for the next one, unless none will come
    /// or the page holds nothing else.
    fn text(&self, managed: &Managed, from: u64, has_ended: bool) -> (Content, u64) {
        let (mut bytes, next) = managed.output.bytes(from, self.max, self.stream);
        let is_last = has_ended && next >= managed.output.totals().total_bytes;
        if is_last || self.stream != Filter::All {
            return (Content::Text(bytes), next);
        }
        let is_full = bytes.len() >= self.max;
        let mut whole = render::whole_characters(&bytes, render::Rest::MayCome);
        if self.strip_ansi {
            whole = whole.min(render::strip_ansi(&bytes).complete);
        }
        if whole == 0 && is_full {
            whole = bytes.len();
        }
        let held_back = bytes.len() - whole;
        bytes.truncate(whole);
        (Content::Text(bytes), next - held_back as u64)
    }
}

fn search(until: &Regex, bytes: &[u8], strips: bool) -> Option<String> {
    let stripped;
    let text = match strips {
        true => {
            stripped = render::strip_ansi(bytes).bytes;
            &stripped
        }
        false => bytes,
    };
    let found = until.find(text)?;
    Some(String::from_utf8_lossy(found.as_bytes()).chars().take(MATCHED_CHARS).collect())
}

/// What was searched so far: output is fetched once, however often more of it comes.
#[derive(Debug, Default)]
struct Gathered {
    from: u64,
    upto: u64,
    bytes: Vec<u8>,
}

impl Gathered {
    fn go_on(&mut self, managed: &Managed, from: u64, max: usize, stream: Filter) {
        if self.from != from {
            *self = Gathered { from, upto: from, bytes: Vec::new() };
        }
        let (more, next) = managed.output.bytes(self.upto, max.saturating_sub(self.bytes.len()), stream);
        self.bytes.extend(more);
        self.upto = next;
    }
}

impl Heard {
    pub(super) fn take_text(&mut self) -> Vec<u8> {
        match &mut self.content {
            Content::Text(bytes) => std::mem::take(bytes),
            Content::Lines(_) | Content::Chunks(_) | Content::Screen(_) => Vec::new(),
        }
    }
}
