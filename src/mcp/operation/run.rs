//! `run`: a command from start to end, or as far as the client has patience.

use super::command::Written;
use super::ending::{Codes, Ending, Shown, Usage, size, state, whole_millis};
use super::words::{Encoding, bytes, millis};
use super::{Call, Effect, Facts, Family, Feature, Operation};
use crate::broker::answer::Ran;
use crate::broker::refused::Refused;
use crate::broker::request;
use crate::policy::Tools;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Clients give up at about 60 s and then lose everything.
const YIELD: Duration = Duration::from_secs(45);

/// Later than any process may live: the answer waits for the end.
const NEVER: Duration = Duration::from_secs(2 * 86_400);

#[derive(Debug)]
pub struct Run;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// shell string
    #[schemars(length(max = 262_144))]
    command: Option<String>,
    /// no shell
    #[schemars(length(max = 4096))]
    argv: Option<Vec<String>>,
    #[schemars(length(max = 4096))]
    cwd: Option<String>,
    #[serde(default)]
    #[schemars(extend("maxProperties" = 1024))]
    env: Option<BTreeMap<String, String>>,
    #[schemars(length(max = 1_400_000))]
    stdin: Option<String>,
    stdin_encoding: Option<Encoding>,
    #[schemars(range(min = 1, max = 86_400_000))]
    timeout_ms: Option<u64>,
    #[schemars(range(min = 0, max = 55_000), extend("default" = 45_000))]
    yield_ms: Option<u64>,
    /// yield at once
    background: Option<bool>,
    #[schemars(range(min = 0, max = 262_144))]
    max_output_bytes: Option<u64>,
    encoding: Option<Encoding>,
    #[schemars(regex(pattern = "^[A-Za-z0-9_.-]{1,64}$"))]
    session: Option<String>,
    #[schemars(length(max = 200))]
    description: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Answer {
    proc_id: String,
    state: &'static str,
    #[serde(flatten)]
    ending: Ending,
    stdout: String,
    stderr: String,
    stdout_bytes: u64,
    stderr_bytes: u64,
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    invalid_utf8: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    highlights: Vec<Highlight>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped_bytes: Option<u64>,
    duration_ms: u64,
    cwd: String,
    usage: Usage,
}

// A line between head and tail that looks like an error.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct Highlight {
    line: u64,
    text: String,
}

impl Operation for Run {
    const FACTS: Facts = Facts {
        name: "run",
        family: Family::Run,
        action: "run",
        feature: Feature::Processes,
        effect: Effect::Runs,
        about: "Run one command (or argv) to its end; after yield_ms it goes on as a process. Refuses programs and \
                directories outside the policy.",
        repl_only: &["yield_ms", "background", "session"],
    };
    type Params = Params;
    type Answer = Answer;

    async fn carry_out(call: Call<'_>, params: Params) -> Result<Answer, Refused> {
        let shown = Shown::new(params.encoding, Codes::Kept);
        let ran = call.broker.run(params.request(call.tools)?, call.progress).await?;
        Ok(Answer::of(&ran, shown))
    }

    fn summary(answer: &Answer) -> String {
        let output = size(answer.stdout_bytes + answer.stderr_bytes);
        let how = answer.ending.words();
        match answer.state {
            "running" => format!("{} is running after {} ms, {output} of output", answer.proc_id, answer.duration_ms),
            _ => format!("{how} in {} ms, {output} of output", answer.duration_ms),
        }
    }
}

impl Params {
    pub fn request(self, tools: &Tools) -> Result<request::Run, Refused> {
        let stdin = bytes("stdin", self.stdin.unwrap_or_default(), self.stdin_encoding.unwrap_or_default())?;
        let yield_after = match (self.background, self.yield_ms) {
            _ if !Feature::Repl.is_on(tools) => NEVER,
            (Some(true), _) => Duration::ZERO,
            (_, Some(yield_ms)) => millis(yield_ms),
            (_, None) => YIELD,
        };
        let written = Written {
            command: self.command,
            argv: self.argv,
            cwd: self.cwd,
            env: self.env.unwrap_or_default(),
            session: self.session,
            description: self.description,
            timeout: self.timeout_ms.map(millis),
        };
        let max_output = self.max_output_bytes.and_then(|most| usize::try_from(most).ok());
        Ok(request::Run { command: written.read()?, stdin, yield_after, max_output })
    }
}

impl Answer {
    pub fn of(ran: &Ran, mut shown: Shown) -> Self {
        let highlights = ran.highlights.iter().map(|found| Highlight { line: found.line, text: found.text.clone() });
        Answer {
            proc_id: ran.proc_id.clone(),
            state: state(ran.end.as_ref()),
            ending: Ending::of(ran.end.as_ref()),
            stdout: shown.excerpt(&ran.stdout),
            stderr: shown.excerpt(&ran.stderr),
            stdout_bytes: ran.stdout.total,
            stderr_bytes: ran.stderr.total,
            truncated: ran.stdout.omitted + ran.stderr.omitted + ran.dropped_bytes > 0,
            invalid_utf8: shown.invalid_utf8(),
            highlights: highlights.collect(),
            dropped_bytes: Some(ran.dropped_bytes).filter(|count| *count > 0),
            duration_ms: whole_millis(ran.duration),
            cwd: ran.cwd.clone(),
            usage: ran.usage.into(),
        }
    }
}
