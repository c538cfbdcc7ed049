//! Bytes of a file as text for a reply: UTF-8, or UTF-16 where a byte order mark says so; what is neither is shown as
//! U+FFFD and counted. Cuts fall between characters, and the price of a text is its length inside JSON.

use crate::worker::ask::Found;

/// Text made of the first `consumed` bytes.
#[derive(Debug, PartialEq, Eq)]
pub struct Decoded {
    pub text: String,
    pub consumed: usize,
    /// Bytes shown as U+FFFD.
    pub invalid: u64,
}

/// Whether a character that is cut off at the end of the bytes may go on after them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    Nothing,
    More,
}

/// What a file's first bytes say, and how many of them are the mark.
pub fn detect(head: &[u8]) -> (Found, usize) {
    match head {
        [0xef, 0xbb, 0xbf, ..] => (Found::Utf8Bom, 3),
        // UTF-32, which is no text here, and not UTF-16 that begins with a NUL, which nobody writes.
        [0xff, 0xfe, 0, 0, ..] => (Found::Utf8, 0),
        [0xff, 0xfe, ..] => (Found::Utf16le, 2),
        [0xfe, 0xff, ..] => (Found::Utf16be, 2),
        _ => (Found::Utf8, 0),
    }
}

pub fn decode(bytes: &[u8], found: Found, budget: usize, after: After) -> Decoded {
    match found {
        Found::Utf16le => wide(bytes, u16::from_le_bytes, budget, after),
        Found::Utf16be => wide(bytes, u16::from_be_bytes, budget, after),
        Found::Utf8 | Found::Utf8Bom | Found::Base64 => narrow(bytes, budget, after),
    }
}

/// Just past the `count`th line end, and how many were found.
pub fn after_lines(bytes: &[u8], found: Found, count: u64) -> (Option<usize>, u64) {
    let mut lines = 0;
    let wide = match found {
        Found::Utf16le => Some([b'\n', 0]),
        Found::Utf16be => Some([0, b'\n']),
        Found::Utf8 | Found::Utf8Bom | Found::Base64 => None,
    };
    match wide {
        None => {
            for at in memchr::memchr_iter(b'\n', bytes) {
                lines += 1;
                if lines == count {
                    return (Some(at + 1), lines);
                }
            }
        }
        Some(newline) => {
            for (unit, pair) in bytes.chunks_exact(2).enumerate() {
                if pair == newline {
                    lines += 1;
                    if lines == count {
                        return (Some(2 * unit + 2), lines);
                    }
                }
            }
        }
    }
    (None, lines)
}

/// Bytes a character takes inside a JSON string.
fn price(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        other => other.len_utf8(),
    }
}

pub fn price_of(text: &str) -> usize {
    let extra = |byte: &u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 8 | 12 => 1,
        0..=0x1f => 5,
        _ => 0,
    };
    text.len() + text.as_bytes().iter().map(extra).sum::<usize>()
}

fn narrow(bytes: &[u8], budget: usize, after: After) -> Decoded {
    let mut out = Decoded { text: String::new(), consumed: 0, invalid: 0 };
    let mut left = budget;
    for chunk in bytes.utf8_chunks() {
        let valid = affordable(chunk.valid(), left);
        out.text.push_str(valid);
        out.consumed += valid.len();
        left -= price_of(valid);
        if valid.len() < chunk.valid().len() {
            break;
        }
        let invalid = chunk.invalid();
        let cut_off = after == After::More && out.consumed + invalid.len() == bytes.len() && may_go_on(invalid);
        if invalid.is_empty() || cut_off || left < 3 {
            break;
        }
        out.text.push(char::REPLACEMENT_CHARACTER);
        out.consumed += invalid.len();
        out.invalid += invalid.len() as u64;
        left -= 3;
    }
    out
}

/// Whether these are the first bytes of a longer character. `utf8_chunks` gives the longest such prefix.
fn may_go_on(invalid: &[u8]) -> bool {
    std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none())
}

fn affordable(text: &str, budget: usize) -> &str {
    // The dearest byte costs six.
    if text.len() <= budget / 6 || price_of(text) <= budget {
        return text;
    }
    let mut left = budget;
    let cut = text.char_indices().find(|(_, character)| match left.checked_sub(price(*character)) {
        Some(rest) => {
            left = rest;
            false
        }
        None => true,
    });
    cut.map_or(text, |(at, _)| &text[..at])
}

fn wide(bytes: &[u8], unit: fn([u8; 2]) -> u16, budget: usize, after: After) -> Decoded {
    let mut out = Decoded { text: String::new(), consumed: 0, invalid: 0 };
    let mut left = budget;
    let (pairs, odd) = bytes.as_chunks::<2>();
    for character in char::decode_utf16(pairs.iter().copied().map(unit)) {
        let (shown, length, invalid) = match character {
            Ok(character) => (character, 2 * character.len_utf16(), 0),
            Err(alone) => {
                let high = matches!(alone.unpaired_surrogate(), 0xd800..=0xdbff);
                if high && after == After::More && out.consumed + 2 == 2 * pairs.len() {
                    return out;
                }
                (char::REPLACEMENT_CHARACTER, 2, 2)
            }
        };
        let Some(rest) = left.checked_sub(price(shown)) else {
            return out;
        };
        left = rest;
        out.invalid += invalid;
        out.text.push(shown);
        out.consumed += length;
    }
    if !odd.is_empty() && after == After::Nothing && left >= 3 {
        out.text.push(char::REPLACEMENT_CHARACTER);
        out.consumed += 1;
        out.invalid += 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{After, Decoded, after_lines, decode, detect, price_of};
    use crate::worker::ask::Found;

    fn narrow(bytes: &[u8], budget: usize, after: After) -> (String, usize, u64) {
        let Decoded { text, consumed, invalid } = decode(bytes, Found::Utf8, budget, after);
        (text, consumed, invalid)
    }

    #[test]
    fn a_cut_falls_between_characters() {
        assert_eq!(narrow("aé".as_bytes(), 2, After::Nothing), ("a".into(), 1, 0));
        assert_eq!(narrow(b"a\xc3", 9, After::More), ("a".into(), 1, 0));
        assert_eq!(narrow(b"a\xc3", 9, After::Nothing), ("a\u{fffd}".into(), 2, 1));
        assert_eq!(narrow(b"a\xffb", 9, After::More), ("a\u{fffd}b".into(), 3, 1));
        assert_eq!(narrow(b"a\xff", 9, After::More), ("a\u{fffd}".into(), 2, 1));
    }

    #[test]
    fn the_price_is_the_length_in_json() {
        for text in ["plain", "\0\u{1b}[1m", "a\"b\\c\n\t\r", "é😀\u{7f}"] {
            let json = serde_json::to_string(text).expect("text is JSON");
            assert_eq!(price_of(text), json.len() - 2, "{text:?}");
        }
        assert_eq!(narrow(&[0; 10], 13, After::More), ("\0\0".into(), 2, 0));
    }

    #[test]
    fn wide_text_is_decoded_and_cut_between_pairs() {
        let bytes: Vec<u8> = "a😀\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let all = decode(&bytes, Found::Utf16le, 99, After::Nothing);
        assert_eq!((all.text.as_str(), all.consumed, all.invalid), ("a😀\n", 8, 0));
        let cut = decode(&bytes[..4], Found::Utf16le, 99, After::More);
        assert_eq!((cut.text.as_str(), cut.consumed, cut.invalid), ("a", 2, 0));
        let lone = decode(&[0xd8, 0, 0, b'x', 7], Found::Utf16be, 99, After::Nothing);
        assert_eq!((lone.text.as_str(), lone.consumed, lone.invalid), ("\u{fffd}x\u{fffd}", 5, 3));
        assert_eq!(after_lines(&bytes, Found::Utf16le, 1), (Some(8), 1));
    }

    #[test]
    fn marks_are_told_apart() {
        assert_eq!(detect(b"\xef\xbb\xbfx"), (Found::Utf8Bom, 3));
        assert_eq!(detect(b"\xff\xfex\0"), (Found::Utf16le, 2));
        assert_eq!(detect(b"\xfe\xff\0x"), (Found::Utf16be, 2));
        assert_eq!(detect(b"\xff\xfe\0\0x\0\0\0"), (Found::Utf8, 0));
        assert_eq!(detect(b"x"), (Found::Utf8, 0));
    }
}
