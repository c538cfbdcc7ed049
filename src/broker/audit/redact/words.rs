//! Splits a command line into words the way a shell would, near enough to see where a secret ends.

use std::ops::Range;

/// Looked at in one text; a command line of more words is no longer one.
const MOST_WORDS: usize = 4096;

/// The words of a text, quotes included. Unbalanced quotes end with the text.
pub(super) fn split(text: &str) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    let (mut start, mut quote, mut escaped): (Option<usize>, Option<u8>, bool) = (None, None, false);
    for (at, byte) in text.bytes().enumerate() {
        let breaks = quote.is_none() && !escaped && (byte.is_ascii_whitespace() || b";&|()<>".contains(&byte));
        // `&` belongs to the query of a URL, which is a word to the person who forgot the quotes.
        let in_query = byte == b'&' && start.is_some_and(|start| text[start..at].contains('?'));
        if breaks && !in_query {
            words.extend(start.take().map(|start| start..at));
            if words.len() == MOST_WORDS {
                break;
            }
            continue;
        }
        start.get_or_insert(at);
        match (byte, quote) {
            _ if escaped => escaped = false,
            (b'\\', Some(b'"') | None) => escaped = true,
            (b'\'' | b'"', None) => quote = Some(byte),
            (byte, Some(open)) if byte == open => quote = None,
            _ => {}
        }
    }
    words.extend(start.map(|start| start..text.len()));
    words
}

/// Without the quotes around it, and how many bytes were taken off the front.
pub(super) fn unquoted(word: &str) -> (&str, usize) {
    let quoted = word.strip_prefix('$').unwrap_or(word);
    let inner = ['\'', '"'].into_iter().find_map(|quote| {
        let inner = quoted.strip_prefix(quote)?;
        Some(inner.strip_suffix(quote).unwrap_or(inner))
    });
    inner.map_or((word, 0), |inner| (inner, word.len() - quoted.len() + 1))
}
