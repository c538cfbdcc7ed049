//! `stockade audit`: read an agent's audit log, and hold it to its hashes.
//!
//! Both only read, whether a broker is writing or not. `verify` ends with 0 when every line is what it was, with 1
//! when one is not.

use super::say::Complaint;
use crate::broker::audit::{files, verify};
use crate::policy::Operator;
use clap::{Args, Subcommand};
use serde_json::Value;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The log is whole.
const WHOLE: u8 = 0;
/// Lines were changed, removed, put in or put elsewhere.
const BROKEN: u8 = 1;

#[derive(Debug, Clone, Subcommand)]
pub enum AuditCommand {
    /// Show the last calls
    Show {
        #[command(flatten)]
        which: Which,
        /// How many
        #[arg(long, value_name = "N", default_value_t = 20)]
        last: usize,
        /// The records themselves, one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Find lines that were changed, removed, put in or put elsewhere; exit code 1 if there are any
    Verify {
        #[command(flatten)]
        which: Which,
    },
}

#[derive(Debug, Clone, Args)]
#[group(multiple = false)]
pub struct Which {
    /// Whose log [default: the only one there is]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// One file by itself, for example a copy
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

enum Place {
    Directory(PathBuf),
    File(PathBuf),
}

pub fn audit(command: &AuditCommand) -> Result<u8, Complaint> {
    let mut out = io::stdout().lock();
    let done = match command {
        AuditCommand::Show { which, last, json } => {
            let lines = last_lines(&which.place()?, *last)?;
            if *json { show_json(&mut out, &lines) } else { show_table(&mut out, &lines) }.map(|()| WHOLE)
        }
        AuditCommand::Verify { which } => {
            let report = match which.place()? {
                Place::Directory(directory) => verify::directory(&directory),
                Place::File(file) => verify::file(&file),
            };
            show_report(&mut out, &report?)
        }
    };
    match done {
        // Whoever reads may have seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(WHOLE),
        done => Ok(done?),
    }
}

impl Which {
    fn place(&self) -> Result<Place, Complaint> {
        if let Some(file) = &self.file {
            return match files::open_to_read(file) {
                Ok(_) => Ok(Place::File(file.clone())),
                Err(error) => Err(Complaint::new(format!("`{}`: {error}", file.display()))),
            };
        }
        let mut logs = logs()?;
        let names = || logs.iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let known = if logs.is_empty() { "there is none yet".into() } else { format!("there are logs of {}", names()) };
        let chosen = match &self.agent {
            Some(agent) => logs.iter().position(|(name, _)| name == agent),
            None if logs.len() == 1 => Some(0),
            None => return Err(Complaint::new(format!("whose log? name one with `--agent`; {known}"))),
        };
        let missing = || format!("no audit log of `{}`; {known}", self.agent.as_deref().unwrap_or_default());
        let chosen = chosen.ok_or_else(|| Complaint::new(missing()))?;
        Ok(Place::Directory(logs.swap_remove(chosen).1))
    }
}

/// Every agent with a log, by name, and where it lies.
fn logs() -> Result<Vec<(String, PathBuf)>, Complaint> {
    let operator = Operator::current()?;
    let mut states = operator.states;
    // Root keeps its state in the system's place; others where the environment says, then in their home.
    states.reverse();
    if operator.uid != 0 {
        states.rotate_left(1);
    }
    let mut found: Vec<(String, PathBuf)> = Vec::new();
    for state in states {
        for entry in std::fs::read_dir(state).into_iter().flatten().flatten() {
            let (name, path) = (entry.file_name().to_string_lossy().into_owned(), entry.path());
            let is_log = [files::CURRENT, files::HEAD].iter().any(|file| path.join(file).exists());
            if is_log && !found.iter().any(|(known, _)| *known == name) {
                found.push((name, path));
            }
        }
    }
    found.sort();
    Ok(found)
}

fn files_of(place: &Place) -> io::Result<Vec<PathBuf>> {
    match place {
        Place::File(file) => Ok(vec![file.clone()]),
        Place::Directory(directory) => {
            let current = directory.join(files::CURRENT);
            Ok(files::rotated(directory)?.into_iter().chain(current.exists().then_some(current)).collect())
        }
    }
}

/// The last lines, oldest first.
fn last_lines(place: &Place, count: usize) -> io::Result<Vec<String>> {
    let mut lines: Vec<String> = Vec::new();
    for file in files_of(place)?.iter().rev() {
        if lines.len() >= count {
            break;
        }
        let text = read(file)?;
        lines.extend(text.lines().rev().take(count - lines.len()).map(str::to_owned));
    }
    lines.reverse();
    Ok(lines)
}

fn read(file: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    files::open_to_read(file)?.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// As they stand, but for characters that a terminal would obey: inside JSON these have another spelling.
fn show_json(out: &mut impl Write, lines: &[String]) -> io::Result<()> {
    for line in lines {
        let spell = |c: char| if is_obeyed(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
        writeln!(out, "{}", line.chars().map(spell).collect::<String>())?;
    }
    Ok(())
}

fn show_table(out: &mut impl Write, lines: &[String]) -> io::Result<()> {
    writeln!(out, "{:<24} {:>6} {:<13} {:<19} {:>9} {:<10} WHAT", "TIME", "SEQ", "TOOL", "DECISION", "MS", "EXIT")?;
    for line in lines {
        let Ok(record) = serde_json::from_str::<Value>(line) else {
            writeln!(out, "{:<24} {:>6} not a line of this log", "-", "-")?;
            continue;
        };
        let text = |name: &str| one_line(record[name].as_str().unwrap_or("-"));
        let (seq, kind) = (record["seq"].as_u64().unwrap_or(0), text("kind"));
        if kind != "call" {
            writeln!(out, "{:<24} {seq:>6} ({kind}) {}", text("time"), marker_words(&record))?;
            continue;
        }
        let ms = record["duration_us"].as_u64().unwrap_or(0) as f64 / 1000.0;
        let (tool, decision) = (text("tool"), text("decision"));
        let (exit, what) = (exit_words(&record["exit"]), subject_words(&record));
        writeln!(out, "{:<24} {seq:>6} {tool:<13} {decision:<19} {ms:>9.1} {exit:<10} {what}", text("time"))?;
    }
    Ok(())
}

fn marker_words(record: &Value) -> String {
    let text = |name: &str| one_line(record[name].as_str().unwrap_or("?"));
    match record["kind"].as_str() {
        Some("torn") => "the broker died while it wrote the line before".into(),
        Some("gap") => format!("not written since {}: {}", text("since"), text("why")),
        Some("lost") => format!("{} calls since {} were not written", record["count"], text("since")),
        Some("removed") => format!("{} was deleted for its age", text("file")),
        _ => one_line(&record.to_string()),
    }
}

fn exit_words(exit: &Value) -> String {
    let reason = exit["reason"].as_str().unwrap_or("-");
    match (exit["code"].as_i64(), exit["signal"].as_i64()) {
        (Some(code), _) if reason == "exit" => code.to_string(),
        (_, Some(signal)) if reason == "signal" => format!("signal {signal}"),
        _ => one_line(reason),
    }
}

fn subject_words(record: &Value) -> String {
    let listed = |name: &str| {
        let words = record[name].as_array()?.iter().filter_map(Value::as_str);
        Some(words.map(quoted).collect::<Vec<_>>().join(" "))
    };
    let command = || record["command"].as_str().map(str::to_owned);
    let process = || record["proc_id"].as_str().map(str::to_owned);
    let words = listed("argv").or_else(command).or_else(|| listed("paths")).or_else(process);
    one_line(&words.unwrap_or_default())
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./:=,+@%<>".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

fn show_report(out: &mut impl Write, report: &verify::Report) -> io::Result<u8> {
    for finding in &report.findings {
        writeln!(out, "{}", one_line(&finding.to_string()))?;
    }
    if report.more_findings > 0 {
        writeln!(out, "and {} more", report.more_findings)?;
    }
    let verify::Report { files, lines, calls, lost, torn, first_seq, last_seq, .. } = report;
    let counts = format!("{lines} lines in {files} files, seq {first_seq} to {last_seq}, {calls} calls");
    let own_words = format!("{lost} lost and {torn} torn by the log's own account");
    let verdict = if report.is_intact() { "intact" } else { "BROKEN" };
    writeln!(out, "{verdict}: {counts}; {own_words}")?;
    Ok(if report.is_intact() { WHOLE } else { BROKEN })
}

/// What agents wrote, on one line and without anything a terminal would obey.
fn one_line(text: &str) -> String {
    let one = |c: char| if is_obeyed(c) { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(one).collect()
}

/// Control characters, and those that turn the direction of text.
fn is_obeyed(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
