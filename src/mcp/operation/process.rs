//! What is done to processes beyond reading and writing: signal, resize, stop, remove.

use super::ending::Ending;
use super::words::{millis, signal};
use super::{Call, Effect, Facts, Family, Feature, Operation};
use crate::broker::Removal;
use crate::broker::answer::Stopped;
use crate::broker::refused::Refused;
use crate::broker::request::{self, Target};
use crate::sys::terminal::Size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const FACTS: Facts = Facts {
    name: "",
    family: Family::Process,
    action: "",
    feature: Feature::Repl,
    effect: Effect::Reads,
    about: "",
    repl_only: &[],
};

#[derive(Debug)]
pub struct Signal;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignalParams {
    proc_id: String,
    /// INT TERM HUP KILL QUIT STOP CONT USR1 USR2
    #[schemars(regex(pattern = "^(SIG)?(INT|TERM|HUP|KILL|QUIT|STOP|CONT|USR1|USR2)$"))]
    signal: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct SignalAnswer {
    delivered: bool,
    state: &'static str,
}

impl Operation for Signal {
    const FACTS: Facts = Facts {
        name: "proc_signal",
        action: "signal",
        effect: Effect::Disturbs,
        about: "Send a signal. Refuses a process that has ended.",
        ..FACTS
    };
    type Params = SignalParams;
    type Answer = SignalAnswer;

    async fn carry_out(call: Call<'_>, params: SignalParams) -> Result<SignalAnswer, Refused> {
        let state = call.broker.signal(&params.proc_id, signal(&params.signal)?).await?;
        Ok(SignalAnswer { delivered: true, state: state.name() })
    }

    fn summary(answer: &SignalAnswer) -> String {
        format!("delivered, {}", answer.state)
    }
}

#[derive(Debug)]
pub struct Resize;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResizeParams {
    proc_id: String,
    #[schemars(range(min = 1, max = 500))]
    rows: u16,
    #[schemars(range(min = 1, max = 1000))]
    cols: u16,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct ResizeAnswer {
    rows: u16,
    cols: u16,
}

impl Operation for Resize {
    const FACTS: Facts = Facts {
        name: "proc_resize",
        action: "resize",
        effect: Effect::Sets,
        about: "Resize a terminal. Refuses a process without one.",
        ..FACTS
    };
    type Params = ResizeParams;
    type Answer = ResizeAnswer;

    async fn carry_out(call: Call<'_>, params: ResizeParams) -> Result<ResizeAnswer, Refused> {
        let ResizeParams { proc_id, rows, cols } = params;
        call.broker.resize(&proc_id, Size { rows, cols }).await?;
        Ok(ResizeAnswer { rows, cols })
    }

    fn summary(answer: &ResizeAnswer) -> String {
        format!("{} rows, {} columns", answer.rows, answer.cols)
    }
}

#[derive(Debug)]
pub struct Stop;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StopParams {
    proc_id: Option<String>,
    #[schemars(regex(pattern = "^[A-Za-z0-9_.-]{1,64}$"))]
    session: Option<String>,
    #[schemars(regex(pattern = "^(SIG)?(INT|TERM|HUP|KILL|QUIT|STOP|CONT|USR1|USR2)$"), extend("default" = "TERM"))]
    signal: Option<String>,
    /// then KILL
    #[schemars(range(min = 0, max = 60_000), extend("default" = 2000))]
    grace_ms: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct StopAnswer {
    success: bool,
    message: String,
    state: &'static str,
    #[serde(flatten)]
    ending: Ending,
}

impl Operation for Stop {
    const FACTS: Facts = Facts {
        name: "proc_stop",
        action: "stop",
        effect: Effect::Ends,
        about: "End a process, or a whole session, and all they started. An unknown id is success:false.",
        ..FACTS
    };
    type Params = StopParams;
    type Answer = StopAnswer;

    async fn carry_out(call: Call<'_>, params: StopParams) -> Result<StopAnswer, Refused> {
        call.broker.stop(params.request()?).await.map(StopAnswer::of)
    }

    fn summary(answer: &StopAnswer) -> String {
        answer.message.clone()
    }
}

impl StopParams {
    pub fn request(self) -> Result<request::Stop, Refused> {
        let target = match (self.proc_id, self.session) {
            (Some(proc_id), None) => Target::Process(proc_id),
            (None, Some(session)) => Target::Session(session),
            _ => return Err(Refused::invalid("exactly one of `proc_id` and `session` must be given")),
        };
        let signal = signal(self.signal.as_deref().unwrap_or("TERM"))?;
        Ok(request::Stop { target, signal, grace: millis(self.grace_ms.unwrap_or(2000)) })
    }
}

impl StopAnswer {
    fn of(stopped: Stopped) -> Self {
        let Stopped { success, message, state, end } = stopped;
        StopAnswer { success, message, state: state.name(), ending: Ending::of(end.as_ref()) }
    }
}

#[derive(Debug)]
pub struct Remove;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoveParams {
    proc_id: String,
    output_only: Option<bool>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct RemoveAnswer {
    removed: bool,
}

impl Operation for Remove {
    const FACTS: Facts = Facts {
        name: "proc_remove",
        action: "remove",
        effect: Effect::Ends,
        about: "Stop and forget a process, or only its output. Refuses unknown ids.",
        ..FACTS
    };
    type Params = RemoveParams;
    type Answer = RemoveAnswer;

    async fn carry_out(call: Call<'_>, params: RemoveParams) -> Result<RemoveAnswer, Refused> {
        let what = if params.output_only == Some(true) { Removal::OutputOnly } else { Removal::Everything };
        call.broker.remove(&params.proc_id, what).await?;
        Ok(RemoveAnswer { removed: true })
    }

    fn summary(_: &RemoveAnswer) -> String {
        "removed".into()
    }
}
