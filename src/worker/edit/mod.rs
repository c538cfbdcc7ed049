//! `fs_edit`: parts of a file replaced by text, by line or beside an anchor; all or nothing, and no byte outside an
//! edit changes.

mod apply;
mod diff;
mod document;
mod lines;
mod meant;
#[cfg(test)]
mod model_tests;
mod nearest;

use super::ask::{Edit, Edited, Terms};
use super::failure::{Code, Failure, Result};
use super::files::change::{New, Old, change};
use super::files::condition::{check_hash, only_if};
use super::files::open::sha256;
use super::names::Named;
use crate::sys::Errno;
use document::Document;
use meant::Meant;

const LONGEST_DIFF: usize = 64 << 10;

pub fn edit(terms: &Terms, ask: &Edit) -> Result<Edited> {
    let path = Named::parse(&ask.path, terms)?;
    check_hash(ask.if_sha256.as_deref())?;
    let edits = meant::meant(&ask.edits)?;
    let mut edited = None;
    let written = change(terms, &path, None, |old| {
        let bytes = readable(old, terms, &path)?;
        only_if(ask.if_sha256.as_deref(), old, &path)?;
        let (new, outcome) = carry_out(bytes, &edits, terms, &path)?;
        edited = Some(outcome);
        Ok(if ask.dry_run || new == bytes { New::Same } else { New::Content(new) })
    })?;
    let edited = edited.ok_or_else(|| Failure::new(Code::IoError, format!("`{path}` was not edited")))?;
    Ok(match written {
        None => edited,
        Some(written) => Edited { written: true, atomic: written.atomic, previous: written.previous, ..edited },
    })
}

fn readable<'b>(old: Old<'b>, terms: &Terms, path: &Named) -> Result<&'b [u8]> {
    match old {
        Old::Content(bytes) => Ok(bytes),
        Old::Absent => Err(path.absent()),
        Old::Unreadable => Err(Failure::errno(Errno::EACCES, path)),
        Old::Large(size) => {
            let most = terms.max_file_bytes;
            let message = format!("`{path}` has {size} bytes; files up to {most} (`max_file_bytes`) are edited");
            Err(Failure::new(Code::TooLarge, message).with("size", size).with("max_file_bytes", most))
        }
    }
}

fn carry_out(bytes: &[u8], edits: &[Meant<'_>], terms: &Terms, path: &Named) -> Result<(Vec<u8>, Edited)> {
    let before = Document::parse(bytes)?;
    let mut after = before.clone();
    let in_file = |failure: Failure| Failure { message: format!("`{path}`: {}", failure.message), ..failure };
    let replacements = apply::apply(&mut after, edits, terms.max_file_bytes).map_err(in_file)?;
    let new = after.encode();
    let (diff, diff_truncated) = diff::unified(&before.text, &after.text, Some(path.asked()), LONGEST_DIFF);
    let sha256 = sha256(&new);
    Ok((new, Edited { diff, diff_truncated, replacements, sha256, written: false, atomic: true, previous: None }))
}
