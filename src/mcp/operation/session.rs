//! Sessions: processes under one name, with a working directory and an environment to start in.

use super::command::{directory, environment};
use super::ending::Usage;
use super::{Call, Effect, Facts, Family, Feature, Operation};
use crate::broker::answer::SessionListed;
use crate::broker::refused::Refused;
use crate::broker::request::OnClose;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const FACTS: Facts = Facts {
    name: "",
    family: Family::Session,
    action: "",
    feature: Feature::Repl,
    effect: Effect::Reads,
    about: "",
    repl_only: &[],
};

#[derive(Debug)]
pub struct Open;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenParams {
    #[schemars(regex(pattern = "^[A-Za-z0-9_.-]{1,64}$"))]
    session: String,
    #[schemars(length(max = 4096))]
    cwd: Option<String>,
    #[schemars(extend("maxProperties" = 1024))]
    env: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct OpenAnswer {
    session: String,
    cwd: String,
}

impl Operation for Open {
    const FACTS: Facts = Facts {
        name: "session_open",
        action: "open",
        effect: Effect::Sets,
        about: "A named group of processes with its own cwd and env. Refuses a cwd outside the roots.",
        ..FACTS
    };
    type Params = OpenParams;
    type Answer = OpenAnswer;

    async fn carry_out(call: Call<'_>, params: OpenParams) -> Result<OpenAnswer, Refused> {
        let OpenParams { session, cwd, env } = params;
        let cwd = call.broker.open_session(&session, directory(cwd)?, environment(env.unwrap_or_default())?)?;
        Ok(OpenAnswer { session, cwd })
    }

    fn summary(answer: &OpenAnswer) -> String {
        format!("session {} in {}", answer.session, answer.cwd)
    }
}

#[derive(Debug)]
pub struct List;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListParams {}

#[derive(Debug, Serialize, JsonSchema)]
pub struct ListAnswer {
    sessions: Vec<Entry>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct Entry {
    session: String,
    cwd: String,
    running: usize,
    finished: usize,
    usage: Usage,
}

impl Operation for List {
    const FACTS: Facts = Facts {
        name: "session_list",
        action: "list",
        effect: Effect::Reads,
        about: "Sessions, their processes and usage.",
        ..FACTS
    };
    type Params = ListParams;
    type Answer = ListAnswer;

    async fn carry_out(call: Call<'_>, _: ListParams) -> Result<ListAnswer, Refused> {
        Ok(ListAnswer { sessions: call.broker.sessions().into_iter().map(Entry::of).collect() })
    }

    fn summary(answer: &ListAnswer) -> String {
        format!("{} sessions", answer.sessions.len())
    }
}

impl Entry {
    fn of(listed: SessionListed) -> Self {
        let SessionListed { session, cwd, running, finished, usage } = listed;
        Entry { session, cwd, running, finished, usage: usage.into() }
    }
}

#[derive(Debug)]
pub struct Close;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CloseParams {
    #[schemars(regex(pattern = "^[A-Za-z0-9_.-]{1,64}$"))]
    session: String,
    processes: Fate,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Fate {
    Stop,
    Keep,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct CloseAnswer {
    stopped: usize,
    kept: usize,
}

impl Operation for Close {
    const FACTS: Facts = Facts {
        name: "session_close",
        action: "close",
        effect: Effect::Ends,
        about: "Close a session; kept processes move to default, which itself stays. Refuses unknown names.",
        ..FACTS
    };
    type Params = CloseParams;
    type Answer = CloseAnswer;

    async fn carry_out(call: Call<'_>, params: CloseParams) -> Result<CloseAnswer, Refused> {
        let fate = match params.processes {
            Fate::Stop => OnClose::Stop,
            Fate::Keep => OnClose::Keep,
        };
        let (stopped, kept) = call.broker.close_session(&params.session, fate).await?;
        Ok(CloseAnswer { stopped, kept })
    }

    fn summary(answer: &CloseAnswer) -> String {
        format!("{} stopped, {} kept", answer.stopped, answer.kept)
    }
}
