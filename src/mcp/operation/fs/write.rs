//! `fs_write`: a file's whole content, or more at its end.

use super::{FACTS, backup};
use crate::broker::files::Kept;
use crate::broker::refused::Refused;
use crate::mcp::operation::words::{Encoding, decoded};
use crate::mcp::operation::{Call, Effect, Facts, Operation};
use crate::worker::ask::{Write, Written};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug)]
pub struct WriteFile;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    path: String,
    content: String,
    encoding: Option<Encoding>,
    /// octal, "644"
    #[schemars(regex(pattern = "^0?[0-7]{3}$"))]
    mode: Option<String>,
    append: Option<bool>,
    create_parents: Option<bool>,
    /// only if it still has this hash
    #[schemars(regex(pattern = "^[0-9A-Fa-f]{64}$"))]
    if_sha256: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Answer {
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    created: bool,
    /// False when the file was written in place, to keep its hard links or owner.
    atomic: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    backup_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backup: Option<String>,
}

impl Operation for WriteFile {
    const FACTS: Facts = Facts {
        name: "fs_write",
        action: "write",
        effect: Effect::Changes,
        about: "Write a file as a whole, old or new and never half; what it replaces is backed up. Refuses paths that \
                the cell cannot write, and more than max_file_bytes.",
        ..FACTS
    };
    type Params = Params;
    type Answer = Answer;

    async fn carry_out(call: Call<'_>, params: Params) -> Result<Answer, Refused> {
        let (written, kept) = call.broker.write_file(params.request()?).await?;
        Ok(Answer::of(written, kept))
    }

    fn summary(answer: &Answer) -> String {
        format!("{} bytes {}", answer.bytes, if answer.created { "in a new file" } else { "written" })
    }
}

impl Params {
    pub fn request(self) -> Result<Write, Refused> {
        Ok(Write {
            path: self.path,
            content: decoded("content", self.content, self.encoding.unwrap_or_default())?,
            // The schema's pattern lets nothing else through.
            mode: self.mode.and_then(|digits| u32::from_str_radix(&digits, 8).ok()),
            append: self.append.unwrap_or(false),
            create_parents: self.create_parents.unwrap_or(false),
            if_sha256: self.if_sha256,
        })
    }
}

impl Answer {
    pub fn of(written: Written, kept: Kept) -> Self {
        let (backup_id, backup) = backup(kept);
        let Written { bytes, sha256, created, atomic, .. } = written;
        Answer { bytes, sha256, created, atomic, backup_id, backup }
    }
}
