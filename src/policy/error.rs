//! What is wrong with a policy, for the operator who can mend it.
//!
//! An error names the file, line and column (or the flag that was typed), shows the line with a
//! caret under the offending text, and ends with a hint. Where it came from is a
//! [`Place`]; how a parser's complaint becomes one of ours is in [`super::source`].

use std::fmt;
use std::ops::Range;

/// A policy that cannot be used, and how to mend it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub place: Place,
    /// A lower-case fragment that names the thing and the rule.
    pub message: String,
    pub hint: Option<String>,
}

/// Where the offending text stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Line and column count from 1; `width` is how much of `text` is meant, from `column` on.
    Line { file: String, line: usize, column: usize, text: String, width: usize },
    /// The file as a whole, or a thing named by its path.
    File(String),
    /// A flag with its value, as typed: `--memory 12x`.
    Flag(String),
}

/// Of a longer line, only this many characters around the offending text are shown.
const SHOWN: usize = 120;

impl Error {
    /// An error about a whole file, a name, or a directory.
    pub(super) fn file(name: impl fmt::Display, message: impl Into<String>) -> Self {
        Error { place: Place::File(name.to_string()), message: message.into(), hint: None }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl Place {
    /// The line of `text` that `span` begins in.
    pub(super) fn in_text(file: &str, text: &str, span: &Range<usize>) -> Self {
        let start = floor_boundary(text, span.start);
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let end = floor_boundary(text, span.end).clamp(start, line_end);
        Place::Line {
            file: file.to_owned(),
            line: text[..line_start].matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            text: text[line_start..line_end].trim_end_matches('\r').to_owned(),
            width: text[start..end].chars().count().max(1),
        }
    }
}

fn floor_boundary(text: &str, index: usize) -> usize {
    (0..=index.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::File(name) => write!(f, "`{}`: {}", visible(name), self.message)?,
            Place::Flag(flag) => write!(f, "`{}`: {}", visible(flag), self.message)?,
            Place::Line { file, line, column, text, width } => {
                writeln!(f, "{}:{line}:{column}: {}", visible(file), self.message)?;
                write_line(f, *line, *column, text, *width)?;
            }
        }
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

fn write_line(f: &mut fmt::Formatter<'_>, line: usize, column: usize, text: &str, width: usize) -> fmt::Result {
    let number = line.to_string();
    let skipped = (column + width.min(SHOWN / 2)).saturating_sub(SHOWN);
    let shown: String = text.chars().skip(skipped).take(SHOWN).collect();
    let before = column - 1 - skipped;
    // A tab is repeated under itself, so that the caret stands right whatever the tab stops are.
    let padding: String = shown.chars().take(before).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    let carets = "^".repeat(width.min(SHOWN.saturating_sub(before)).max(1));
    let gutter = " ".repeat(number.len());
    writeln!(f, "{gutter} |")?;
    writeln!(f, "{number} | {}", visible(&shown))?;
    write!(f, "{gutter} | {padding}{carets}")
}

/// Control characters and direction marks would let a file's text rewrite the message around it.
pub(super) fn visible(text: &str) -> String {
    let hostile = |c: char| {
        (c.is_control() && c != '\t')
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if hostile(c) { '\u{fffd}' } else { c }).collect()
}

/// The nearest of `words`, when it is near enough to be what was meant.
pub(crate) fn nearest<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    words
        .into_iter()
        .map(|candidate| (distance(&word, candidate), candidate))
        .filter(|(far, candidate)| *far <= (candidate.chars().count() / 3).max(1))
        .min_by_key(|(far, _)| *far)
        .map(|(_, candidate)| candidate)
}

/// How many single-letter changes, or swaps of neighbours, turn one word into the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let changed = usize::from(a[i - 1] != b[j - 1]);
                let plain = (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(rows[i - 1][j - 1] + changed);
                let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                if swapped { plain.min(rows[i - 2][j - 2] + 1) } else { plain }
            };
        }
    }
    rows[a.len()][b.len()]
}

/// `` `a`, `b` or `c` ``.
pub(crate) fn one_of<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caret_stands_under_the_offending_text() {
        let cases = [
            ("a = 1\nb = 22\n", 10..12, "f:2:5: m\n  |\n2 | b = 22\n  |     ^^"),
            ("\tb = 22\r\n", 5..7, "f:1:6: m\n  |\n1 | \tb = 22\n  | \t    ^^"),
            ("é = 1\n", 5..6, "f:1:5: m\n  |\n1 | é = 1\n  |     ^"),
            ("a", 1..1, "f:1:2: m\n  |\n1 | a\n  |  ^"),
            ("a\n", 99..120, "f:2:1: m\n  |\n2 | \n  | ^"),
        ];
        for (text, span, expected) in cases {
            let place = Place::in_text("f", text, &span);
            assert_eq!(Error { place, message: "m".into(), hint: None }.to_string(), expected, "{text:?} {span:?}");
        }
    }

    #[test]
    fn a_long_line_is_shown_around_its_fault_only() {
        let text = format!("{}BAD{}", "x".repeat(5000), "y".repeat(5000));
        let shown =
            Error { place: Place::in_text("f", &text, &(5000..5003)), message: "m".into(), hint: None }.to_string();
        let lines: Vec<&str> = shown.lines().collect();
        assert!(shown.len() < 400, "{}", shown.len());
        assert_eq!(lines[2].find("BAD"), lines[3].find("^^^"), "{shown}");
    }

    #[test]
    fn a_message_cannot_be_rewritten_by_escapes_in_the_file() {
        let place = Place::in_text("f", "a = \"\u{1b}[2K\u{202e}\"", &(0..1));
        let shown = Error { place, message: "m".into(), hint: None }.to_string();
        assert!(!shown.contains('\u{1b}') && !shown.contains('\u{202e}'), "{shown:?}");
    }

    #[test]
    fn the_nearest_word_is_found_only_when_it_is_near() {
        let words = ["network", "limits", "allowed_roots"];
        for (word, expected) in [
            ("netwrok", Some("network")),
            ("NETWORK", Some("network")),
            ("limit", Some("limits")),
            ("allow_roots", Some("allowed_roots")),
            ("banana", None),
        ] {
            assert_eq!(nearest(word, words), expected, "{word}");
        }
    }
}
