//! `fs_read`: files by line or byte, one or many.

use super::{FACTS, moment};
use crate::broker::refused::Refused;
use crate::mcp::operation::words::Encoding;
use crate::mcp::operation::{Call, Facts, Operation};
use crate::worker::ask::{self, Ask, Found, Told};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Without a number a reply holds so many times what it holds of a process's output: a file is what was asked for.
const PLENTY: u64 = 4;

#[derive(Debug)]
pub struct ReadFiles;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    path: Option<String>,
    #[schemars(length(max = 1000))]
    paths: Option<Vec<String>>,
    /// first line, from 1
    #[schemars(range(min = 1, max = 9_007_199_254_740_992_u64))]
    offset: Option<u64>,
    /// lines
    #[schemars(range(min = 1, max = 9_007_199_254_740_992_u64))]
    limit: Option<u64>,
    #[schemars(range(min = 0, max = 9_007_199_254_740_992_u64))]
    byte_offset: Option<u64>,
    /// of each file
    #[schemars(range(min = 1, max = 1_048_576))]
    max_bytes: Option<u64>,
    encoding: Option<Encoding>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Answer {
    files: Vec<File>,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(inline)]
struct File {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    /// When it is not plain UTF-8: `utf8-bom`, `utf16le`, `utf16be`, `base64`.
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mtime: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_byte_offset: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    invalid_utf8: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Failure>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct Failure {
    code: &'static str,
    message: String,
}

impl Operation for ReadFiles {
    const FACTS: Facts = Facts {
        name: "fs_read",
        action: "read",
        about: "Read a file (path) or many (paths), paged by lines or bytes. Refuses what is no regular file or not \
                in the cell.",
        ..FACTS
    };
    type Params = Params;
    type Answer = Answer;

    async fn carry_out(call: Call<'_>, params: Params) -> Result<Answer, Refused> {
        let told = |told| if let Told::Read(files) = told { Some(files) } else { None };
        let plenty = PLENTY * call.broker.inline_bytes() as u64;
        let files = call.broker.files(Ask::Read(params.request(plenty)), told).await?;
        Ok(Answer::of(files))
    }

    fn summary(answer: &Answer) -> String {
        let failed = answer.files.iter().filter(|file| file.error.is_some()).count();
        match &answer.files[..] {
            [file] if failed == 0 => {
                let more = if file.truncated == Some(true) { ", more follows" } else { "" };
                format!("{} of {} bytes{more}", file.path, file.size.unwrap_or(0))
            }
            files => format!("{} files, {failed} failed", files.len()),
        }
    }
}

impl Params {
    /// `plenty`: what a reply holds when no number is given.
    pub fn request(self, plenty: u64) -> ask::Read {
        let files = self.paths.as_ref().map_or(1, Vec::len) as u64;
        // As JSON a byte can become six, as base64 one and a third; the worker's own bound is above this.
        let room =
            self.max_bytes.map_or(plenty, |each| each.saturating_mul(files.max(1)).saturating_mul(2).max(plenty));
        ask::Read {
            path: self.path,
            paths: self.paths,
            offset: self.offset,
            limit: self.limit,
            byte_offset: self.byte_offset,
            max_bytes: self.max_bytes,
            encoding: match self.encoding.unwrap_or_default() {
                Encoding::Utf8 => ask::Encoding::Utf8,
                Encoding::Base64 => ask::Encoding::Base64,
            },
            reply_bytes: Some(room),
        }
    }
}

impl Answer {
    pub fn of(files: Vec<ask::ReadFile>) -> Self {
        Answer { files: files.into_iter().map(File::of).collect() }
    }
}

impl File {
    fn of(file: ask::ReadFile) -> Self {
        if let Some(failure) = file.error {
            let error = Failure { code: failure.code.name(), message: failure.message };
            return File { path: file.path, error: Some(error), ..File::default() };
        }
        File {
            path: file.path,
            content: Some(file.content),
            encoding: match file.encoding {
                Found::Utf8 => None,
                Found::Utf8Bom => Some("utf8-bom"),
                Found::Utf16le => Some("utf16le"),
                Found::Utf16be => Some("utf16be"),
                Found::Base64 => Some("base64"),
            },
            size: Some(file.size),
            mtime: Some(moment(file.mtime_ms)),
            truncated: Some(file.truncated),
            next_offset: file.next_offset,
            next_byte_offset: file.next_byte_offset,
            sha256: file.sha256,
            invalid_utf8: Some(file.invalid_utf8).filter(|count| *count > 0),
            error: None,
        }
    }
}
