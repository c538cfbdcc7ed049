//! Any edits on any text against a naive model: the result is the model's, or both refuse.

use super::carry_out;
use super::meant::meant;
use crate::path::CellPath;
use crate::worker::ask::{Change, Terms};
use crate::worker::names::Named;
use crate::worker::tests::room::{Dice, anchor, lines, text};

const CASES: u64 = 30_000;

/// What the edits make of a text, worked out as slowly and plainly as possible. `None`: refused.
fn model(before: &str, edits: &[Change]) -> Option<String> {
    let crlf = before.contains('\n') && !before.replace("\r\n", "").contains('\n');
    let adapt = |new: &str| if crlf { new.replace("\r\n", "\n").replace('\n', "\r\n") } else { new.to_owned() };
    let usual = if crlf { "\r\n" } else { "\n" };
    let by_line: Vec<(u64, u64, String)> = edits
        .iter()
        .filter_map(|edit| Some((edit.start_line?, edit.end_line?, adapt(edit.new_text.as_deref()?))))
        .collect();
    let mut now = by_lines(before, usual, &by_line)?;
    for edit in edits {
        let new = adapt(edit.new_text.as_deref()?);
        if let Some(old) = &edit.old_text {
            now = by_text(&now, &adapt(old), &new, edit.count.unwrap_or(1))?;
        } else if let Some(anchor) = &edit.anchor {
            let bodies: Vec<&str> = now.split_inclusive('\n').map(body).collect();
            let mut at: Vec<usize> = (0..bodies.len()).filter(|row| bodies[*row] == anchor).collect();
            if at.is_empty() {
                at = (0..bodies.len()).filter(|row| bodies[*row].contains(anchor.as_str())).collect();
            }
            let [row] = at[..] else {
                return None;
            };
            let start = u64::try_from(row as i64 + 1 + edit.offset?).ok().filter(|start| *start > 0)?;
            now = by_lines(&now, usual, &[(start, start - 1, new)])?;
        }
    }
    Some(now)
}

fn body(line: &str) -> &str {
    line.strip_suffix("\r\n").or(line.strip_suffix('\n')).unwrap_or(line)
}

fn by_text(before: &str, old: &str, new: &str, count: u64) -> Option<String> {
    let found = before.matches(old).count() as u64;
    (found > 0 && (count == 0 || count == found)).then(|| before.replace(old, new))
}

/// Every line is touched by at most one edit, and every gap filled by at most one.
fn overlap(count: u64, edits: &[(u64, u64, String)]) -> bool {
    (1..=count + 1).any(|line| {
        let replacing = edits.iter().filter(|(start, end, _)| (*start..=*end).contains(&line)).count();
        let inserting = edits.iter().filter(|(start, end, _)| *start == line && *end + 1 == line).count();
        let across = edits.iter().any(|(start, end, _)| *start < line && line <= *end);
        replacing > 1 || inserting > 1 || (inserting == 1 && across)
    })
}

fn by_lines(before: &str, usual: &str, edits: &[(u64, u64, String)]) -> Option<String> {
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let count = old.len() as u64;
    let open = old.last().is_some_and(|line| !line.ends_with('\n'));
    if edits.iter().any(|(start, end, _)| *end > count || *start > count + 1) || overlap(count, edits) {
        return None;
    }
    let mut rows: Vec<(String, bool)> = Vec::new();
    for line in 1..=count + 1 {
        let begins = |edit: &&(u64, u64, String)| edit.0 == line;
        let mut here: Vec<_> = edits.iter().filter(begins).collect();
        here.sort_by_key(|edit| edit.1);
        for (_, end, new) in here {
            let like = (*end.max(&(line - 1))).checked_sub(1).map_or("", |row| old[row as usize]);
            let ending = like.strip_prefix(body(like)).filter(|ending| !ending.is_empty()).unwrap_or(usual);
            for row in new.split_inclusive('\n') {
                let row = if row.ends_with('\n') { row.to_owned() } else { format!("{row}{ending}") };
                rows.push((row, true));
            }
        }
        let gone = edits.iter().any(|(start, end, _)| (*start..=*end).contains(&line));
        if line <= count && !gone {
            rows.push((old[line as usize - 1].to_owned(), false));
        }
    }
    let last = rows.len();
    for (index, (row, new)) in rows.iter_mut().enumerate() {
        if index + 1 < last && !row.ends_with('\n') {
            row.push_str(usual);
        }
        if index + 1 == last && *new && open {
            *row = body(row).to_owned();
        }
    }
    Some(rows.into_iter().map(|(row, _)| row).collect())
}

fn some_text(dice: &mut Dice, newlines: &[&str], longest: usize) -> String {
    let length = dice.below(longest);
    let mut made = String::new();
    for _ in 0..length {
        let piece = if dice.below(4) == 0 { *dice.pick(newlines) } else { *dice.pick(&["a", "b", "é", " ", "😀"]) };
        made.push_str(piece);
    }
    made
}

fn some_edit(dice: &mut Dice, before: &str) -> Change {
    let new = some_text(dice, &["\n", "\n", "\r\n"], 6);
    let rows = before.split('\n').count() + 1;
    match dice.below(3) {
        0 => {
            let start = dice.below(rows + 1) as u64;
            lines(start, (start + dice.below(3) as u64).saturating_sub(1), &new)
        }
        1 => Change { count: [None, Some(0), Some(2)][dice.below(3)], ..text(&some_part(dice, before, 4), &new) },
        _ => {
            let part = some_part(dice, before, 3).replace('\n', "");
            anchor(&part, dice.below(5) as i64 - 1, &new)
        }
    }
}

/// Characters that stand together in the text, or nearly.
fn some_part(dice: &mut Dice, before: &str, longest: usize) -> String {
    let all: Vec<char> = before.chars().collect();
    let start = dice.below(all.len());
    let end = (start + 1 + dice.below(longest)).min(all.len());
    let part: String = all.get(start..end).unwrap_or_default().iter().collect();
    if dice.below(3) == 0 { part.replace("\r\n", "\n") } else { part }
}

/// A file of the text in some encoding.
fn encoded(text: &str, form: usize) -> Vec<u8> {
    match form {
        0 => text.as_bytes().to_vec(),
        1 => format!("\u{feff}{text}").into_bytes(),
        2 => format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect(),
        _ => format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_be_bytes).collect(),
    }
}

#[test]
fn any_edits_of_any_text_give_what_the_model_gives() {
    let terms = Terms {
        workspace: CellPath::new("/"),
        roots: Vec::new(),
        max_file_bytes: 1 << 20,
        reply_bytes: 1 << 20,
        backup_bytes: 1 << 20,
        hidden: Vec::new(),
    };
    let path = Named::parse("file", &terms).expect("a path");
    let mut agreed = [0, 0];
    for seed in 0..CASES {
        let mut dice = Dice::new(seed);
        let newlines = *dice.pick::<&[&str]>(&[&["\n"], &["\r\n"], &["\n", "\r\n"], &["\n", "\r\n", "\r"]]);
        let before = some_text(&mut dice, newlines, 24);
        let edits: Vec<Change> = (0..1 + dice.below(3)).map(|_| some_edit(&mut dice, &before)).collect();
        let form = dice.below(4);
        let expected = meant(&edits).ok().and_then(|_| model(&before, &edits));
        let made = meant(&edits).and_then(|edits| carry_out(&encoded(&before, form), &edits, &terms, &path));
        let got = made.as_ref().map(|(bytes, _)| bytes.clone()).ok();
        assert_eq!(got, expected.as_deref().map(|text| encoded(text, form)), "seed {seed}: {before:?} with {edits:?}");
        agreed[usize::from(expected.is_some())] += 1;
    }
    assert!(agreed.iter().all(|count| *count > CASES / 10), "refused and made: {agreed:?}");
}
