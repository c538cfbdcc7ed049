//! Counters, histograms and gauges, in Prometheus' text format (exposition format 0.0.4).
//!
//! Counting takes a few atomic additions. Labels come from fixed sets, so that no agent can make their number grow;
//! the one exception, session names, is bounded and escaped.

use super::refused::Code;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The operations; whatever else is asked for counts as `other`.
pub const TOOLS: [&str; 31] = [
    "run",
    "proc_start",
    "proc_send",
    "proc_read",
    "proc_signal",
    "proc_resize",
    "proc_stop",
    "proc_list",
    "proc_remove",
    "session_open",
    "session_list",
    "session_close",
    "fs_read",
    "fs_list",
    "fs_stat",
    "fs_write",
    "fs_edit",
    "fs_move",
    "fs_mkdir",
    "fs_restore",
    "search_start",
    "search_more",
    "search_stop",
    "search_list",
    "config_get",
    "config_set",
    "usage_stats",
    "recent_calls",
    "feedback",
    "health",
    OTHER,
];

const OTHER: &str = "other";

/// `OK` first, then the error codes.
const OUTCOMES: usize = 24;

/// Upper bounds in microseconds and as the format writes them, in seconds.
const BUCKETS: [(u64, &str); 13] = [
    (100, "0.0001"),
    (250, "0.00025"),
    (500, "0.0005"),
    (1_000, "0.001"),
    (2_500, "0.0025"),
    (5_000, "0.005"),
    (10_000, "0.01"),
    (50_000, "0.05"),
    (100_000, "0.1"),
    (500_000, "0.5"),
    (1_000_000, "1"),
    (10_000_000, "10"),
    (60_000_000, "60"),
];

/// Sessions told by name; the rest are told together.
const MOST_SESSIONS: usize = 64;
/// Characters of a session's name.
const LONGEST_SESSION: usize = 64;

#[derive(Debug, Default)]
pub struct Metrics {
    tools: [Tool; TOOLS.len()],
    numbers: [AtomicU64; Number::ALL.len()],
    sessions: Mutex<Vec<(String, u64)>>,
}

#[derive(Debug, Default)]
struct Tool {
    outcomes: [AtomicU64; OUTCOMES],
    /// Each call in the first bucket that holds it; past the last: the slowest.
    buckets: [AtomicU64; BUCKETS.len() + 1],
    total_us: AtomicU64,
}

/// Figures without labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    BytesIn,
    BytesOut,
    ProcessesStarted,
    AuditLost,
    TelemetryDropped,
    RetentionFiles,
    RetentionBytes,
    Cleanups,
    ProcessesRunning,
    OutputStored,
}

impl Number {
    const ALL: [Number; 10] = [
        Number::BytesIn,
        Number::BytesOut,
        Number::ProcessesStarted,
        Number::AuditLost,
        Number::TelemetryDropped,
        Number::RetentionFiles,
        Number::RetentionBytes,
        Number::Cleanups,
        Number::ProcessesRunning,
        Number::OutputStored,
    ];

    /// Name, type and what it says.
    fn told(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Number::BytesIn => ("stockade_request_bytes_total", "counter", "Bytes of requests"),
            Number::BytesOut => ("stockade_answer_bytes_total", "counter", "Bytes of answers"),
            Number::ProcessesStarted => ("stockade_processes_started_total", "counter", "Processes started"),
            Number::AuditLost => ("stockade_audit_lost_total", "counter", "Calls that did not reach the audit log"),
            Number::TelemetryDropped => {
                ("stockade_telemetry_dropped_total", "counter", "Calls that did not reach telemetry")
            }
            Number::RetentionFiles => ("stockade_retention_files_total", "counter", "Files deleted for their age"),
            Number::RetentionBytes => ("stockade_retention_bytes_total", "counter", "Bytes deleted for their age"),
            Number::Cleanups => ("stockade_cleanups_total", "counter", "Leftovers of earlier brokers removed"),
            Number::ProcessesRunning => ("stockade_processes_running", "gauge", "Processes running"),
            Number::OutputStored => ("stockade_output_stored_bytes", "gauge", "Bytes of output kept"),
        }
    }
}

impl Metrics {
    /// Counts one call; `None` is success.
    pub fn count(&self, tool: &str, failure: Option<Code>, duration: Duration) {
        let index = TOOLS.iter().position(|name| *name == tool).unwrap_or(TOOLS.len() - 1);
        let tool = &self.tools[index];
        let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let bucket = BUCKETS.iter().position(|(bound, _)| us <= *bound).unwrap_or(BUCKETS.len());
        tool.outcomes[failure.map_or(0, |code| code as usize + 1)].fetch_add(1, Ordering::Relaxed);
        tool.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        tool.total_us.fetch_add(us, Ordering::Relaxed);
    }

    pub fn add(&self, number: Number, amount: u64) {
        self.numbers[number as usize].fetch_add(amount, Ordering::Relaxed);
    }

    pub fn set(&self, number: Number, value: u64) {
        self.numbers[number as usize].store(value, Ordering::Relaxed);
    }

    /// Processes running in each session; the sum is told by itself.
    pub fn set_sessions<'a>(&self, sessions: impl IntoIterator<Item = (&'a str, u64)>) {
        let (mut told, mut others, mut total) = (Vec::new(), 0, 0);
        for (name, running) in sessions {
            total += running;
            if told.len() < MOST_SESSIONS {
                told.push((name.chars().take(LONGEST_SESSION).collect(), running));
            } else {
                others += running;
            }
        }
        if others > 0 {
            told.push((String::new(), others));
        }
        *self.sessions.lock().unwrap_or_else(PoisonError::into_inner) = told;
        self.set(Number::ProcessesRunning, total);
    }

    /// Everything, as a scraper reads it.
    pub fn render(&self) -> String {
        let mut text = String::with_capacity(8192);
        self.render_calls(&mut text);
        self.render_durations(&mut text);
        for number in Number::ALL {
            let (name, kind, help) = number.told();
            head(&mut text, name, kind, help);
            let _ = writeln!(text, "{name} {}", self.numbers[number as usize].load(Ordering::Relaxed));
        }
        self.render_sessions(&mut text);
        text
    }

    fn render_calls(&self, text: &mut String) {
        head(text, "stockade_calls_total", "counter", "Tool calls by operation and outcome");
        for (tool, name) in self.tools.iter().zip(TOOLS) {
            for (outcome, count) in tool.outcomes.iter().enumerate() {
                let count = count.load(Ordering::Relaxed);
                if count > 0 {
                    let code =
                        outcome.checked_sub(1).and_then(|index| CODES.get(index)).map_or("OK", |code| code.name());
                    let _ = writeln!(text, "stockade_calls_total{{tool=\"{name}\",code=\"{code}\"}} {count}");
                }
            }
        }
    }

    fn render_durations(&self, text: &mut String) {
        let metric = "stockade_call_duration_seconds";
        head(text, metric, "histogram", "How long tool calls took");
        for (tool, name) in self.tools.iter().zip(TOOLS) {
            let counts = tool.buckets.each_ref().map(|count| count.load(Ordering::Relaxed));
            if counts.iter().all(|count| *count == 0) {
                continue;
            }
            let mut below = 0;
            for (count, bound) in counts.iter().zip(BUCKETS.iter().map(|(_, bound)| *bound).chain(["+Inf"])) {
                below += count;
                let _ = writeln!(text, "{metric}_bucket{{tool=\"{name}\",le=\"{bound}\"}} {below}");
            }
            let seconds = Duration::from_micros(tool.total_us.load(Ordering::Relaxed)).as_secs_f64();
            let _ = writeln!(text, "{metric}_sum{{tool=\"{name}\"}} {seconds}");
            let _ = writeln!(text, "{metric}_count{{tool=\"{name}\"}} {below}");
        }
    }

    fn render_sessions(&self, text: &mut String) {
        head(text, "stockade_session_processes", "gauge", "Processes running by session; empty: all others together");
        for (session, running) in &*self.sessions.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = writeln!(text, "stockade_session_processes{{session=\"{}\"}} {running}", escaped(session));
        }
    }
}

/// In the order of their numbers.
const CODES: [Code; OUTCOMES - 1] = [
    Code::InvalidArgument,
    Code::FeatureDisabled,
    Code::CommandNotAllowed,
    Code::PathNotAllowed,
    Code::ProcLimitExceeded,
    Code::LimitExceeded,
    Code::ProcessNotFound,
    Code::ProcessNotRunning,
    Code::SessionNotFound,
    Code::NotFound,
    Code::AlreadyExists,
    Code::NotAFile,
    Code::TooLarge,
    Code::Conflict,
    Code::EditNoMatch,
    Code::SearchNotFound,
    Code::Timeout,
    Code::Canceled,
    Code::StopFailed,
    Code::SpawnFailed,
    Code::SandboxUnavailable,
    Code::IoError,
    Code::Internal,
];

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// As the format wants label values; other control characters have no place in a name.
fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            c if c.is_control() => text.push('\u{fffd}'),
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
