//! `fs_list` and `fs_stat`: what is there.

use super::{FACTS, kind, moment, octal};
use crate::broker::refused::Refused;
use crate::mcp::operation::{Call, Facts, Operation};
use crate::worker::ask::{self, Ask, Told};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Entries of a page when no number is given.
const PAGE: u32 = 500;

#[derive(Debug)]
pub struct ListFiles;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListParams {
    path: String,
    #[schemars(range(min = 1, max = 128), extend("default" = 1))]
    depth: Option<u32>,
    #[schemars(range(min = 1, max = 10_000), extend("default" = 500))]
    limit: Option<u32>,
    #[schemars(length(max = 8192))]
    cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct ListAnswer {
    entries: Vec<Entry>,
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct Entry {
    path: String,
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mtime: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name_bytes: Option<String>,
    /// Why a directory's own entries are not here.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Operation for ListFiles {
    const FACTS: Facts = Facts {
        name: "fs_list",
        action: "list",
        about: "Entries below a directory in path order. Refuses what is no directory.",
        ..FACTS
    };
    type Params = ListParams;
    type Answer = ListAnswer;

    async fn carry_out(call: Call<'_>, params: ListParams) -> Result<ListAnswer, Refused> {
        let ListParams { path, depth, limit, cursor } = params;
        let ask = ask::List { path, depth, limit: Some(limit.unwrap_or(PAGE)), cursor };
        let told = |told| if let Told::List(listing) = told { Some(listing) } else { None };
        Ok(ListAnswer::of(call.broker.files(Ask::List(ask), told).await?))
    }

    fn summary(answer: &ListAnswer) -> String {
        format!("{} entries{}", answer.entries.len(), if answer.truncated { ", more follow" } else { "" })
    }
}

impl ListAnswer {
    pub fn of(listing: ask::Listing) -> Self {
        let ask::Listing { entries, truncated, next_cursor } = listing;
        ListAnswer { entries: entries.into_iter().map(Entry::of).collect(), truncated, next_cursor }
    }
}

impl Entry {
    fn of(entry: ask::Entry) -> Self {
        Entry {
            path: entry.path,
            r#type: kind(entry.kind),
            mode: entry.mode.as_deref().map(octal),
            size: entry.size,
            mtime: entry.mtime_ms.map(moment),
            name_bytes: entry.name_bytes,
            error: entry.error.map(|failure| failure.to_string()),
        }
    }
}

#[derive(Debug)]
pub struct StatFile;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StatParams {
    path: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct StatAnswer {
    path: String,
    r#type: &'static str,
    mode: String,
    size: u64,
    mtime: String,
    atime: String,
    owner: u32,
    group: u32,
    links: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_type: Option<&'static str>,
}

impl Operation for StatFile {
    const FACTS: Facts = Facts {
        name: "fs_stat",
        action: "stat",
        about: "Type, mode, size, times and owner of a path itself; a symlink is not followed.",
        ..FACTS
    };
    type Params = StatParams;
    type Answer = StatAnswer;

    async fn carry_out(call: Call<'_>, params: StatParams) -> Result<StatAnswer, Refused> {
        let told = |told| if let Told::Stat(facts) = told { Some(facts) } else { None };
        Ok(StatAnswer::of(call.broker.files(Ask::Stat(ask::Stat { path: params.path }), told).await?))
    }

    fn summary(answer: &StatAnswer) -> String {
        format!("{} {} {} bytes", answer.r#type, answer.mode, answer.size)
    }
}

impl StatAnswer {
    pub fn of(facts: ask::Facts) -> Self {
        StatAnswer {
            path: facts.path,
            r#type: kind(facts.kind),
            mode: octal(&facts.mode),
            size: facts.size,
            mtime: moment(facts.mtime_ms),
            atime: moment(facts.atime_ms),
            owner: facts.uid,
            group: facts.gid,
            links: facts.nlink,
            target: facts.target,
            target_type: facts.target_type.map(kind),
        }
    }
}
