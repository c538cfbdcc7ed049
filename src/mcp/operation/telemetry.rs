//! What this agent has done: counts, its last calls, and a word from it to the operator.

use super::{Call, Effect, Facts, Family, Feature, Operation};
use crate::broker::refused::Refused;
use crate::broker::telemetry::{Outcome, Which};
use crate::mcp::clock;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;

/// Calls that are shown unless more are asked for.
const USUAL: usize = 20;

const FACTS: Facts = Facts {
    name: "",
    family: Family::Telemetry,
    action: "",
    feature: Feature::System,
    effect: Effect::Reads,
    about: "",
    repl_only: &[],
};

#[derive(Debug)]
pub struct Stats;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StatsParams {
    /// RFC 3339
    #[schemars(length(max = 40))]
    since: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct StatsAnswer(serde_json::Map<String, Value>);

impl Operation for Stats {
    const FACTS: Facts = Facts {
        name: "usage_stats",
        action: "stats",
        about: "Counts, bytes, durations and failures of this agent's calls. Refuses a time that is not RFC 3339.",
        ..FACTS
    };
    type Params = StatsParams;
    type Answer = StatsAnswer;

    async fn carry_out(call: Call<'_>, params: StatsParams) -> Result<StatsAnswer, Refused> {
        let since = params.since.as_deref().map(moment).transpose()?;
        match call.broker.books().usage_stats(since).await? {
            Value::Object(stats) => Ok(StatsAnswer(stats)),
            other => Ok(StatsAnswer([("stats".to_owned(), other)].into_iter().collect())),
        }
    }

    fn summary(_: &StatsAnswer) -> String {
        "usage".into()
    }
}

fn moment(text: &str) -> Result<std::time::SystemTime, Refused> {
    clock::parse(text).ok_or_else(|| {
        Refused::invalid(format!("`since` is `{text}`; give a time such as `2026-01-31T12:00:00Z` or a date"))
            .with("parameter", "since")
    })
}

#[derive(Debug)]
pub struct Recent;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecentParams {
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
    #[schemars(length(max = 40))]
    tool: Option<String>,
    errors_only: Option<bool>,
}

#[derive(Debug, Serialize)]
pub struct RecentAnswer {
    calls: Vec<serde_json::Map<String, Value>>,
}

/// What a call was about differs, so only that it is an object can be promised.
impl JsonSchema for RecentAnswer {
    fn schema_name() -> Cow<'static, str> {
        "RecentCalls".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "properties": {
            "calls": { "type": "array", "items": { "type": "object" } },
        }, "required": ["calls"] })
    }
}

impl Operation for Recent {
    const FACTS: Facts = Facts {
        name: "recent_calls",
        action: "recent",
        about: "This agent's last calls, newest first. Refuses a limit above 500.",
        ..FACTS
    };
    type Params = RecentParams;
    type Answer = RecentAnswer;

    async fn carry_out(call: Call<'_>, params: RecentParams) -> Result<RecentAnswer, Refused> {
        let outcome = if params.errors_only == Some(true) { Outcome::Errors } else { Outcome::Any };
        let which = Which { limit: params.limit.unwrap_or(USUAL), tool: params.tool, outcome };
        let calls = call.broker.books().recent_calls(which).await?;
        let object = |call: Value| match call {
            Value::Object(call) => Some(call),
            _ => None,
        };
        Ok(RecentAnswer { calls: calls.into_iter().filter_map(object).collect() })
    }

    fn summary(answer: &RecentAnswer) -> String {
        format!("{} calls", answer.calls.len())
    }
}

#[derive(Debug)]
pub struct Feedback;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FeedbackParams {
    #[schemars(length(min = 1, max = 4000))]
    text: String,
    #[schemars(range(min = 1, max = 5))]
    rating: Option<u8>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct FeedbackAnswer {
    stored: bool,
}

impl Operation for Feedback {
    const FACTS: Facts = Facts {
        name: "feedback",
        action: "feedback",
        effect: Effect::Adds,
        about: "Tell the operator what helped or got in the way. Refuses more than 4000 characters.",
        ..FACTS
    };
    type Params = FeedbackParams;
    type Answer = FeedbackAnswer;

    async fn carry_out(call: Call<'_>, params: FeedbackParams) -> Result<FeedbackAnswer, Refused> {
        call.broker.books().feedback(&params.text, params.rating).await?;
        Ok(FeedbackAnswer { stored: true })
    }

    fn summary(_: &FeedbackAnswer) -> String {
        "stored".into()
    }
}
