//! `proc_start`: a process that stays, on pipes or on a terminal of its own.

use super::command::Written;
use super::ending::{Codes, Ending, Shown, size, state};
use super::words::{millis, until};
use super::{Call, Effect, Facts, Family, Feature, Operation};
use crate::broker::answer::Started;
use crate::broker::refused::Refused;
use crate::broker::request;
use crate::sys::terminal::Size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const TERMINAL: Size = Size { rows: 40, cols: 120 };

#[derive(Debug)]
pub struct Start;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    #[schemars(length(max = 262_144))]
    command: Option<String>,
    #[schemars(length(max = 4096))]
    argv: Option<Vec<String>>,
    #[schemars(length(max = 4096))]
    cwd: Option<String>,
    #[schemars(extend("maxProperties" = 1024))]
    env: Option<BTreeMap<String, String>>,
    pty: Option<bool>,
    #[schemars(range(min = 1, max = 500), extend("default" = 40))]
    rows: Option<u16>,
    #[schemars(range(min = 1, max = 1000), extend("default" = 120))]
    cols: Option<u16>,
    #[schemars(range(min = 0, max = 5000), extend("default" = 1000))]
    initial_read_timeout_ms: Option<u64>,
    /// regex
    #[schemars(length(max = 1024))]
    until: Option<String>,
    #[schemars(range(min = 1, max = 86_400_000))]
    timeout_ms: Option<u64>,
    #[schemars(range(min = 1, max = 86_400_000))]
    idle_timeout_ms: Option<u64>,
    #[schemars(range(min = 1, max = 1_000_000))]
    buffer_lines: Option<u64>,
    #[schemars(regex(pattern = "^[A-Za-z0-9_.-]{1,64}$"))]
    session: Option<String>,
    record: Option<bool>,
    #[schemars(length(max = 200))]
    description: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Answer {
    proc_id: String,
    pid: i32,
    state: &'static str,
    first_output: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    invalid_utf8: Option<usize>,
    next_cursor: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    matched: Option<String>,
    #[serde(flatten)]
    ending: Ending,
}

impl Operation for Start {
    const FACTS: Facts = Facts {
        name: "proc_start",
        family: Family::Process,
        action: "start",
        feature: Feature::Repl,
        effect: Effect::Runs,
        about: "Start a server, a REPL or, with pty, a terminal program; it outlives the call. Refuses what run \
                refuses, and more than the policy's number of processes.",
        repl_only: &[],
    };
    type Params = Params;
    type Answer = Answer;

    async fn carry_out(call: Call<'_>, params: Params) -> Result<Answer, Refused> {
        let started = call.broker.start(params.request()?).await?;
        Ok(Answer::of(started))
    }

    fn summary(answer: &Answer) -> String {
        let output = size(answer.first_output.len() as u64);
        format!("{}: {}, {output} of output", answer.proc_id, answer.ending.words())
    }
}

impl Params {
    pub fn request(self) -> Result<request::Start, Refused> {
        let sized = self.rows.is_some() || self.cols.is_some();
        let size = Size { rows: self.rows.unwrap_or(TERMINAL.rows), cols: self.cols.unwrap_or(TERMINAL.cols) };
        let terminal = match self.pty {
            Some(true) => Some(size),
            _ if sized => return Err(Refused::invalid("`rows` and `cols` mean something only with `pty` true")),
            _ => None,
        };
        if self.record == Some(true) && terminal.is_none() {
            let message = "`record` keeps what a terminal shows and means something only with `pty` true; \
                           the output of pipes is always kept, read it with `proc_read`";
            return Err(Refused::invalid(message).with("parameter", "record"));
        }
        let written = Written {
            command: self.command,
            argv: self.argv,
            cwd: self.cwd,
            env: self.env.unwrap_or_default(),
            session: self.session,
            description: self.description,
            timeout: self.timeout_ms.map(millis),
        };
        Ok(request::Start {
            command: written.read()?,
            terminal,
            initial_read: millis(self.initial_read_timeout_ms.unwrap_or(1000)),
            until: until(self.until)?,
            idle_timeout: self.idle_timeout_ms.map(millis),
            buffer_lines: self.buffer_lines,
            record: self.record.unwrap_or(false),
        })
    }
}

impl Answer {
    pub fn of(started: Started) -> Self {
        let mut shown = Shown::new(None, Codes::Kept);
        Answer {
            state: state(started.end.as_ref()),
            first_output: shown.bytes(&started.first_output),
            invalid_utf8: shown.invalid_utf8(),
            next_cursor: started.next_cursor,
            matched: started.matched,
            ending: Ending::of(started.end.as_ref()),
            proc_id: started.proc_id,
            pid: started.pid,
        }
    }
}
