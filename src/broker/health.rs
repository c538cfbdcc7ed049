//! `health`: what stands, what is limited, how full it is.

use super::Broker;
use serde_json::{Map, Value, json};

impl Broker {
    /// Waits for a cell that is being made.
    pub async fn health(&self) -> Value {
        let cell = self.home.pool().await;
        let policy = self.policy();
        let running = self.registry.running().len();
        let mut health = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "uptime_s": self.started.elapsed().as_secs(),
            "enforcement": match cell.is_ok_and(|pool| pool.is_lost()) {
                true => json!({ "cell": "lost with its launcher; start stockade again" }),
                false => self.enforcement(),
            },
            "limits": super::config::get(&policy, Some("limits")).unwrap_or(Value::Null),
            "processes": {
                "running": running,
                "finished": self.registry.all().len() - running,
                "total": policy.processes.total,
                "per_session": policy.processes.per_session,
            },
        });
        let deleted = self.state.deleted();
        health["retention"] = json!({ "deleted_processes": deleted.processes, "deleted_bytes": deleted.bytes });
        if let Some(trouble) = &self.control_trouble {
            health["control_trouble"] = trouble.as_str().into();
        }
        // What the host's paths are is the operator's business, and in the log.
        if self.state.trouble().is_some() {
            health["state_trouble"] = "output does not reach the disk and would not outlive the server".into();
        }
        if !self.books.trouble().is_empty() {
            health["books_trouble"] = "audit or telemetry cannot be written at present".into();
        }
        health
    }

    /// Each wall by name: `enforced`, or that the policy goes without; or why there is no cell.
    fn enforcement(&self) -> Value {
        match self.home.walls() {
            None => json!({ "cell": "being made" }),
            Some(Err(refused)) => json!({ "cell": refused.message }),
            Some(Ok(walls)) => {
                let word = |stands| if stands { "enforced" } else { "not enforced" };
                Value::Object(
                    walls
                        .standing
                        .iter()
                        .map(|(name, stands)| ((*name).into(), word(*stands).into()))
                        .collect::<Map<_, _>>(),
                )
            }
        }
    }
}
