//! What to say when a text is not there: the part of the file most like it, and how they differ.
//!
//! First the text without carriage returns is looked for, then without any white space; then the lines it shares with
//! the file vote for a place; then the file's line most like its longest one is taken. Time is bounded.

use super::diff;
use super::lines;
use crate::worker::failure::{Code, Failure};
use memchr::memmem;
use serde_json::json;
use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

/// For the last and slowest way of looking.
const PATIENCE: Duration = Duration::from_millis(200);

/// Lines of the text that vote, and places each may vote for.
const VOTERS: usize = 400;
const VOTES: usize = 8;

/// Bytes of a line that are compared.
const COMPARED: usize = 512;

/// Below this, two texts have little to do with each other.
const ALIKE: f64 = 0.4;

const SHOWN_TEXT: usize = 2 << 10;
const SHOWN_DIFF: usize = 4 << 10;

/// A part of the file, in lines from 0, and in what it differs from the text.
struct Near {
    lines: Range<usize>,
    differs_in: &'static str,
}

pub fn no_match(words: &str, text: &[u8], wanted: &[u8]) -> Failure {
    let rows = lines::split(text);
    let Some(near) = find(text, &rows, wanted) else {
        let message = format!("{words} in the file, nor anything like it; read the file again");
        return Failure::new(Code::EditNoMatch, message).with("occurrences", 0);
    };
    let line = near.lines.start + 1;
    let found = rows[near.lines].concat();
    let similarity = (likeness(&Pairs::of(wanted), &found) * 100.0).round() / 100.0;
    let message = match near.differs_in {
        "text" => format!("{words} in the file; the nearest is at line {line}"),
        differs => format!("{words} in the file; line {line} differs only in {differs}"),
    };
    let (shown, _) = diff::unified(wanted, &found, None, SHOWN_DIFF);
    let nearest = json!({
        "line": line,
        "text": diff::shorten(&String::from_utf8_lossy(&found), SHOWN_TEXT),
        "differs_in": near.differs_in,
        "similarity": similarity,
        "diff": shown,
    });
    Failure::new(Code::EditNoMatch, message).with("occurrences", 0).with("nearest", nearest)
}

fn find(text: &[u8], rows: &[&[u8]], wanted: &[u8]) -> Option<Near> {
    let without = |dropped: fn(&u8) -> bool, differs_in| {
        let bytes = without(text, wanted, dropped)?;
        Some(Near { lines: rows_of(rows, &bytes), differs_in })
    };
    let height = lines::split(wanted).len().max(1);
    let window = |start: usize| Near { lines: start..(start + height).min(rows.len()), differs_in: "text" };
    without(|byte| *byte == b'\r', "line endings")
        .or_else(|| without(u8::is_ascii_whitespace, "white space"))
        .or_else(|| elected(rows, wanted).map(window))
        .or_else(|| most_alike(rows, wanted).map(window))
}

/// Where the wanted bytes stand if some bytes are dropped from both.
fn without(text: &[u8], wanted: &[u8], dropped: fn(&u8) -> bool) -> Option<Range<usize>> {
    let strip = |bytes: &[u8]| -> Vec<u8> { bytes.iter().copied().filter(|byte| !dropped(byte)).collect() };
    let needle = strip(wanted);
    let start = (!needle.is_empty()).then(|| memmem::find(&strip(text), &needle)).flatten()?;
    let mut kept = text.iter().enumerate().filter(|(_, byte)| !dropped(byte)).map(|(at, _)| at);
    let first = kept.nth(start)?;
    let last = if needle.len() == 1 { first } else { kept.nth(needle.len() - 2)? };
    Some(first..last + 1)
}

fn rows_of(rows: &[&[u8]], bytes: &Range<usize>) -> Range<usize> {
    let mut end = 0;
    let ends: Vec<usize> = rows
        .iter()
        .map(|row| {
            end += row.len();
            end
        })
        .collect();
    let row = |at: usize| ends.partition_point(|end| *end <= at);
    row(bytes.start)..row(bytes.end - 1) + 1
}

/// The first line of the place that most lines of the text are found at.
fn elected(rows: &[&[u8]], wanted: &[u8]) -> Option<usize> {
    let mut voters: HashMap<&[u8], Vec<usize>> = HashMap::new();
    for (index, line) in lines::split(wanted).into_iter().take(VOTERS).enumerate() {
        let line = line.trim_ascii();
        // Lone braces and the like are everywhere.
        if line.len() > 2 {
            voters.entry(line).or_default().push(index);
        }
    }
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (number, row) in rows.iter().enumerate() {
        for index in voters.get(row.trim_ascii()).into_iter().flatten().take(VOTES) {
            *votes.entry(number.saturating_sub(*index)).or_default() += row.len();
        }
    }
    let best = votes.into_iter().max_by_key(|(start, weight)| (*weight, usize::MAX - start));
    best.map(|(start, _)| start)
}

fn most_alike(rows: &[&[u8]], wanted: &[u8]) -> Option<usize> {
    let lines = lines::split(wanted);
    let (index, longest) = lines.iter().enumerate().max_by_key(|(_, line)| line.trim_ascii().len())?;
    let pairs = Pairs::of(longest.trim_ascii());
    let until = Instant::now() + PATIENCE;
    let mut best = (ALIKE, None);
    for (number, row) in rows.iter().enumerate() {
        if number % 256 == 0 && Instant::now() > until {
            break;
        }
        let alike = likeness(&pairs, row.trim_ascii());
        if alike > best.0 {
            best = (alike, Some(number));
        }
    }
    best.1.map(|number: usize| number.saturating_sub(index))
}

/// Which pairs of neighbouring bytes a text has, and how many.
struct Pairs {
    counts: Vec<u16>,
    total: usize,
}

impl Pairs {
    fn of(text: &[u8]) -> Pairs {
        let mut pairs = Pairs { counts: vec![0; 1 << 16], total: 0 };
        for pair in text[..text.len().min(COMPARED)].windows(2) {
            pairs.counts[slot(pair)] += 1;
            pairs.total += 1;
        }
        pairs
    }
}

fn slot(pair: &[u8]) -> usize {
    usize::from(pair[0]) << 8 | usize::from(pair[1])
}

/// From 0 to 1: pairs that both have (Dice).
fn likeness(pairs: &Pairs, text: &[u8]) -> f64 {
    let text = &text[..text.len().min(COMPARED)];
    let mut seen: HashMap<usize, u16> = HashMap::new();
    let mut shared = 0_usize;
    for pair in text.windows(2).map(slot).filter(|slot| pairs.counts[*slot] > 0) {
        let times = seen.entry(pair).or_default();
        *times += 1;
        shared += usize::from(*times <= pairs.counts[pair]);
    }
    let total = pairs.total + text.len().saturating_sub(1);
    if total == 0 { 0.0 } else { 2.0 * shared as f64 / total as f64 }
}
