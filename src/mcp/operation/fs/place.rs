//! `fs_move`, `fs_mkdir` and `fs_restore`: where things are, and what was there.

use super::{FACTS, backup};
use crate::broker::files::Kept;
use crate::broker::refused::Refused;
use crate::mcp::operation::{Call, Effect, Facts, Operation};
use crate::worker::ask::{self, Ask, Told, Written};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug)]
pub struct MoveFile;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveParams {
    from: String,
    to: String,
    overwrite: Option<bool>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct MoveAnswer {
    moved: bool,
    /// Across mounts: copied, then removed.
    copied: bool,
}

impl Operation for MoveFile {
    const FACTS: Facts = Facts {
        name: "fs_move",
        action: "move",
        effect: Effect::Changes,
        about: "Move or rename. Refuses a target that exists without overwrite, and mount points.",
        ..FACTS
    };
    type Params = MoveParams;
    type Answer = MoveAnswer;

    async fn carry_out(call: Call<'_>, params: MoveParams) -> Result<MoveAnswer, Refused> {
        let MoveParams { from, to, overwrite } = params;
        let ask = ask::Move { from, to, overwrite: overwrite.unwrap_or(false) };
        let told = |told| if let Told::Move(moved) = told { Some(moved) } else { None };
        let ask::Moved { moved, copied } = call.broker.files(Ask::Move(ask), told).await?;
        Ok(MoveAnswer { moved, copied })
    }

    fn summary(answer: &MoveAnswer) -> String {
        if answer.moved { "moved".into() } else { "nothing moved".into() }
    }
}

#[derive(Debug)]
pub struct MakeDirectory;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MakeParams {
    path: String,
    #[schemars(extend("default" = true))]
    parents: Option<bool>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct MakeAnswer {
    created: bool,
}

impl Operation for MakeDirectory {
    const FACTS: Facts = Facts {
        name: "fs_mkdir",
        action: "mkdir",
        effect: Effect::Sets,
        about: "Make a directory; one that is there is fine. Refuses where something else stands.",
        ..FACTS
    };
    type Params = MakeParams;
    type Answer = MakeAnswer;

    async fn carry_out(call: Call<'_>, params: MakeParams) -> Result<MakeAnswer, Refused> {
        let ask = ask::MakeDir { path: params.path, parents: params.parents };
        let told = |told| if let Told::MakeDir(made) = told { Some(made) } else { None };
        let ask::MadeDir { created } = call.broker.files(Ask::MakeDir(ask), told).await?;
        Ok(MakeAnswer { created })
    }

    fn summary(answer: &MakeAnswer) -> String {
        if answer.created { "created".into() } else { "it was there".into() }
    }
}

#[derive(Debug)]
pub struct RestoreFile;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RestoreParams {
    backup_id: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct RestoreAnswer {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backup_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backup: Option<String>,
}

impl Operation for RestoreFile {
    const FACTS: Facts = Facts {
        name: "fs_restore",
        action: "restore",
        effect: Effect::Changes,
        about: "Put back what a write or edit replaced, by its backup_id. Refuses unknown ids and paths that the cell \
                cannot write.",
        ..FACTS
    };
    type Params = RestoreParams;
    type Answer = RestoreAnswer;

    async fn carry_out(call: Call<'_>, params: RestoreParams) -> Result<RestoreAnswer, Refused> {
        let (path, written, kept) = call.broker.restore_file(&params.backup_id).await?;
        Ok(RestoreAnswer::of(path, written, kept))
    }

    fn summary(answer: &RestoreAnswer) -> String {
        format!("{} is as it was", answer.path)
    }
}

impl RestoreAnswer {
    pub fn of(path: String, written: Written, kept: Kept) -> Self {
        let (backup_id, backup) = backup(kept);
        RestoreAnswer { path, sha256: written.sha256, backup_id, backup }
    }
}
