//! `fs_write` and `fs_restore`: a file's whole content, or more at its end.

use super::change::{New, Old, change};
use super::condition::{check_hash, only_if};
use super::directories::Parents;
use crate::worker::ask::{Restore, Terms, Write, Written};
use crate::worker::failure::{Code, Failure, Result};
use crate::worker::names::Named;

pub fn write(terms: &Terms, ask: &Write) -> Result<Written> {
    let path = Named::parse(&ask.path, terms)?;
    check_mode(ask.mode)?;
    check_hash(ask.if_sha256.as_deref())?;
    check_size(terms, ask.content.len() as u64, &path)?;
    let parents = if ask.create_parents { Some(Parents::make(&path)?) } else { None };
    let make = |old: Old<'_>| {
        only_if(ask.if_sha256.as_deref(), old, &path)?;
        if ask.append { appended(terms, old, &ask.content, &path) } else { Ok(New::Content(ask.content.clone())) }
    };
    let written = put(terms, &path, ask.mode, make)?;
    parents.into_iter().for_each(Parents::keep);
    Ok(written)
}

pub fn restore(terms: &Terms, ask: &Restore) -> Result<Written> {
    let path = Named::parse(&ask.path, terms)?;
    check_mode(Some(ask.mode))?;
    check_size(terms, ask.content.len() as u64, &path)?;
    put(terms, &path, Some(ask.mode), |_| Ok(New::Content(ask.content.clone())))
}

fn put(terms: &Terms, path: &Named, mode: Option<u32>, make: impl FnMut(Old<'_>) -> Result<New>) -> Result<Written> {
    let written = change(terms, path, mode, make)?;
    written.ok_or_else(|| Failure::new(Code::IoError, format!("`{path}` was not written")))
}

fn appended(terms: &Terms, old: Old<'_>, more: &[u8], path: &Named) -> Result<New> {
    match old {
        Old::Absent => Ok(New::Content(more.to_vec())),
        Old::Content(bytes) if (bytes.len() + more.len()) as u64 <= terms.max_file_bytes => {
            Ok(New::Content([bytes, more].concat()))
        }
        Old::Content(_) | Old::Large(_) => Ok(New::Tail(more.to_vec())),
        Old::Unreadable => {
            let message = format!("`{path}` can be written and not read; `append` needs to read it");
            Err(Failure::new(Code::PathNotAllowed, message))
        }
    }
}

fn check_mode(mode: Option<u32>) -> Result<()> {
    match mode {
        Some(mode) if mode > 0o777 => Err(Failure::invalid(format!(
            "`mode` is {mode:04o}; permission bits up to 0777 are accepted, setuid, setgid and sticky are not"
        ))),
        _ => Ok(()),
    }
}

fn check_size(terms: &Terms, bytes: u64, path: &Named) -> Result<()> {
    let most = terms.max_file_bytes;
    if bytes <= most {
        return Ok(());
    }
    let message = format!("`content` for `{path}` has {bytes} bytes; at most {most} (`max_file_bytes`) are written");
    Err(Failure::new(Code::TooLarge, message).with("max_file_bytes", most))
}
