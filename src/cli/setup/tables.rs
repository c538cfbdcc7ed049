//! One table in the text of a TOML document: its lines are replaced or added, all others stay.
//!
//! A line is a header when what stands above it is a whole document and the line by itself is one too; so a line
//! inside a string or a list is never taken for one.

use super::edit::Wanted;
use super::json::one_line;
use crate::policy::parse_toml;
use serde_json::Value;
use std::ops::Range;

/// Our table, as it is printed and put. JSON's strings, lists and numbers are TOML's too, except for control
/// characters, which no path or name of ours has.
pub fn table(wanted: Wanted<'_>) -> String {
    let keys = wanted.fields.iter().map(|(key, value)| format!("{key} = {}\n", one_line(value)));
    format!("[{}.{}]\n{}", wanted.servers, wanted.name, keys.collect::<String>())
}

pub fn put(text: &str, wanted: Wanted<'_>) -> Result<String, String> {
    let ours: Vec<Range<usize>> = sections(text)
        .into_iter()
        .filter(|section| section.path.starts_with(&[wanted.servers.to_owned(), wanted.name.to_owned()]))
        .map(|section| section.span)
        .collect();
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let table = table(wanted).replace('\n', newline);
    let Some(first) = ours.first() else { return Ok(append(text, &table, newline)) };
    let mut rest = text.to_owned();
    for span in ours.iter().skip(1).rev() {
        rest.replace_range(span.clone(), "");
    }
    rest.replace_range(first.clone(), &table);
    Ok(rest)
}

fn append(text: &str, table: &str, newline: &str) -> String {
    let gap = match text {
        _ if text.trim().is_empty() => "",
        _ if text.ends_with('\n') => newline,
        _ => &newline.repeat(2),
    };
    format!("{text}{gap}{table}")
}

/// A header and its keys, without the blank lines and comments before the next header.
struct Section {
    path: Vec<String>,
    span: Range<usize>,
}

fn sections(text: &str) -> Vec<Section> {
    let mut headers: Vec<(Vec<String>, usize)> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if let Some(path) = header(line).filter(|_| parse_toml(&text[..at]).is_ok()) {
            headers.push((path, at));
        }
        at += line.len();
    }
    let ends = headers.iter().skip(1).map(|(_, start)| *start).chain([text.len()]).collect::<Vec<_>>();
    let section = |((path, start), end): ((Vec<String>, usize), usize)| {
        let end = start + kept(&text[start..end]);
        Section { path, span: start..end }
    };
    headers.into_iter().zip(ends).map(section).collect()
}

/// The names of a header line, `[a.b]` or `[[a.b]]`.
fn header(line: &str) -> Option<Vec<String>> {
    if !line.trim_start().starts_with('[') {
        return None;
    }
    let (mut path, mut here) = (Vec::new(), parse_toml(line).ok()?);
    // Each table holds the next; a list of tables holds one.
    loop {
        let inner = match here {
            Value::Array(tables) => tables.into_iter().next()?,
            other => other,
        };
        let Value::Object(table) = inner else { return None };
        let Some((name, value)) = table.into_iter().next() else { break };
        path.push(name);
        here = value;
    }
    Some(path)
}

/// How much of a section is its own: what is blank or a comment at its end introduces the next one.
fn kept(section: &str) -> usize {
    let mut kept = 0;
    let mut at = 0;
    for line in section.split_inclusive('\n') {
        at += line.len();
        if !line.trim().is_empty() && !line.trim_start().starts_with('#') {
            kept = at;
        }
    }
    kept
}
