//! The one thing the tool surface calls after each call: audit, telemetry and metrics, behind one [`Books::enter`].

use super::audit::{Audit, Call, Decision, Redactor};
use super::metrics::{Metrics, Number};
use super::refused::Refused;
use super::telemetry::{Keep, Telemetry, Which};
use crate::policy::Policy;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

#[derive(Debug)]
pub struct Books {
    pub audit: Audit,
    pub telemetry: Telemetry,
    pub metrics: Metrics,
    pub redactor: Redactor,
}

impl Books {
    /// Opens the books of the policy's agent in its state directory. `operator` is the broker's own environment, whose
    /// secrets must not be written. Always works, see [`Books::trouble`].
    pub fn open(directory: &Path, policy: &Policy, operator: &[(String, String)]) -> Books {
        Books {
            audit: Audit::open(directory),
            telemetry: Telemetry::open(directory, &policy.agent, Keep::default()),
            metrics: Metrics::default(),
            redactor: Redactor::new(&policy.agent, &policy.environment, operator),
        }
    }

    /// Enters one call, without waiting for anything.
    pub fn enter(&self, call: Call) {
        let failure = match call.decision {
            Decision::Allowed => None,
            Decision::Refused(code) => Some(code),
        };
        self.metrics.count(call.tool, failure, call.duration);
        self.metrics.add(Number::BytesIn, call.bytes_in);
        self.metrics.add(Number::BytesOut, call.bytes_out);
        if failure.is_none() && call.proc_id.is_some() && matches!(call.tool, "run" | "proc_start") {
            self.metrics.add(Number::ProcessesStarted, 1);
        }
        let record = Arc::new(self.redactor.clean(call));
        self.audit.record(Arc::clone(&record));
        self.telemetry.record(record);
    }

    /// What the books cannot do right now; empty when all is well.
    pub fn trouble(&self) -> Vec<String> {
        self.audit.trouble().into_iter().chain(self.telemetry.trouble()).collect()
    }

    /// Prometheus' text format.
    pub fn render(&self) -> String {
        self.metrics.set(Number::AuditLost, self.audit.lost());
        self.metrics.set(Number::TelemetryDropped, self.telemetry.dropped());
        self.metrics.render()
    }

    pub async fn usage_stats(&self, since: Option<SystemTime>) -> Result<Value, Refused> {
        self.telemetry.usage_stats(since).await
    }

    pub async fn recent_calls(&self, which: Which) -> Result<Vec<Value>, Refused> {
        self.telemetry.recent_calls(which).await
    }

    pub async fn feedback(&self, text: &str, rating: Option<u8>) -> Result<i64, Refused> {
        self.telemetry.feedback(&self.redactor, text, rating).await
    }
}
