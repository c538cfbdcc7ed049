//! How bytes of a process become text for an agent: decoded, cut at borders, without terminal codes, with the lines
//! that matter.
//!
//! Nothing here keeps state or does I/O; every function takes any bytes, never panics, and takes time that grows with
//! their number only. What a terminal would show at one moment is in [`super::screen`].

mod ansi;
mod excerpt;
mod highlight;

pub use ansi::{MAX_HELD, Stripped, strip_ansi};
pub use excerpt::excerpt_text;
pub use highlight::{Highlight, Highlights, MAX_LINE, highlights};

/// Bytes as text, and how much of it is not what was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text {
    pub text: String,
    /// How many sequences were no UTF-8 and stand as U+FFFD.
    pub invalid_utf8: usize,
}

pub fn text(bytes: &[u8]) -> Text {
    let mut shown = Text { text: String::with_capacity(bytes.len()), invalid_utf8: 0 };
    for chunk in bytes.utf8_chunks() {
        shown.text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            shown.text.push(char::REPLACEMENT_CHARACTER);
            shown.invalid_utf8 += 1;
        }
    }
    shown
}

/// Whether bytes may still follow those at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    MayCome,
    /// The process has ended, or these bytes will never be looked at again.
    None,
}

/// How many of these bytes can be shown now: a character cut at their end waits for the next page.
///
/// At most 3 bytes wait, and never bytes that no continuation could make a character.
pub fn whole_characters(bytes: &[u8], rest: Rest) -> usize {
    if rest == Rest::None {
        return bytes.len();
    }
    let last = bytes.len().saturating_sub(3);
    for start in (last..bytes.len()).rev() {
        if bytes[start] & 0xC0 != 0x80 {
            return match std::str::from_utf8(&bytes[start..]) {
                Err(error) if error.valid_up_to() == 0 && error.error_len().is_none() => start,
                _ => bytes.len(),
            };
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests;
