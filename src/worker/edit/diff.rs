//! Unified diffs for people and models: bounded in length and in the time they take. Bytes that are no UTF-8 are shown
//! as U+FFFD.

use similar::TextDiff;
use std::time::Duration;

/// Past this, the diff is right but no longer the shortest.
const PATIENCE: Duration = Duration::from_millis(300);

const CUT: &str = "[diff cut here]\n";

/// At most `most` bytes, and whether that cut it.
pub fn unified(old: &[u8], new: &[u8], name: Option<&str>, most: usize) -> (String, bool) {
    let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(old.as_ref(), new.as_ref());
    let mut unified = diff.unified_diff();
    unified.context_radius(3);
    let mut text = String::new();
    for hunk in unified.iter_hunks() {
        if let (Some(name), true) = (name, text.is_empty()) {
            text = format!("--- {name}\n+++ {name}\n");
        }
        text.push_str(&hunk.to_string());
        if text.len() > most {
            let mut cut = shorten(&text, most.saturating_sub(CUT.len() + 1)).to_owned();
            cut.push('\n');
            cut.push_str(CUT);
            return (cut, true);
        }
    }
    (text, false)
}

/// The first bytes of a text, up to a whole character.
pub fn shorten(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}
