//! The policy in force, the few values an agent may tighten, and what the host enforces.

use super::{Call, Effect, Facts, Family, Feature, Operation};
use crate::broker::refused::Refused;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;

const FACTS: Facts = Facts {
    name: "",
    family: Family::Config,
    action: "",
    feature: Feature::System,
    effect: Effect::Reads,
    about: "",
    repl_only: &[],
};

#[derive(Debug)]
pub struct Get;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetParams {
    /// such as limits.memory
    #[schemars(length(max = 128))]
    key: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Setting {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    value: Value,
}

impl Operation for Get {
    const FACTS: Facts = Facts {
        name: "config_get",
        action: "get",
        effect: Effect::Reads,
        about: "The policy in force, or one value of it. Refuses unknown keys.",
        ..FACTS
    };
    type Params = GetParams;
    type Answer = Setting;

    async fn carry_out(call: Call<'_>, params: GetParams) -> Result<Setting, Refused> {
        let value = call.broker.config(params.key.as_deref())?;
        Ok(Setting { key: params.key, value })
    }

    fn summary(answer: &Setting) -> String {
        answer.key.clone().unwrap_or_else(|| "the policy in force".into())
    }
}

#[derive(Debug)]
pub struct Set;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetParams {
    #[schemars(length(max = 128))]
    key: String,
    /// as in a policy file
    value: Value,
}

impl Operation for Set {
    const FACTS: Facts = Facts {
        name: "config_set",
        action: "set",
        effect: Effect::Sets,
        about: "Tighten a limit while the server runs. Refuses other keys and looser values.",
        ..FACTS
    };
    type Params = SetParams;
    type Answer = Setting;

    async fn carry_out(call: Call<'_>, params: SetParams) -> Result<Setting, Refused> {
        let value = call.broker.set_config(&params.key, &params.value)?;
        Ok(Setting { key: Some(params.key), value })
    }

    fn summary(answer: &Setting) -> String {
        format!("{} is now {}", answer.key.as_deref().unwrap_or_default(), answer.value)
    }
}

#[derive(Debug)]
pub struct Health;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HealthParams {}

/// The broker's own words: `version`, `uptime_s`, `enforcement`, `limits`, `processes`.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct HealthAnswer(Value);

impl JsonSchema for HealthAnswer {
    fn schema_name() -> Cow<'static, str> {
        "Health".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "properties": {
            "version": { "type": "string" },
            "uptime_s": { "type": "integer" },
            "enforcement": { "type": "object" },
            "limits": { "type": "object" },
            "processes": { "type": "object" },
            "retention": { "type": "object" },
            "state_trouble": { "type": "string" },
            "books_trouble": { "type": "string" },
            "control_trouble": { "type": "string" },
        }})
    }
}

impl Operation for Health {
    const FACTS: Facts = Facts {
        name: "health",
        action: "health",
        effect: Effect::Reads,
        about: "Version, uptime, walls in force, limits, processes.",
        ..FACTS
    };
    type Params = HealthParams;
    type Answer = HealthAnswer;

    async fn carry_out(call: Call<'_>, _: HealthParams) -> Result<HealthAnswer, Refused> {
        Ok(HealthAnswer(call.broker.health().await))
    }

    fn summary(answer: &HealthAnswer) -> String {
        let version = answer.0.get("version").and_then(Value::as_str).unwrap_or("?");
        format!("stockade {version}")
    }
}
