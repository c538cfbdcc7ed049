//! One call as the books enter it, from what was asked and what was answered. Which walls stood is the broker's to add.

use super::operation::Done;
use super::schema::Object;
use crate::broker::answer::Reason;
use crate::broker::audit::{Call, Decision, Exit, Subject};
use crate::broker::refused::Refused;
use serde::Deserialize;
use serde_json::Value;

/// What was asked, kept while the call runs.
#[derive(Debug, Default)]
pub struct Asked {
    session: Option<String>,
    subject: Option<Subject>,
    cwd: Option<String>,
    env: Vec<(String, String)>,
    proc_id: Option<String>,
}

impl Asked {
    pub fn of(arguments: &Object) -> Self {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).map(str::to_owned);
        let texts = |name: &str| {
            let items = arguments.get(name)?.as_array()?;
            Some(items.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>())
        };
        let paths = || {
            let mut named: Vec<String> = ["path", "from", "to"].into_iter().filter_map(text).collect();
            named.extend(texts("paths").unwrap_or_default());
            // What else says which file, search or setting was meant.
            let others = ["pattern", "backup_id", "search_id", "key"];
            named.extend(others.into_iter().filter_map(|name| Some(format!("{name}={}", text(name)?))));
            (!named.is_empty()).then_some(named)
        };
        let variable = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
        Asked {
            session: text("session"),
            subject: (texts("argv").map(Subject::Argv))
                .or_else(|| text("command").map(Subject::Command))
                .or_else(|| paths().map(Subject::Paths)),
            cwd: text("cwd"),
            env: arguments
                .get("env")
                .and_then(Value::as_object)
                .map(|env| env.iter().filter_map(variable).collect())
                .unwrap_or_default(),
            proc_id: text("proc_id"),
        }
    }

    /// With what came of it.
    pub fn entered(self, id: &str, tool: &'static str, done: &Result<Done, Refused>) -> Call {
        let mut call = Call::new(id, tool);
        call.session = self.session;
        call.subject = self.subject.unwrap_or(Subject::Nothing);
        call.env = self.env;
        match done {
            Ok(done) => {
                let told = |name: &str| done.structured.get(name);
                let text = |name: &str| told(name).and_then(Value::as_str).map(str::to_owned);
                call.cwd = text("cwd").or(self.cwd);
                call.proc_id = text("proc_id").or(self.proc_id);
                call.exit = told("reason").and_then(|reason| Reason::deserialize(reason).ok()).map(|reason| Exit {
                    code: told("exit_code").and_then(Value::as_i64).map(|code| code as i32),
                    signal: text("signal").and_then(|name| number(&name)),
                    reason,
                });
            }
            Err(refused) => {
                call.decision = Decision::Refused(refused.code);
                call.cwd = self.cwd;
                call.proc_id = self.proc_id;
            }
        }
        call
    }
}

fn number(name: &str) -> Option<i32> {
    name.parse::<nix::sys::signal::Signal>().ok().map(|signal| signal as i32)
}
