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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::audit::{Subject, verify};
    use crate::policy::Environment;
    use std::time::{Duration, Instant};

    fn call(number: u32) -> Call {
        let mut call = Call::new(format!("c-{number}"), "run");
        call.subject = Subject::Command("cargo test --workspace -- --nocapture 2>&1 | tail -n 40".into());
        call.cwd = Some("/srv/checkout".into());
        call.proc_id = Some(format!("p-{number}"));
        call
    }

    /// By hand: `cargo test --release --lib books -- --ignored --nocapture`
    #[test]
    #[ignore = "a measurement, not a check"]
    fn what_a_call_pays() {
        let directory = std::env::temp_dir().join(format!("stockade-books-{}", std::process::id()));
        let redact = ["*TOKEN*", "*SECRET*", "*KEY*", "*PASSWORD*"].map(String::from).to_vec();
        let environment = Environment { pass: Vec::new(), set: Vec::new(), redact };
        let operator: Vec<_> = (0..8).map(|n| (format!("A_TOKEN_{n}"), format!("secret-value-{n}"))).collect();
        let books = Books {
            audit: Audit::open(&directory),
            telemetry: Telemetry::open(&directory, "tester", Keep::default()),
            metrics: Metrics::default(),
            redactor: Redactor::new("tester", &environment, &operator),
        };
        let enter = |number| {
            let call = call(number);
            let start = Instant::now();
            books.enter(call);
            start.elapsed()
        };
        let mut paced: Vec<Duration> = (0..2000)
            .map(|number| {
                let next = Instant::now() + Duration::from_millis(1);
                while Instant::now() < next {
                    std::hint::spin_loop();
                }
                enter(number)
            })
            .collect();
        paced.sort_unstable();
        println!("one call each millisecond: median {:?}, p95 {:?}, p99 {:?}", paced[1000], paced[1900], paced[1980]);
        let start = Instant::now();
        let count = 20_000;
        for number in 0..count {
            enter(number);
        }
        println!("calls without a pause: {:?} each; dropped {}", start.elapsed() / count, books.telemetry.dropped());
        let lost = books.audit.lost();
        drop(books);
        let took = start.elapsed();
        let report = verify::directory(&directory).expect("a log");
        assert!(report.is_intact(), "{:?}", report.findings);
        let rate = (f64::from(count) - lost as f64) / took.as_secs_f64();
        println!("{rate:.0} calls a second reach the disk; {lost} lost");
        drop(std::fs::remove_dir_all(directory));
    }
}
