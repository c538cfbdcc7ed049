//! `fs_read`: pages of files by line or byte. Memory and reply are bounded whatever the files are; a file that changes
//! meanwhile gives the bytes that were read, with a size that covers them.

use super::open;
use super::stored::{Effort, Stored, next_line};
use super::text::{self, After};
use crate::worker::ask::{Encoding, Found, Read, ReadFile, Terms};
use crate::worker::failure::{Failure, Result};
use crate::worker::names::Named;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Files in one call.
const PATHS: usize = 1000;

/// A page of fewer bytes might hold no whole character, and reading on would not advance.
const LONGEST_CHARACTER: usize = 4;

/// Less than this of a reply is not worth a page; it also holds the dearest character.
const SMALLEST_PAGE: usize = 64;

/// What is wanted of a file, and what the reply has room for.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    from: From,
    /// Bytes of the file.
    most: usize,
    /// Price of the content.
    room: usize,
    encoding: Encoding,
}

#[derive(Debug, Clone, Copy)]
enum From {
    Line { first: u64, count: Option<u64> },
    Byte(u64),
}

pub fn read(terms: &Terms, ask: &Read) -> Result<Vec<ReadFile>> {
    let from = from(ask)?;
    let most = usize::try_from(ask.max_bytes.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    let mut room = usize::try_from(ask.reply_bytes.unwrap_or(u64::MAX).min(terms.reply_bytes)).unwrap_or(usize::MAX);
    let mut effort = Effort::of_one_call(terms);
    let mut one = |text: &str| {
        let wanted = Wanted { from, most: most.max(LONGEST_CHARACTER), room, encoding: ask.encoding };
        let file = Named::parse(text, terms).and_then(|path| page(&path, terms, wanted, &mut effort))?;
        room -= text::price_of(&file.content).min(room);
        Ok(file)
    };
    match (&ask.path, &ask.paths) {
        (Some(path), None) => Ok(vec![one(path)?]),
        (None, Some(paths)) if (1..=PATHS).contains(&paths.len()) => {
            let failed =
                |path: &str, failure| ReadFile { path: path.into(), error: Some(failure), ..Default::default() };
            Ok(paths.iter().map(|path| one(path).unwrap_or_else(|failure| failed(path, failure))).collect())
        }
        (None, Some(paths)) => {
            Err(Failure::invalid(format!("`paths` names {} files; 1 to {PATHS} are accepted", paths.len())))
        }
        (Some(_), Some(_)) => Err(Failure::invalid("`path` and `paths` are both given; exactly one is accepted")),
        (None, None) => Err(Failure::invalid("neither `path` nor `paths` is given; exactly one is needed")),
    }
}

fn from(ask: &Read) -> Result<From> {
    if ask.max_bytes == Some(0) {
        return Err(Failure::invalid("`max_bytes` is 0; at least 1 is accepted"));
    }
    match (ask.byte_offset, ask.offset, ask.limit) {
        (Some(byte), None, None) => Ok(From::Byte(byte)),
        (Some(_), _, _) => Err(Failure::invalid(
            "`byte_offset` is given with `offset` or `limit`; a read goes by bytes or by lines, not both",
        )),
        (None, Some(0), _) => Err(Failure::invalid("`offset` is 0; the first line is 1")),
        (None, _, Some(0)) => Err(Failure::invalid("`limit` is 0; at least 1 line is accepted")),
        (None, first, count) => Ok(From::Line { first: first.unwrap_or(1), count }),
    }
}

fn page(path: &Named, terms: &Terms, wanted: Wanted, effort: &mut Effort) -> Result<ReadFile> {
    let mut opened = open::for_reading(path)?;
    let mut file = ReadFile {
        path: path.asked().to_owned(),
        size: open::size(&opened.stat),
        mtime_ms: open::modified(&opened.stat),
        ..Default::default()
    };
    if wanted.room < SMALLEST_PAGE && file.size > 0 {
        file.truncated = true;
        match wanted.from {
            From::Line { first, .. } => file.next_offset = Some(first),
            From::Byte(byte) => file.next_byte_offset = Some(byte),
        }
        return Ok(file);
    }
    let stored = match open::load(&mut opened, terms.max_file_bytes.min(effort.hash), path)? {
        Some(bytes) => {
            file.size = bytes.len() as u64;
            effort.hash -= file.size;
            file.sha256 = Some(open::sha256(&bytes));
            Stored::Whole(bytes)
        }
        None => Stored::Large(opened),
    };
    fill(&mut file, &stored, wanted, effort, path)?;
    Ok(file)
}

fn fill(file: &mut ReadFile, stored: &Stored, wanted: Wanted, effort: &mut Effort, path: &Named) -> Result<()> {
    let Wanted { from, room, encoding, .. } = wanted;
    let (found, mark) = text::detect(&stored.piece(0, 4, path)?);
    let start = start(stored, wanted, (found, mark as u64), effort, path)?;
    let most = match encoding {
        Encoding::Base64 => wanted.most.min(room / 4 * 3),
        Encoding::Utf8 => wanted.most.min(room),
    };
    let mut bytes = stored.piece(start, most, path)?;
    let full = bytes.len() == most;
    let counted = cut_to_count(&mut bytes, found, from);
    if matches!(from, From::Line { .. }) && full && !counted {
        cut_to_lines(&mut bytes, found);
    }
    match encoding {
        Encoding::Base64 => {
            file.encoding = Found::Base64;
            file.content = STANDARD.encode(&bytes);
        }
        Encoding::Utf8 => {
            file.encoding = found;
            show(file, &mut bytes, room, if full || counted { After::More } else { After::Nothing }, from);
        }
    }
    let end = start + bytes.len() as u64;
    file.size = stored.size().max(end);
    file.truncated = end < file.size;
    if file.truncated {
        file.next_byte_offset = Some(end);
        if let From::Line { first, .. } = from {
            file.next_offset = next_line(&bytes, found, first);
        }
    }
    Ok(())
}

/// The first byte that is wanted; a mark is no part of the text, and UTF-16 is read by whole units.
fn start(
    stored: &Stored,
    wanted: Wanted,
    (found, mark): (Found, u64),
    effort: &mut Effort,
    path: &Named,
) -> Result<u64> {
    let text_start = if wanted.encoding == Encoding::Base64 { 0 } else { mark };
    let wide = matches!(found, Found::Utf16le | Found::Utf16be) && text_start > 0;
    match wanted.from {
        From::Line { first: 1, .. } => Ok(text_start),
        From::Line { first, .. } => stored.line_start(first, found, mark, effort, path),
        From::Byte(byte) if byte > stored.size() => {
            let size = stored.size();
            let message = format!("`{path}`: `byte_offset` is {byte}, but the file has {size} bytes");
            Err(Failure::invalid(message).with("size", size))
        }
        From::Byte(byte) if wide => Ok((byte & !1).max(text_start)),
        From::Byte(byte) => Ok(byte.max(text_start)),
    }
}

/// Decodes; where the price cuts inside a line, the cut moves to the end of the line before. What is shown stays.
fn show(file: &mut ReadFile, bytes: &mut Vec<u8>, room: usize, after: After, from: From) {
    let mut decoded = text::decode(bytes, file.encoding, room, after);
    if decoded.consumed < bytes.len() {
        bytes.truncate(decoded.consumed);
        if matches!(from, From::Line { .. }) && cut_to_lines(bytes, file.encoding) {
            decoded = text::decode(bytes, file.encoding, room, After::More);
        }
    }
    file.content = decoded.text;
    file.invalid_utf8 = decoded.invalid;
}

/// Keeps as many lines as were asked for; whether the bytes held that many.
fn cut_to_count(bytes: &mut Vec<u8>, found: Found, from: From) -> bool {
    let From::Line { count: Some(count), .. } = from else {
        return false;
    };
    match text::after_lines(bytes, found, count) {
        (Some(end), _) => {
            bytes.truncate(end);
            true
        }
        (None, _) => false,
    }
}

/// Drops what follows the last line end; a single long line stays as it is.
fn cut_to_lines(bytes: &mut Vec<u8>, found: Found) -> bool {
    let (_, lines) = text::after_lines(bytes, found, u64::MAX);
    match text::after_lines(bytes, found, lines) {
        (Some(end), _) if lines > 0 && end < bytes.len() => {
            bytes.truncate(end);
            true
        }
        _ => false,
    }
}
