//! Runs staged test binaries under one identity and counts what libtest says.
//!
//! A test that cannot run prints a line `skipped: why`; it is counted as skipped, not as passed,
//! and in CI it is a failure (tests see `CI`). A binary that dies without its closing line is one failed test.

use crate::shell::{About, Result};
use std::fmt;
use std::io::{BufRead, BufReader};
use std::ops::AddAssign;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Longer than any healthy test binary, so that a hang ends with a message and not with CI's own limit.
pub const BINARY_LIMIT_SECONDS: u32 = 900;

/// How often a silent binary is looked at.
const SILENCE: Duration = Duration::from_millis(200);

/// Tests in parallel: enough to meet each other, few enough that limits measured in time hold on two cores.
pub const TEST_THREADS: &str = "2";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub passed: u32,
    pub failed: u32,
    pub skipped: u32,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { passed, failed, skipped } = self;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

impl Tally {
    /// Reads back what `Display` wrote.
    pub fn parse(text: &str) -> Option<Tally> {
        let mut numbers = text.split(", ").zip(["passed", "failed", "skipped"]);
        let mut next = || {
            let (part, word) = numbers.next()?;
            part.strip_suffix(word)?.trim().parse().ok()
        };
        Some(Tally { passed: next()?, failed: next()?, skipped: next()? })
    }
}

/// Runs one libtest binary (`command` names it and its identity) and shows its output.
pub fn run_binary(name: &str, command: &mut Command, filters: &[String]) -> Result<Tally> {
    command.args(["--test-threads", TEST_THREADS, "--show-output"]);
    command.args(filters);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().about(name)?;
    let out = child.stdout.take().ok_or("no output to read")?;
    let lines = follow(out);
    let mut listener = Listener::default();
    let mut status = None;
    loop {
        match lines.recv_timeout(SILENCE) {
            Ok(line) => {
                if let Some(shown) = listener.hear(&line) {
                    println!("{shown}");
                }
            }
            Err(RecvTimeoutError::Disconnected) => break,
            // An orphan of a test may hold the pipe open for ever: the binary's end is what counts.
            Err(RecvTimeoutError::Timeout) if status.is_some() => break,
            Err(RecvTimeoutError::Timeout) => status = child.try_wait().about(name)?,
        }
    }
    let status = child.wait().about(name)?;
    let mut tally = listener.tally;
    if !listener.closed {
        println!("{name}: ended with {status} before its results");
        tally.failed += 1;
    } else if !status.success() && tally.failed == 0 {
        println!("{name}: ended with {status}");
        tally.failed += 1;
    }
    Ok(tally)
}

/// Reads lines on a thread of its own, so that the reader can also watch the clock.
pub fn follow(out: ChildStdout) -> Receiver<String> {
    let (send, lines) = channel();
    thread::spawn(move || {
        let mut out = BufReader::new(out);
        let mut line = Vec::new();
        while out.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            let text = String::from_utf8_lossy(&line);
            if send.send(text.trim_end().to_owned()).is_err() {
                return;
            }
            line.clear();
        }
    });
    lines
}

/// What has been read of one binary's output.
#[derive(Debug, Default)]
struct Listener {
    tally: Tally,
    in_successes: bool,
    /// The test being read has already counted itself out.
    said_skipped: bool,
    closed: bool,
}

impl Listener {
    /// Takes a line and gives back what to show of it: the output of passed tests is noise, but for skips.
    fn hear<'line>(&mut self, line: &'line str) -> Option<&'line str> {
        if let Some(result) = line.strip_prefix("test result: ") {
            self.close(result);
            self.in_successes = false;
            return Some(line);
        }
        match line {
            "successes:" => self.in_successes = true,
            "failures:" => self.in_successes = false,
            _ => {}
        }
        if !self.in_successes {
            return (!line.is_empty()).then_some(line);
        }
        if line.starts_with("---- ") {
            self.said_skipped = false;
        }
        if line.starts_with("skipped: ") {
            self.tally.skipped += u32::from(!self.said_skipped);
            self.said_skipped = true;
            return Some(line);
        }
        None
    }

    fn close(&mut self, result: &str) {
        let count = |word: &str| {
            let mut parts = result.split([';', '.']).map(str::trim);
            let number = parts.find_map(|part| part.strip_suffix(word)?.trim().parse::<u32>().ok());
            number.unwrap_or(0)
        };
        let unable = self.tally.skipped;
        self.tally.passed = count("passed").saturating_sub(unable);
        self.tally.failed = count("failed");
        self.tally.skipped = unable + count("ignored");
        self.closed = true;
    }
}

#[cfg(test)]
mod tests {
    use super::{Listener, Tally};

    fn hear(text: &str) -> (Tally, Vec<&str>) {
        let mut listener = Listener::default();
        let shown = text.lines().filter_map(|line| listener.hear(line)).collect();
        (listener.tally, shown)
    }

    #[test]
    fn a_skip_is_not_a_pass() {
        let (tally, shown) = hear(
            "running 3 tests\ntest a ... ok\n\nsuccesses:\n\n---- a stdout ----\nchatter\nskipped: no gdb\n\n\
             successes:\n    a\n    b\n\ntest result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 4 filtered out; finished in 0.00s",
        );
        assert_eq!(tally.to_string(), "1 passed, 0 failed, 2 skipped");
        assert!(shown.contains(&"skipped: no gdb") && !shown.contains(&"chatter"));
    }

    #[test]
    fn output_of_a_failed_test_is_shown() {
        let (tally, shown) = hear(
            "successes:\n    a\n\nfailures:\n\n---- b stdout ----\nwhy\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured",
        );
        assert_eq!(tally, Tally { passed: 1, failed: 1, skipped: 0 });
        assert!(shown.contains(&"why"));
    }

    #[test]
    fn a_tally_reads_back() {
        let tally = Tally { passed: 12, failed: 0, skipped: 3 };
        assert_eq!(Tally::parse(&tally.to_string()), Some(tally));
        assert_eq!(Tally::parse("12 passed"), None);
    }
}
