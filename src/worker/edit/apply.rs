//! Carries edits out on a document: line edits first, all speaking of the file as it was; then text and anchor edits in
//! their order, each on the result of the one before. Nothing is kept of a call of which one edit fails.

use super::document::{Document, Endings};
use super::lines;
use super::meant::{Lines, Meant, at};
use super::nearest;
use crate::worker::failure::{Code, Failure, Result};
use memchr::memmem;

/// Line numbers named in a message.
const NAMED: usize = 20;

/// Bytes gone through by all edits of a call: some seconds.
const WORK: u64 = 8 << 30;

/// Gives the number of places that were changed.
pub fn apply(document: &mut Document, edits: &[Meant<'_>], most: u64) -> Result<u64> {
    let endings = document.endings;
    if (document.text.len() as u64).saturating_mul(edits.len() as u64) > WORK {
        let message =
            format!("{} edits of {} bytes are too much for one call; send fewer", edits.len(), document.text.len());
        return Err(Failure::new(Code::TooLarge, message));
    }
    let numbered = edits.iter().enumerate();
    let by_line: Vec<_> = numbered.filter_map(|(index, edit)| edit.lines().map(|lines| (index, lines))).collect();
    let mut places = by_line.len() as u64;
    if !by_line.is_empty() {
        document.text = lines::apply(&document.text, endings, &by_line)?;
        fits(document.text.len(), most)?;
    }
    for (index, edit) in edits.iter().enumerate() {
        let done = match edit {
            Meant::Lines(_) => continue,
            Meant::Text { old, new, count } => replace(&document.text, endings, old, new, *count, most),
            Meant::Anchor { anchor, offset, new } => insert(&document.text, endings, anchor, *offset, new)
                .and_then(|text| fits(text.len(), most).map(|()| (text, 1))),
        };
        let (text, changed) = done.map_err(|failure| at(index, &failure))?;
        document.text = text;
        places += changed;
    }
    Ok(places)
}

fn replace(text: &[u8], endings: Endings, old: &str, new: &str, count: u64, most: u64) -> Result<(Vec<u8>, u64)> {
    let (old, new) = (endings.adapt(old), endings.adapt(new));
    let finder = memmem::Finder::new(&*old);
    let found = finder.find_iter(text).count();
    if found == 0 {
        return Err(nearest::no_match("`old_text` does not occur", text, &old));
    }
    if count != 0 && found as u64 != count {
        let words = format!("`old_text` occurs {found} times and `count` expects {count}");
        let hint = "more of the text around it makes it unique, `count` 0 replaces all";
        return Err(miscounted(&words, hint, text, found, finder.find_iter(text)));
    }
    fits(text.len() - found * old.len() + found * new.len(), most)?;
    let mut out = Vec::with_capacity(text.len());
    let mut next = 0;
    for at in finder.find_iter(text) {
        out.extend_from_slice(&text[next..at]);
        out.extend_from_slice(&new);
        next = at + old.len();
    }
    out.extend_from_slice(&text[next..]);
    Ok((out, found as u64))
}

/// Puts text in so that it begins at the line `offset` below the anchor's: 0 is before the anchor, 1 right after it.
fn insert(text: &[u8], endings: Endings, anchor: &str, offset: i64, new: &str) -> Result<Vec<u8>> {
    let rows = lines::split(text);
    let body = |row: &&[u8]| row.len() - lines::ending(row).len();
    let numbers = |accept: &dyn Fn(&[u8]) -> bool| -> Vec<usize> {
        rows.iter().enumerate().filter(|(_, row)| accept(&row[..body(row)])).map(|(index, _)| index).collect()
    };
    let mut found = numbers(&|row| row == anchor.as_bytes());
    if found.is_empty() {
        let finder = memmem::Finder::new(anchor);
        found = numbers(&|row| finder.find(row).is_some());
    }
    let line = match found[..] {
        [] => return Err(nearest::no_match("no line is or holds `anchor`", text, anchor.as_bytes())),
        [line] => line as i64 + 1,
        _ => {
            let starts = found.iter().map(|index| rows[..*index].iter().map(|row| row.len()).sum());
            let words = format!("`anchor` is or is in {} lines and must be in one", found.len());
            return Err(miscounted(&words, "more of the line makes it unique", text, found.len(), starts));
        }
    };
    let start = line.saturating_add(offset);
    if start < 1 || start > rows.len() as i64 + 1 {
        let message = format!(
            "`offset` {offset} from line {line} is line {start}, but the file has {} lines; text can begin at 1 to {}",
            rows.len(),
            rows.len() + 1
        );
        return Err(Failure::invalid(message));
    }
    let start = start as u64;
    lines::apply(text, endings, &[(0, Lines { start, end: start - 1, new })])
}

fn miscounted(words: &str, hint: &str, text: &[u8], count: usize, places: impl Iterator<Item = usize>) -> Failure {
    let mut numbers = Vec::new();
    let (mut line, mut from) = (1, 0);
    for at in places.take(NAMED) {
        line += memchr::memchr_iter(b'\n', &text[from..at]).count();
        from = at;
        numbers.push(line);
    }
    let named: Vec<String> = numbers.iter().map(usize::to_string).collect();
    let more = if count > NAMED { ", …" } else { "" };
    let message = format!("{words}: lines {}{more}; {hint}", named.join(", "));
    Failure::new(Code::EditNoMatch, message).with("occurrences", count).with("lines", numbers)
}

fn fits(bytes: usize, most: u64) -> Result<()> {
    if bytes as u64 <= most {
        return Ok(());
    }
    let message = format!("the file would have {bytes} bytes; at most {most} (`max_file_bytes`) are written");
    Err(Failure::new(Code::TooLarge, message).with("max_file_bytes", most))
}
