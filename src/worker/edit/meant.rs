//! Edits as written → edits as meant: each is exactly one of three kinds.

use crate::worker::ask::Change;
use crate::worker::failure::{Failure, Result};

/// Edits in one call.
const EDITS: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meant<'a> {
    Text { old: &'a str, new: &'a str, count: u64 },
    Lines(Lines<'a>),
    Anchor { anchor: &'a str, offset: i64, new: &'a str },
}

/// Lines `start` to `end` become `new`; `end == start - 1` removes none and puts `new` before `start`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lines<'a> {
    pub start: u64,
    pub end: u64,
    pub new: &'a str,
}

impl<'a> Meant<'a> {
    pub fn lines(&self) -> Option<Lines<'a>> {
        match self {
            Meant::Lines(lines) => Some(*lines),
            Meant::Text { .. } | Meant::Anchor { .. } => None,
        }
    }
}

pub fn meant(edits: &[Change]) -> Result<Vec<Meant<'_>>> {
    if !(1..=EDITS).contains(&edits.len()) {
        return Err(Failure::invalid(format!("`edits` has {} entries; 1 to {EDITS} are accepted", edits.len())));
    }
    edits.iter().enumerate().map(|(index, edit)| one(edit).map_err(|failure| at(index, &failure))).collect()
}

/// A failure of one edit, with the edit named.
pub fn at(index: usize, failure: &Failure) -> Failure {
    let message = format!("`edits[{index}]`: {}", failure.message);
    Failure { message, ..failure.clone() }.with("edit", index)
}

fn one(edit: &Change) -> Result<Meant<'_>> {
    let new = edit.new_text.as_deref().ok_or_else(|| Failure::invalid("`new_text` is missing"))?;
    let Change { old_text, count, start_line, end_line, anchor, offset, .. } = edit;
    match (old_text, (start_line, end_line), anchor) {
        (Some(old), (None, None), None) if offset.is_none() => text(old, new, *count),
        (None, (Some(start), Some(end)), None) if offset.is_none() && count.is_none() => lines(*start, *end, new),
        (None, (None, None), Some(anchor)) if count.is_none() => anchored(anchor, offset.unwrap_or(1), new),
        _ => Err(Failure::invalid(
            "the fields of exactly one kind are accepted: {old_text, new_text, count}, {start_line, end_line, \
             new_text} or {anchor, offset, new_text}",
        )),
    }
}

fn text<'a>(old: &'a str, new: &'a str, count: Option<u64>) -> Result<Meant<'a>> {
    if old.is_empty() {
        let message =
            "`old_text` is empty; {start_line, end_line} with `end_line` one less inserts, `fs_write` fills a file";
        return Err(Failure::invalid(message));
    }
    Ok(Meant::Text { old, new, count: count.unwrap_or(1) })
}

fn lines(start: u64, end: u64, new: &str) -> Result<Meant<'_>> {
    if start == 0 || end < start - 1 {
        let message = format!(
            "lines {start} to {end} are no range; the first line is 1, and `end_line` is `start_line` or more (one \
             less: insert before)"
        );
        return Err(Failure::invalid(message));
    }
    Ok(Meant::Lines(Lines { start, end, new }))
}

fn anchored<'a>(anchor: &'a str, offset: i64, new: &'a str) -> Result<Meant<'a>> {
    if anchor.is_empty() || anchor.contains('\n') {
        return Err(Failure::invalid(
            "`anchor` is empty or has more than one line; one line or a part of it is accepted",
        ));
    }
    if new.is_empty() {
        return Err(Failure::invalid("`new_text` is empty; an anchor edit only inserts"));
    }
    Ok(Meant::Anchor { anchor, offset, new })
}
