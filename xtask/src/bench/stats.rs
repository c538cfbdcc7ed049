//! Samples, quantiles, and the table people read: each row with its ratio to the first.

use std::fmt;
use std::time::Duration;

#[derive(Clone, Debug, Default)]
pub struct Samples {
    times: Vec<Duration>,
}

impl Samples {
    pub fn add(&mut self, time: Duration) {
        self.times.push(time);
    }

    /// The sample below which the given share of all samples lies; zero when there are none.
    pub fn quantile(&mut self, share: f64) -> Duration {
        self.times.sort_unstable();
        let last = self.times.len().saturating_sub(1);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "an index below the number of samples"
        )]
        let at = (last as f64 * share).round() as usize;
        self.times.get(at).copied().unwrap_or_default()
    }
}

/// What was found out about one contender.
#[derive(Clone, Debug)]
pub enum Row {
    Latency { name: &'static str, median: Duration, p90: Duration },
    Throughput { name: &'static str, per_second: f64 },
}

#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Row>,
}

impl Table {
    pub fn new(rows: Vec<Row>) -> Table {
        Table { rows }
    }

    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub fn print(&self) {
        print!("{self}");
    }
}

impl Row {
    /// The number that ratios are made of.
    fn value(&self) -> f64 {
        match self {
            Row::Latency { median, .. } => median.as_secs_f64(),
            Row::Throughput { per_second, .. } => *per_second,
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rows.first() {
            Some(Row::Latency { .. }) => {
                writeln!(f, "| start | median µs | p90 µs | × plain |\n|---|---:|---:|---:|")?;
            }
            Some(Row::Throughput { .. }) => {
                writeln!(f, "| start | per second | × plain |\n|---|---:|---:|")?;
            }
            None => return writeln!(f, "nothing was measured"),
        }
        let first = self.rows[0].value();
        for row in &self.rows {
            let ratio = row.value() / first;
            match row {
                Row::Latency { name, median, p90 } => {
                    let (median, p90) = (median.as_micros(), p90.as_micros());
                    writeln!(f, "| {name} | {median} | {p90} | {ratio:.2} |")?;
                }
                Row::Throughput { name, per_second } => {
                    writeln!(f, "| {name} | {per_second:.0} | {ratio:.2} |")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Row, Samples, Table};
    use std::time::Duration;

    #[test]
    fn quantiles_are_samples() {
        let mut samples = Samples::default();
        assert_eq!(samples.quantile(0.5), Duration::ZERO);
        for time in [30, 10, 50, 20, 40] {
            samples.add(Duration::from_micros(time));
        }
        assert_eq!(samples.quantile(0.5), Duration::from_micros(30));
        assert_eq!(samples.quantile(0.9), Duration::from_micros(50));
    }

    #[test]
    fn ratios_are_to_the_first_row() {
        let row = |name, median| Row::Latency {
            name,
            median: Duration::from_micros(median),
            p90: Duration::from_micros(2 * median),
        };
        let table = Table::new(vec![row("plain", 1000), row("ours", 1100)]);
        let text = table.to_string();
        assert!(text.ends_with("| plain | 1000 | 2000 | 1.00 |\n| ours | 1100 | 2200 | 1.10 |\n"));
    }
}
