//! `stockade doctor`: what this machine can enforce, for people and as JSON.
//!
//! Renders what `host` found and what a live trial showed; it probes nothing itself.

use std::io::{self, Write};

use serde::Serialize;

use crate::host::{Finding, State};

/// The walls that the default policy demands; `identity` may be limited.
const REQUIRED: [&str; 5] = ["user namespaces", "mounts", "landlock", "seccomp", "cgroups"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Text,
    Json,
}

/// What happened when a cell was really made and a command run in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum Trial {
    Passed { how: String },
    Failed { what: String, remedy: Option<String> },
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    ok: bool,
    walls: &'a [Finding],
    #[serde(skip_serializing_if = "Option::is_none")]
    trial: Option<&'a Trial>,
}

/// Writes the report and returns the exit code: 0 when everything that the default policy
/// demands can be enforced, else 1.
pub fn report(findings: &[Finding], trial: Option<&Trial>, format: Format, out: &mut impl Write) -> io::Result<u8> {
    let ok = holds(findings, trial);
    match format {
        Format::Text => write_text(findings, trial, out)?,
        Format::Json => {
            serde_json::to_writer_pretty(&mut *out, &Report { ok, walls: findings, trial })?;
            writeln!(out)?;
        }
    }
    Ok(u8::from(!ok))
}

fn holds(findings: &[Finding], trial: Option<&Trial>) -> bool {
    let lacking =
        |finding: &Finding| REQUIRED.contains(&finding.wall) && matches!(finding.state, State::Missing { .. });
    !findings.iter().any(lacking) && !matches!(trial, Some(Trial::Failed { .. }))
}

/// One line of the table: wall, state, how.
struct Row<'a> {
    wall: &'a str,
    state: &'static str,
    how: String,
    remedy: Option<&'a str>,
}

fn write_text(findings: &[Finding], trial: Option<&Trial>, out: &mut impl Write) -> io::Result<()> {
    let rows: Vec<Row<'_>> = findings.iter().map(finding_row).chain(trial.map(trial_row)).collect();
    let width = rows.iter().map(|row| row.wall.len()).max().unwrap_or(0);
    for row in &rows {
        writeln!(out, "{:width$}  {:8}  {}", row.wall, row.state, row.how)?;
    }
    for row in &rows {
        let Some(remedy) = row.remedy else { continue };
        let mut lines = remedy.lines();
        writeln!(out, "hint: {}: {}", row.wall, lines.next().unwrap_or(""))?;
        for line in lines {
            writeln!(out, "      {line}")?;
        }
    }
    Ok(())
}

fn finding_row(finding: &Finding) -> Row<'_> {
    let (state, how, remedy) = match &finding.state {
        State::Enforced { how } => ("enforced", how.clone(), None),
        State::Limited { how, what, remedy } => ("limited", format!("{how}; {what}"), Some(remedy.as_str())),
        State::Missing { what, remedy } => ("missing", what.clone(), Some(remedy.as_str())),
    };
    Row { wall: finding.wall, state, how, remedy }
}

fn trial_row(trial: &Trial) -> Row<'_> {
    match trial {
        Trial::Passed { how } => Row { wall: "trial", state: "passed", how: how.clone(), remedy: None },
        Trial::Failed { what, remedy } => {
            Row { wall: "trial", state: "failed", how: what.clone(), remedy: remedy.as_deref() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(findings: &[Finding], trial: Option<&Trial>) -> (String, u8) {
        let mut out = Vec::new();
        let code = report(findings, trial, Format::Text, &mut out).unwrap();
        (String::from_utf8(out).unwrap(), code)
    }

    fn enforced(wall: &'static str) -> Finding {
        Finding { wall, state: State::Enforced { how: "yes".to_owned() } }
    }

    #[test]
    fn walls_are_aligned_and_remedies_follow_as_hints() {
        let missing = State::Missing { what: "it is not".to_owned(), remedy: "do this\nthen that".to_owned() };
        let (text, code) = text(&[enforced("user namespaces"), Finding { wall: "cgroups", state: missing }], None);
        let expect = "user namespaces  enforced  yes\n\
                      cgroups          missing   it is not\n\
                      hint: cgroups: do this\n      then that\n";
        assert_eq!((text.as_str(), code), (expect, 1));
    }

    #[test]
    fn the_exit_code_follows_required_walls_and_the_trial() {
        let limited = State::Limited { how: "a".to_owned(), what: "b".to_owned(), remedy: "c".to_owned() };
        let findings = [enforced("seccomp"), Finding { wall: "identity", state: limited }];
        assert_eq!(text(&findings, None).1, 0);
        let failed = Trial::Failed { what: "mount: EPERM".to_owned(), remedy: None };
        assert_eq!(text(&findings, Some(&failed)).1, 1);
    }

    #[test]
    fn json_carries_the_verdict_and_every_wall() {
        let mut out = Vec::new();
        let trial = Trial::Passed { how: "2 ms".to_owned() };
        report(&[enforced("seccomp")], Some(&trial), Format::Json, &mut out).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(value["ok"], true);
        assert_eq!(value["walls"][0]["wall"], "seccomp");
        assert_eq!(value["trial"]["state"], "passed");
    }
}
