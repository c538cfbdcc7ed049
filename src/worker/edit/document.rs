//! A file as edits see it: its text without byte order mark, as bytes.
//!
//! UTF-16 with a mark becomes UTF-8 and back, lone surrogates included (as in WTF-8), so that what no edit touches
//! comes out as it went in. Any other bytes are themselves.

use crate::worker::ask::Found;
use crate::worker::failure::{Failure, Result};
use crate::worker::files::text::detect;
use std::borrow::Cow;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    found: Found,
    pub text: Vec<u8>,
    pub endings: Endings,
}

/// How lines end, as the file was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endings {
    /// All with CRLF: text that comes in is given the same.
    Crlf,
    /// With LF, or mixed: text that comes in keeps its own.
    AsGiven,
}

impl Document {
    pub fn parse(bytes: &[u8]) -> Result<Document> {
        let (found, mark) = detect(bytes);
        let rest = &bytes[mark..];
        let text = match found {
            Found::Utf16le => narrow(rest, u16::from_le_bytes)?,
            Found::Utf16be => narrow(rest, u16::from_be_bytes)?,
            Found::Utf8 | Found::Utf8Bom | Found::Base64 => rest.to_vec(),
        };
        let endings = Endings::of(&text);
        Ok(Document { found, text, endings })
    }

    /// The file's bytes.
    pub fn encode(&self) -> Vec<u8> {
        match self.found {
            Found::Utf8 | Found::Base64 => self.text.clone(),
            Found::Utf8Bom => [b"\xef\xbb\xbf", self.text.as_slice()].concat(),
            Found::Utf16le => widen(&self.text).flat_map(u16::to_le_bytes).collect(),
            Found::Utf16be => widen(&self.text).flat_map(u16::to_be_bytes).collect(),
        }
    }
}

impl Endings {
    fn of(text: &[u8]) -> Endings {
        let mut any = false;
        for at in memchr::memchr_iter(b'\n', text) {
            any = true;
            if at == 0 || text[at - 1] != b'\r' {
                return Endings::AsGiven;
            }
        }
        if any { Endings::Crlf } else { Endings::AsGiven }
    }

    /// Text that comes in, with the endings of the file.
    pub fn adapt<'t>(self, text: &'t str) -> Cow<'t, [u8]> {
        match self {
            Endings::AsGiven => Cow::Borrowed(text.as_bytes()),
            Endings::Crlf => {
                let mut adapted = Vec::with_capacity(text.len() + text.len() / 16);
                for byte in text.bytes() {
                    if byte == b'\n' && adapted.last() != Some(&b'\r') {
                        adapted.push(b'\r');
                    }
                    adapted.push(byte);
                }
                Cow::Owned(adapted)
            }
        }
    }

    pub fn usual(self) -> &'static [u8] {
        match self {
            Endings::Crlf => b"\r\n",
            Endings::AsGiven => b"\n",
        }
    }
}

fn narrow(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<Vec<u8>> {
    let (pairs, odd) = bytes.as_chunks::<2>();
    if !odd.is_empty() {
        let message =
            "the file's byte order mark says UTF-16, but it has an odd number of bytes; it cannot be edited as text";
        return Err(Failure::invalid(message));
    }
    let mut text = Vec::with_capacity(bytes.len());
    for character in char::decode_utf16(pairs.iter().copied().map(unit)) {
        match character {
            Ok(character) => text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            Err(alone) => {
                let code = alone.unpaired_surrogate();
                let six = |shift: u16| 0x80 | ((code >> shift) & 0x3f) as u8;
                text.extend_from_slice(&[0xe0 | (code >> 12) as u8, six(6), six(0)]);
            }
        }
    }
    Ok(text)
}

/// The mark and the text as UTF-16 units. The text is what `narrow` made and UTF-8 put in between.
fn widen(text: &[u8]) -> impl Iterator<Item = u16> + '_ {
    let mut rest = text;
    let units = std::iter::from_fn(move || {
        let first = *rest.first()?;
        let length = match first {
            0..0x80 => 1,
            0x80..0xe0 => 2,
            0xe0..0xf0 => 3,
            0xf0.. => 4,
        };
        let (character, after) = rest.split_at(length.min(rest.len()));
        rest = after;
        let lead = u32::from(first) & if length == 1 { 0x7f } else { 0x7f >> length };
        let code = character[1..].iter().fold(lead, |code, byte| code << 6 | u32::from(byte & 0x3f));
        Some(units(code))
    });
    std::iter::once(0xfeff).chain(units.flatten())
}

fn units(code: u32) -> impl Iterator<Item = u16> {
    // Below 0x10000 a code is its own unit, a lone surrogate's too.
    let low = (code < 0x10000).then_some(code as u16);
    let above = code.wrapping_sub(0x10000);
    let pair = [0xd800 + (above >> 10 & 0x3ff) as u16, 0xdc00 + (above & 0x3ff) as u16];
    low.into_iter().chain(pair.into_iter().filter(move |_| low.is_none()))
}

#[cfg(test)]
mod tests {
    use super::{Document, Endings};
    use std::borrow::Cow;

    fn passes_through(bytes: &[u8]) {
        let document = Document::parse(bytes).expect("it can be edited");
        assert_eq!(document.encode(), bytes);
    }

    #[test]
    fn what_goes_in_comes_out() {
        passes_through(b"");
        passes_through(b"\xef\xbb\xbfa\r\n");
        passes_through(b"\xff\xfe\0\0\x01");
        passes_through(&(0..=255).collect::<Vec<u8>>());
        let every_unit = (0..=u16::MAX).flat_map(u16::to_le_bytes);
        passes_through(&[0xff, 0xfe].into_iter().chain([b'x', 0]).chain(every_unit).collect::<Vec<u8>>());
        let pairs = "a😀\u{10ffff}é".encode_utf16().chain([0xdc00, 0xd800]).flat_map(u16::to_be_bytes);
        passes_through(&[0xfe, 0xff].into_iter().chain(pairs).collect::<Vec<u8>>());
    }

    #[test]
    fn utf16_is_text_inside() {
        let document = Document::parse(b"\xff\xfea\0\r\0\n\0").expect("it can be edited");
        assert_eq!((document.text.as_slice(), document.endings), (&b"a\r\n"[..], Endings::Crlf));
        assert!(Document::parse(b"\xff\xfea").is_err());
    }

    #[test]
    fn only_a_file_of_crlf_gives_crlf() {
        assert_eq!(Endings::of(b"a\r\nb\r\n"), Endings::Crlf);
        assert_eq!(Endings::of(b"a\r\nb\n"), Endings::AsGiven);
        assert_eq!(Endings::of(b"\na\r\n"), Endings::AsGiven);
        assert_eq!(Endings::of(b"a\rb"), Endings::AsGiven);
        assert_eq!(Endings::Crlf.adapt("a\nb\r\n\n"), Cow::Borrowed(b"a\r\nb\r\n\r\n"));
    }
}
