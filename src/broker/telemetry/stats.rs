//! `usage_stats`: one pass over the calls that are kept.

use super::store::Store;
use crate::broker::audit::time;
use rusqlite::Row;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::time::SystemTime;

/// Commands that are told.
const TOP: usize = 20;

/// The usual rough measure of English text and code.
const BYTES_PER_TOKEN: i64 = 4;

#[derive(Default)]
struct Figures {
    calls: u64,
    failures: u64,
    bytes_in: i64,
    bytes_out: i64,
    durations_us: Vec<i64>,
}

#[derive(Default)]
struct Tally {
    all: Figures,
    tools: BTreeMap<String, Figures>,
    failures: BTreeMap<String, u64>,
    programs: HashMap<String, u64>,
    started: u64,
}

impl Store {
    pub(super) fn usage_stats(&mut self, since: Option<SystemTime>, dropped: u64) -> rusqlite::Result<Value> {
        let from = since.map_or(0, time::milliseconds);
        let mut query = self.connection.prepare_cached(
            "SELECT tool, decision, duration_us, bytes_in, bytes_out, program, proc_id IS NOT NULL
             FROM calls WHERE at_ms >= ?1",
        )?;
        let mut rows = query.query([from])?;
        let mut tally = Tally::default();
        while let Some(row) = rows.next()? {
            tally.add(row)?;
        }
        Ok(tally.tell(&self.agent, since, dropped))
    }
}

impl Tally {
    fn add(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        let (tool, decision): (String, String) = (row.get(0)?, row.get(1)?);
        let (duration, bytes_in, bytes_out): (i64, i64, i64) = (row.get(2)?, row.get(3)?, row.get(4)?);
        let has_process: bool = row.get(6)?;
        let failed = decision != "allowed";
        self.started += u64::from(has_process && !failed && matches!(tool.as_str(), "run" | "proc_start"));
        for figures in [&mut self.all, self.tools.entry(tool).or_default()] {
            figures.calls += 1;
            figures.failures += u64::from(failed);
            figures.bytes_in = figures.bytes_in.saturating_add(bytes_in);
            figures.bytes_out = figures.bytes_out.saturating_add(bytes_out);
            figures.durations_us.push(duration);
        }
        if failed {
            *self.failures.entry(decision).or_default() += 1;
        }
        if let Some(program) = row.get::<_, Option<String>>(5)? {
            *self.programs.entry(program).or_default() += 1;
        }
        Ok(())
    }

    fn tell(self, agent: &str, since: Option<SystemTime>, dropped: u64) -> Value {
        let tools: Vec<Value> = self
            .tools
            .into_iter()
            .map(|(tool, figures)| {
                let mut told = figures.tell();
                told["tool"] = tool.into();
                told
            })
            .collect();
        let failures: Vec<Value> =
            self.failures.into_iter().map(|(code, count)| json!({"code": code, "count": count})).collect();
        let mut programs: Vec<(String, u64)> = self.programs.into_iter().collect();
        programs.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let top: Vec<Value> = programs
            .into_iter()
            .take(TOP)
            .map(|(program, count)| json!({"program": program, "count": count}))
            .collect();
        let mut told = self.all.tell();
        told["agent"] = agent.into();
        told["tools"] = tools.into();
        told["failures_by_code"] = failures.into();
        told["top_commands"] = top.into();
        told["processes_started"] = self.started.into();
        told["dropped_records"] = dropped.into();
        if let Some(since) = since {
            told["since"] = time::rfc3339(since).into();
        }
        told
    }
}

impl Figures {
    fn tell(mut self) -> Value {
        self.durations_us.sort_unstable();
        let total: i64 = self.durations_us.iter().fold(0, |sum, one| sum.saturating_add(*one));
        json!({
            "calls": self.calls,
            "failures": self.failures,
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "tokens_in_estimate": self.bytes_in / BYTES_PER_TOKEN,
            "tokens_out_estimate": self.bytes_out / BYTES_PER_TOKEN,
            "duration_total_ms": total / 1000,
            // Many calls take less than a millisecond.
            "duration_p50_us": percentile(&self.durations_us, 50),
            "duration_p95_us": percentile(&self.durations_us, 95),
        })
    }
}

/// The smallest that is not exceeded by so many percent; zero of nothing.
fn percentile(sorted: &[i64], percent: usize) -> i64 {
    let rank = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(rank).copied().unwrap_or(0)
}
