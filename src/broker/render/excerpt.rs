//! The head and the tail of a stream as one text, cut where a reader would cut it.

use super::{Rest, Text, text, whole_characters};
use crate::broker::answer::Excerpt;

/// Head, a line that says what is missing, tail; or simply all of it.
pub fn excerpt_text(excerpt: &Excerpt) -> Text {
    if excerpt.omitted == 0 {
        return text(&[excerpt.head.as_slice(), &excerpt.tail].concat());
    }
    let head = &excerpt.head[..head_end(&excerpt.head)];
    let tail = &excerpt.tail[tail_start(&excerpt.tail)..];
    let trimmed = excerpt.head.len() - head.len() + excerpt.tail.len() - tail.len();
    let missing = excerpt.omitted + trimmed as u64;
    let border = if head.is_empty() || head.ends_with(b"\n") { "" } else { "\n" };
    let (head, tail) = (text(head), text(tail));
    Text {
        text: format!(
            "{}{border}[... {missing} bytes left out; read them with proc_read ...]\n{}",
            head.text, tail.text
        ),
        invalid_utf8: head.invalid_utf8 + tail.invalid_utf8,
    }
}

/// After the last newline when one stands in the last quarter, otherwise after the last whole character.
fn head_end(head: &[u8]) -> usize {
    let quarter = head.len() - head.len() / 4;
    match memchr::memrchr(b'\n', &head[quarter..]) {
        Some(at) => quarter + at + 1,
        None => whole_characters(head, Rest::MayCome),
    }
}

/// After the first newline when one stands in the first quarter (and it is not all there is), otherwise at the first
/// byte that begins a character.
fn tail_start(tail: &[u8]) -> usize {
    match memchr::memchr(b'\n', &tail[..tail.len() / 4]) {
        Some(at) => at + 1,
        None => tail.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count(),
    }
}
