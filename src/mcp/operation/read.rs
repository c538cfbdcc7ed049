//! `proc_read`: what a process has said, as text, lines, chunks or a screen; waiting for more if asked.

use super::ending::{Codes, Ending, Shown, size, state};
use super::words::{Encoding, millis, until};
use super::{Call, Effect, Facts, Family, Feature, Operation};
use crate::broker::answer::{self, Content, Heard, State};
use crate::broker::refused::Refused;
use crate::broker::request::{self, Filter, Form, Span};
use crate::mcp::clock::rfc3339;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Lines of one read when only the first is named.
const MANY_LINES: u64 = 10_000;

#[derive(Debug)]
pub struct Read;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    proc_id: String,
    #[schemars(range(min = 0, max = 10_000), extend("default" = 1000))]
    timeout_ms: Option<u64>,
    /// default: the last read's end
    #[schemars(range(min = 0, max = 9_007_199_254_740_992_u64))]
    cursor: Option<u64>,
    #[schemars(range(min = 1, max = 262_144))]
    max_bytes: Option<u64>,
    /// regex
    #[schemars(length(max = 1024))]
    until: Option<String>,
    /// silence that ends the wait
    #[schemars(range(min = 1, max = 10_000))]
    quiet_ms: Option<u64>,
    stream: Option<Stream>,
    #[schemars(range(min = 1, max = 10_000))]
    tail_lines: Option<u64>,
    #[schemars(range(min = 1))]
    from_line: Option<u64>,
    #[schemars(range(min = 1, max = 10_000))]
    lines: Option<u64>,
    strip_ansi: Option<bool>,
    format: Option<Format>,
    encoding: Option<Encoding>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Stream {
    All,
    Stdout,
    Stderr,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Format {
    Text,
    Lines,
    Chunks,
    Screen,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Answer {
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<Vec<Line>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chunks: Option<Vec<Chunk>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    screen: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    screen_cursor: Option<Place>,
    #[serde(skip_serializing_if = "Option::is_none")]
    screen_title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    invalid_utf8: Option<usize>,
    state: &'static str,
    next_cursor: u64,
    more: bool,
    total_bytes: u64,
    total_lines: u64,
    dropped_bytes: u64,
    /// `limits.output_overflow` is `pause`: `proc_remove` with `output_only` lets it go on
    #[serde(skip_serializing_if = "Option::is_none")]
    paused: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    matched: Option<String>,
    #[serde(flatten)]
    ending: Ending,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct Line {
    number: u64,
    stream: &'static str,
    ts: String,
    text: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct Chunk {
    seq: u64,
    stream: &'static str,
    ts: String,
    data: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct Place {
    row: u16,
    col: u16,
}

impl Operation for Read {
    const FACTS: Facts = Facts {
        name: "proc_read",
        family: Family::Process,
        action: "read",
        feature: Feature::Repl,
        effect: Effect::Reads,
        about: "Output since the last read, or from a cursor or line; waits for until, quiet_ms or the end. Refuses \
                cursor, tail_lines and from_line together.",
        repl_only: &[],
    };
    type Params = Params;
    type Answer = Answer;

    async fn carry_out(call: Call<'_>, params: Params) -> Result<Answer, Refused> {
        let shown = Shown::new(params.encoding, Codes::asked(params.strip_ansi));
        let heard = call.broker.read(params.request()?, call.progress).await?;
        Ok(Answer::of(heard, shown))
    }

    fn summary(answer: &Answer) -> String {
        let read = match (&answer.output, &answer.lines, &answer.chunks) {
            (Some(output), _, _) => size(output.len() as u64),
            (_, Some(lines), _) => format!("{} lines", lines.len()),
            (_, _, Some(chunks)) => format!("{} chunks", chunks.len()),
            _ if answer.screen.is_some() => "the screen".into(),
            _ => return answer.state.to_owned(),
        };
        let more = if answer.more { ", more is there" } else { "" };
        format!("{read}, {}{more}", answer.ending.words())
    }
}

impl Params {
    pub fn request(self) -> Result<request::Read, Refused> {
        let span = self.span()?;
        Ok(request::Read {
            proc_id: self.proc_id,
            timeout: millis(self.timeout_ms.unwrap_or(1000)),
            cursor: self.cursor,
            max_bytes: self.max_bytes.and_then(|most| usize::try_from(most).ok()),
            until: until(self.until)?,
            quiet: self.quiet_ms.map(millis),
            stream: match self.stream {
                None | Some(Stream::All) => Filter::All,
                Some(Stream::Stdout) => Filter::Stdout,
                Some(Stream::Stderr) => Filter::Stderr,
            },
            span,
            form: match self.format {
                None | Some(Format::Text) => Form::Text,
                Some(Format::Lines) => Form::Lines,
                Some(Format::Chunks) => Form::Chunks,
                Some(Format::Screen) => Form::Screen,
            },
            strip_ansi: self.strip_ansi.unwrap_or(false),
        })
    }

    fn span(&self) -> Result<Span, Refused> {
        let by_line = self.from_line.is_some() || self.lines.is_some();
        match (self.cursor, self.tail_lines) {
            (None, Some(count)) if !by_line => Ok(Span::TailLines(count)),
            (None, None) if by_line => {
                Ok(Span::Lines { from: self.from_line.unwrap_or(1), count: self.lines.unwrap_or(MANY_LINES) })
            }
            (_, None) if !by_line => Ok(Span::Next),
            _ => Err(Refused::invalid(
                "`cursor`, `tail_lines` and `from_line` with `lines` exclude each other; give one",
            )),
        }
    }
}

impl Answer {
    pub fn of(heard: Option<Heard>, mut shown: Shown) -> Self {
        let Some(heard) = heard else {
            return Answer { state: State::NoSuchProcess.name(), ..Answer::default() };
        };
        let mut answer = Answer {
            state: state(heard.end.as_ref()),
            next_cursor: heard.next_cursor,
            more: heard.more,
            total_bytes: heard.total_bytes,
            total_lines: heard.total_lines,
            dropped_bytes: heard.dropped_bytes,
            paused: heard.paused.then_some(true),
            matched: heard.matched,
            ending: Ending::of(heard.end.as_ref()),
            ..Answer::default()
        };
        match heard.content {
            Content::Text(bytes) => answer.output = Some(shown.bytes(&bytes)),
            Content::Lines(lines) => answer.lines = Some(lines.iter().map(|line| Line::of(line, &mut shown)).collect()),
            Content::Chunks(chunks) => {
                answer.chunks = Some(chunks.iter().map(|chunk| Chunk::of(chunk, &mut shown)).collect());
            }
            Content::Screen(screen) => {
                let (row, col) = screen.cursor;
                answer.screen_cursor = Some(Place { row, col });
                answer.screen_title = Some(screen.title).filter(|title| !title.is_empty());
                // Rows below the last that has anything on it say nothing.
                answer.screen = Some(screen.lines.join("\n").trim_end_matches('\n').to_owned());
            }
        }
        answer.invalid_utf8 = shown.invalid_utf8();
        answer
    }
}

impl Line {
    fn of(line: &answer::Line, shown: &mut Shown) -> Self {
        let text = shown.bytes(&line.text);
        Line { number: line.number, stream: line.stream.name(), ts: rfc3339(line.at), text }
    }
}

impl Chunk {
    fn of(chunk: &answer::Chunk, shown: &mut Shown) -> Self {
        let data = shown.bytes(&chunk.data);
        Chunk { seq: chunk.seq, stream: chunk.stream.name(), ts: rfc3339(chunk.at), data }
    }
}
