//! `fs_edit`: changes by text, line range or anchor, all of them or none.

use super::{FACTS, backup};
use crate::broker::files::Kept;
use crate::broker::refused::Refused;
use crate::mcp::operation::{Call, Effect, Facts, Operation};
use crate::worker::ask::{Change, Edit, Edited};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug)]
pub struct EditFile;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    path: String,
    /// each: old_text (count times, 0 = all), or start_line..end_line, or offset lines from the one with anchor
    #[schemars(length(max = 1000))]
    edits: Vec<One>,
    dry_run: Option<bool>,
    #[schemars(regex(pattern = "^[0-9A-Fa-f]{64}$"))]
    if_sha256: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
struct One {
    old_text: Option<String>,
    new_text: Option<String>,
    #[schemars(extend("default" = 1))]
    count: Option<u64>,
    start_line: Option<u64>,
    end_line: Option<u64>,
    anchor: Option<String>,
    offset: Option<i64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Answer {
    diff: String,
    diff_truncated: bool,
    replacements: u64,
    sha256: String,
    /// False for a dry run, and when nothing changes.
    written: bool,
    atomic: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    backup_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backup: Option<String>,
}

impl Operation for EditFile {
    const FACTS: Facts = Facts {
        name: "fs_edit",
        action: "edit",
        effect: Effect::Changes,
        about: "Edit a file, all edits or none, and show the diff. Refuses text that is not there (with the nearest) or \
                there more often than count, and edits that overlap.",
        ..FACTS
    };
    type Params = Params;
    type Answer = Answer;

    async fn carry_out(call: Call<'_>, params: Params) -> Result<Answer, Refused> {
        let (edited, kept) = call.broker.edit_file(params.request()).await?;
        Ok(Answer::of(edited, kept))
    }

    fn summary(answer: &Answer) -> String {
        let word = if answer.written { "" } else { ", nothing written" };
        format!("{} replacements{word}", answer.replacements)
    }
}

impl Params {
    pub fn request(self) -> Edit {
        let change = |one: One| {
            let One { old_text, new_text, count, start_line, end_line, anchor, offset } = one;
            Change { old_text, count, start_line, end_line, anchor, offset, new_text }
        };
        Edit {
            path: self.path,
            edits: self.edits.into_iter().map(change).collect(),
            dry_run: self.dry_run.unwrap_or(false),
            if_sha256: self.if_sha256,
        }
    }
}

impl Answer {
    pub fn of(edited: Edited, kept: Kept) -> Self {
        let (backup_id, backup) = backup(kept);
        let Edited { diff, diff_truncated, replacements, sha256, written, atomic, .. } = edited;
        Answer { diff, diff_truncated, replacements, sha256, written, atomic, backup_id, backup }
    }
}
