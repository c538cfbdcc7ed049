//! `proc_list`: every process of the agent at a glance.

use super::ending::{Ending, Usage, state, whole_millis};
use super::{Call, Effect, Facts, Family, Feature, Operation};
use crate::broker::answer::{Listed, State};
use crate::broker::refused::Refused;
use crate::broker::render;
use crate::broker::request;
use crate::mcp::clock::rfc3339;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug)]
pub struct List;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    #[schemars(regex(pattern = "^[A-Za-z0-9_.-]{1,64}$"))]
    session: Option<String>,
    state: Option<WantedState>,
    /// last 10 lines
    include_output: Option<bool>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum WantedState {
    Running,
    Exited,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Answer {
    processes: Vec<Entry>,
    /// older ones that ended
    #[serde(skip_serializing_if = "Option::is_none")]
    omitted: Option<usize>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct Entry {
    proc_id: String,
    pid: i32,
    session: String,
    command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    state: &'static str,
    #[serde(flatten)]
    ending: Ending,
    started_at: String,
    last_activity: String,
    runtime_ms: u64,
    total_bytes: u64,
    total_lines: u64,
    usage: Usage,
    #[serde(skip_serializing_if = "Option::is_none")]
    recent_output: Option<String>,
}

impl Operation for List {
    const FACTS: Facts = Facts {
        name: "proc_list",
        family: Family::Process,
        action: "list",
        feature: Feature::Repl,
        effect: Effect::Reads,
        about: "Processes, running and ended. Refuses an unknown session.",
        repl_only: &[],
    };
    type Params = Params;
    type Answer = Answer;

    async fn carry_out(call: Call<'_>, params: Params) -> Result<Answer, Refused> {
        let state = params.state.map(|state| match state {
            WantedState::Running => State::Running,
            WantedState::Exited => State::Exited,
        });
        let include_output = params.include_output.unwrap_or(false);
        let (listed, omitted) = call.broker.list(&request::List { session: params.session, state, include_output })?;
        let processes = listed.into_iter().map(Entry::of).collect();
        Ok(Answer { processes, omitted: (omitted > 0).then_some(omitted) })
    }

    fn summary(answer: &Answer) -> String {
        let running = answer.processes.iter().filter(|entry| entry.state == "running").count();
        format!("{} processes, {running} running", answer.processes.len())
    }
}

impl Entry {
    fn of(listed: Listed) -> Self {
        let recent = listed.recent_output.map(|lines| {
            let lines = lines.iter().map(|line| render::text(&line.text).text);
            lines.collect::<Vec<_>>().join("\n")
        });
        Entry {
            proc_id: listed.proc_id,
            pid: listed.pid,
            session: listed.session,
            command: listed.command,
            description: listed.description,
            state: state(listed.end.as_ref()),
            ending: Ending::of(listed.end.as_ref()),
            started_at: rfc3339(listed.started_at),
            last_activity: rfc3339(listed.last_activity),
            runtime_ms: whole_millis(listed.runtime),
            total_bytes: listed.total_bytes,
            total_lines: listed.total_lines,
            usage: listed.usage.into(),
            recent_output: recent,
        }
    }
}
