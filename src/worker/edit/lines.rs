//! Line edits: whole lines are replaced, removed or put in.
//!
//! A new last line without newline gets one (as the line it replaces, or the one above), except at the end of a file
//! that had none: a missing last newline stays missing, and a line that is put after it gets one before itself.

use super::document::Endings;
use super::meant::{Lines, at};
use crate::worker::failure::{Failure, Result};

/// A line as it will stand, and where it comes from.
#[derive(Clone, Copy)]
enum Line<'t> {
    Old(&'t [u8]),
    New { body: &'t [u8], ending: &'t [u8] },
}

/// The edits all speak of the lines of `text`; each comes with its place among all edits, for words.
pub fn apply(text: &[u8], endings: Endings, edits: &[(usize, Lines<'_>)]) -> Result<Vec<u8>> {
    let old: Vec<&[u8]> = split(text);
    let edits = in_order(edits, old.len() as u64)?;
    let adapted: Vec<_> = edits.iter().map(|(_, edit)| endings.adapt(edit.new)).collect();
    let mut out = Vec::new();
    let mut next = 0;
    for ((_, edit), new) in edits.iter().zip(&adapted) {
        let (start, end) = (edit.start as usize - 1, edit.end as usize);
        out.extend(old[next..start].iter().copied().map(Line::Old));
        let like = old[..end.max(start)].last().map_or(&b""[..], |line| ending(line));
        let usual = if like.is_empty() { endings.usual() } else { like };
        out.extend(split(new).into_iter().map(|line| fresh(line, usual)));
        next = end;
    }
    out.extend(old[next..].iter().copied().map(Line::Old));
    let last_newline = match old.last() {
        Some(line) if ending(line).is_empty() => LastNewline::Missing,
        _ => LastNewline::There,
    };
    Ok(join(&out, endings, last_newline))
}

/// Whether the file had a newline at its end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LastNewline {
    Missing,
    There,
}

fn join(lines: &[Line<'_>], endings: Endings, last_newline: LastNewline) -> Vec<u8> {
    let mut text = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let last = index + 1 == lines.len();
        match line {
            Line::Old(line) => {
                text.extend_from_slice(line);
                if !last && ending(line).is_empty() {
                    text.extend_from_slice(endings.usual());
                }
            }
            Line::New { body, ending } => {
                text.extend_from_slice(body);
                if !last || last_newline == LastNewline::There {
                    text.extend_from_slice(ending);
                }
            }
        }
    }
    text
}

fn fresh<'t>(line: &'t [u8], usual: &'t [u8]) -> Line<'t> {
    let own = ending(line);
    let body = &line[..line.len() - own.len()];
    Line::New { body, ending: if own.is_empty() { usual } else { own } }
}

fn in_order<'a>(edits: &[(usize, Lines<'a>)], count: u64) -> Result<Vec<(usize, Lines<'a>)>> {
    let mut edits = edits.to_vec();
    edits.sort_by_key(|(_, edit)| (edit.start, edit.end));
    for (index, edit) in &edits {
        let (start, end) = (edit.start, edit.end);
        if end > count || start > count + 1 {
            let message = format!("lines {start} to {end} pass the end: the file has {count} lines");
            return Err(at(*index, &Failure::invalid(message).with("lines", count)));
        }
    }
    for pair in edits.windows(2) {
        let [(first, one), (second, other)] = pair else {
            continue;
        };
        let both_insert = (one.start, one.end) == (other.start, other.end);
        if other.start <= one.end || both_insert {
            let message = format!(
                "lines {} to {} overlap `edits[{first}]` (lines {} to {}); line edits all speak of the file as it is \
                 before the call",
                other.start, other.end, one.start, one.end
            );
            return Err(at(*second, &Failure::invalid(message)));
        }
    }
    Ok(edits)
}

pub fn split(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// The newline a line ends with, if it does.
pub fn ending(line: &[u8]) -> &[u8] {
    let length = match line {
        [.., b'\r', b'\n'] => 2,
        [.., b'\n'] => 1,
        _ => 0,
    };
    &line[line.len() - length..]
}
