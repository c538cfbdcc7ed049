//! The operations, each written once as typed parameters and a typed result. Both surfaces are made of this table.
//!
//! A new one is a type with [`Operation`] and a line in [`table`]: its schema, its checks, its place in a family and
//! its result all follow.

mod command;
mod config;
mod ending;
mod fs;
mod list;
mod process;
mod read;
mod run;
mod search;
mod send;
mod session;
mod start;
mod telemetry;
#[cfg(test)]
mod tests;
mod words;

use super::schema::{self, Object};
use crate::broker::refused::{Code, Refused};
use crate::broker::{Broker, Progress};
use crate::policy::Tools;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

/// Every operation, in the order in which tools are listed.
pub fn table() -> Vec<Row> {
    vec![
        Row::of::<run::Run>(),
        Row::of::<start::Start>(),
        Row::of::<send::Send>(),
        Row::of::<read::Read>(),
        Row::of::<process::Signal>(),
        Row::of::<process::Resize>(),
        Row::of::<process::Stop>(),
        Row::of::<list::List>(),
        Row::of::<process::Remove>(),
        Row::of::<session::Open>(),
        Row::of::<session::List>(),
        Row::of::<session::Close>(),
        Row::of::<fs::ReadFiles>(),
        Row::of::<fs::ListFiles>(),
        Row::of::<fs::StatFile>(),
        Row::of::<fs::WriteFile>(),
        Row::of::<fs::EditFile>(),
        Row::of::<fs::MoveFile>(),
        Row::of::<fs::MakeDirectory>(),
        Row::of::<fs::RestoreFile>(),
        Row::of::<search::Start>(),
        Row::of::<search::More>(),
        Row::of::<search::Stop>(),
        Row::of::<search::List>(),
        Row::of::<config::Get>(),
        Row::of::<config::Set>(),
        Row::of::<config::Health>(),
        Row::of::<telemetry::Stats>(),
        Row::of::<telemetry::Recent>(),
        Row::of::<telemetry::Feedback>(),
    ]
}

pub trait Operation {
    const FACTS: Facts;
    type Params: DeserializeOwned + JsonSchema + Send;
    type Answer: Serialize + JsonSchema;

    fn carry_out(call: Call<'_>, params: Self::Params) -> impl Future<Output = Result<Self::Answer, Refused>> + Send;

    /// One line for people; the model reads the structured content.
    fn summary(answer: &Self::Answer) -> String;
}

#[derive(Debug, Clone)]
pub struct Facts {
    /// The tool's name where each operation is a tool.
    pub name: &'static str,
    pub family: Family,
    /// Its name within the family.
    pub action: &'static str,
    pub feature: Feature,
    pub effect: Effect,
    /// At most two sentences; what it refuses is one of them.
    pub about: &'static str,
    /// Parameters that mean nothing without the feature `repl`.
    pub repl_only: &'static [&'static str],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    Run,
    Process,
    Session,
    Files,
    Search,
    Config,
    Telemetry,
}

impl Family {
    pub const ALL: [Family; 7] = [
        Family::Run,
        Family::Process,
        Family::Session,
        Family::Files,
        Family::Search,
        Family::Config,
        Family::Telemetry,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Family::Run => "run",
            Family::Process => "process",
            Family::Session => "session",
            Family::Files => "fs",
            Family::Search => "search",
            Family::Config => "config",
            Family::Telemetry => "telemetry",
        }
    }

    pub fn about(self) -> &'static str {
        match self {
            Family::Run => {
                "Run one command (or argv) to its end; after yield_ms it goes on as a process. Refuses programs and \
                 directories outside the policy."
            }
            Family::Process => {
                "Long-lived processes, REPLs and terminals. Refuses what the policy does not allow and parameters of \
                 other actions."
            }
            Family::Session => {
                "Named groups of processes with a cwd and env. Refuses a cwd outside the roots and unknown names."
            }
            Family::Telemetry => {
                "What this agent has done, and feedback to the operator. Refuses bad times and limits."
            }
            Family::Files => {
                "Read, list, write and edit files inside the cell; a replaced file is backed up. Refuses what the cell \
                 cannot touch and what is no regular file."
            }
            Family::Search => {
                "Search lines or file names as ripgrep does, page by page. Refuses patterns that do not compile and \
                 unknown ids."
            }
            Family::Config => "The policy in force and its health; set tightens a limit. Refuses looser values.",
        }
    }
}

/// A switch of `[tools]` in the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    Processes,
    Repl,
    Files,
    System,
}

impl Feature {
    pub fn name(self) -> &'static str {
        match self {
            Feature::Processes => "processes",
            Feature::Repl => "repl",
            Feature::Files => "files",
            Feature::System => "system",
        }
    }

    /// The feature without which this one is off too.
    pub fn root(self) -> Feature {
        match self {
            Feature::Processes | Feature::Repl => Feature::Processes,
            Feature::Files => Feature::Files,
            Feature::System => Feature::System,
        }
    }

    pub fn is_on(self, tools: &Tools) -> bool {
        match self {
            Feature::Processes => tools.processes,
            Feature::Repl => tools.processes && tools.repl,
            Feature::Files => tools.files,
            Feature::System => tools.system,
        }
    }
}

/// What a call can do to the world, for the annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Reads,
    /// Adds or sets; the same again changes nothing.
    Sets,
    /// Adds one more each time.
    Adds,
    /// Ends or deletes; the same again changes nothing.
    Ends,
    /// Replaces something of the agent's own; the same again can be another change.
    Changes,
    /// Runs the agent's own code, which can do whatever the walls allow.
    Runs,
    /// Does something to a process that it may not survive.
    Disturbs,
}

/// What an operation works with.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    pub broker: &'a Arc<Broker>,
    pub tools: &'a Tools,
    pub progress: Option<&'a Progress>,
}

impl fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("tools", self.tools).finish_non_exhaustive()
    }
}

/// The result of a call before it is dressed for the protocol.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    pub structured: Value,
    pub summary: String,
}

pub type Doing<'a> = Pin<Box<dyn Future<Output = Result<Done, Refused>> + Send + 'a>>;

/// One operation without its types.
#[derive(Debug, Clone)]
pub struct Row {
    pub facts: Facts,
    pub input: Object,
    pub output: Object,
    /// The arguments must have passed the rules of `input`.
    pub carry_out: for<'a> fn(Call<'a>, Object) -> Doing<'a>,
}

impl Row {
    fn of<O: Operation>() -> Self {
        Row {
            facts: O::FACTS,
            input: schema::input::<O::Params>(),
            output: schema::output::<O::Answer>(),
            carry_out: carry_out::<O>,
        }
    }
}

fn carry_out<O: Operation>(call: Call<'_>, arguments: Object) -> Doing<'_> {
    Box::pin(async move {
        let params = serde_json::from_value(Value::Object(arguments));
        let params = params.map_err(|error| Refused::invalid(error.to_string()))?;
        let answer = O::carry_out(call, params).await?;
        let summary = O::summary(&answer);
        let structured =
            serde_json::to_value(&answer).map_err(|error| Refused::new(Code::Internal, error.to_string()))?;
        Ok(Done { structured, summary })
    })
}
