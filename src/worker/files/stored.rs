//! Where the pages of a read come from, and what one call may spend on looking for them.

use super::open::{self, Opened};
use super::text;
use crate::worker::ask::{Found, Terms};
use crate::worker::failure::{Code, Failure, Result};
use crate::worker::names::Named;
use std::os::unix::fs::FileExt;

/// How far into large files lines are looked for in one call: about a tenth of a second.
const SCAN_BYTES: u64 = 256 << 20;

/// Bytes of small files that are read and hashed in one call, however little of them is wanted.
const HASHED_BYTES: u64 = 64 << 20;

const SCAN_STEP: usize = 128 << 10;

/// What one call may still spend on bytes it does not show.
#[derive(Debug)]
pub struct Effort {
    pub hash: u64,
    scan: u64,
}

impl Effort {
    pub fn of_one_call(terms: &Terms) -> Effort {
        Effort { hash: HASHED_BYTES.max(terms.max_file_bytes), scan: SCAN_BYTES }
    }
}

/// Where a file's bytes come from: memory when it is small, so that content, size and hash are of one moment.
#[derive(Debug)]
pub enum Stored {
    Whole(Vec<u8>),
    Large(Opened),
}

impl Stored {
    pub fn size(&self) -> u64 {
        match self {
            Stored::Whole(bytes) => bytes.len() as u64,
            Stored::Large(opened) => opened.file.metadata().map_or(open::size(&opened.stat), |now| now.len()),
        }
    }

    /// At most `most` bytes from `start`; fewer only where the file ends.
    pub fn piece(&self, start: u64, most: usize, path: &Named) -> Result<Vec<u8>> {
        match self {
            Stored::Whole(bytes) => {
                let start = usize::try_from(start).unwrap_or(usize::MAX).min(bytes.len());
                Ok(bytes[start..start.saturating_add(most).min(bytes.len())].to_vec())
            }
            Stored::Large(opened) => {
                let there = usize::try_from(self.size().saturating_sub(start)).unwrap_or(usize::MAX);
                let mut bytes = vec![0; most.min(there)];
                let mut filled = 0;
                while filled < bytes.len() {
                    match opened.file.read_at(&mut bytes[filled..], start + filled as u64) {
                        Ok(0) => break,
                        Ok(count) => filled += count,
                        Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                        Err(error) => return Err(open::io(&error, path)),
                    }
                }
                bytes.truncate(filled);
                Ok(bytes)
            }
        }
    }

    pub fn line_start(
        &self,
        line: u64,
        found: Found,
        text_start: u64,
        effort: &mut Effort,
        path: &Named,
    ) -> Result<u64> {
        let mut at = text_start;
        let mut to_skip = line - 1;
        let mut last = Vec::new();
        loop {
            let bytes = self.piece(at, SCAN_STEP, path)?;
            if bytes.is_empty() {
                break;
            }
            match text::after_lines(&bytes, found, to_skip) {
                (Some(end), _) => return Ok(at + end as u64),
                (None, lines) => to_skip -= lines,
            }
            at += bytes.len() as u64;
            effort.scan = effort.scan.saturating_sub(bytes.len() as u64);
            last = bytes;
            if effort.scan == 0 && at < self.size() {
                return Err(self.too_far(line, path));
            }
        }
        let ends_open = next_line(&last, found, 0).is_none() && !last.is_empty();
        let lines = line - 1 - to_skip + u64::from(ends_open);
        if line == lines + 1 {
            return Ok(at);
        }
        let message = format!("`{path}`: `offset` is {line}, but the file has {lines} lines");
        Err(Failure::invalid(message).with("lines", lines))
    }

    fn too_far(&self, line: u64, path: &Named) -> Failure {
        let most = SCAN_BYTES >> 20;
        let message = format!(
            "`{path}`: line {line} is not within the {most} MiB in which a call looks for lines; `byte_offset` goes on"
        );
        Failure::new(Code::TooLarge, message).with("size", self.size())
    }
}

/// The number of the line after these bytes, if they end with a whole one.
pub fn next_line(bytes: &[u8], found: Found, first: u64) -> Option<u64> {
    let (_, lines) = text::after_lines(bytes, found, u64::MAX);
    let (end, _) = text::after_lines(bytes, found, lines);
    (lines > 0 && end == Some(bytes.len())).then_some(first + lines)
}
