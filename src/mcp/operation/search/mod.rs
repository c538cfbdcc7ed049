//! `search_*`: lines or names that match, page by page, while the search goes on.

mod page;

use super::{Call, Effect, Facts, Family, Feature, Operation};
use crate::broker::refused::Refused;
use crate::worker::search;
use page::{PageAnswer, state};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

const FACTS: Facts = Facts {
    name: "",
    family: Family::Search,
    action: "",
    feature: Feature::Files,
    effect: Effect::Reads,
    about: "",
    repl_only: &[],
};

#[derive(Debug)]
pub struct Start;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartParams {
    #[schemars(length(max = 65_536))]
    pattern: String,
    /// default: the workspace
    path: Option<String>,
    kind: Option<Kind>,
    /// no regex
    literal: Option<bool>,
    #[schemars(extend("default" = "smart"))]
    case: Option<Case>,
    /// "*.rs", "!target"
    #[schemars(length(max = 100))]
    globs: Option<Vec<String>>,
    /// lines around
    #[schemars(range(min = 0, max = 10))]
    context: Option<usize>,
    /// of a page
    #[schemars(range(min = 1, max = 1000), extend("default" = 100))]
    limit: Option<usize>,
    include_hidden: Option<bool>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Kind {
    Content,
    Files,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Case {
    Sensitive,
    Insensitive,
    Smart,
}

impl Operation for Start {
    const FACTS: Facts = Facts {
        name: "search_start",
        action: "start",
        about: "Search lines or file names as ripgrep does, in path order; the first page comes at once. Refuses \
                patterns and globs that do not compile, and more than 4 searches at work.",
        ..FACTS
    };
    type Params = StartParams;
    type Answer = PageAnswer;

    async fn carry_out(call: Call<'_>, params: StartParams) -> Result<PageAnswer, Refused> {
        Ok(PageAnswer::of(call.broker.start_search(params.request()).await?))
    }

    fn summary(answer: &PageAnswer) -> String {
        answer.summary()
    }
}

impl StartParams {
    pub fn request(self) -> search::Request {
        search::Request {
            search_id: String::new(),
            workspace: PathBuf::new(),
            pattern: self.pattern,
            path: self.path.map(PathBuf::from),
            kind: match self.kind {
                None | Some(Kind::Content) => search::Kind::Content,
                Some(Kind::Files) => search::Kind::Files,
            },
            literal: self.literal.unwrap_or(false),
            case: match self.case {
                Some(Case::Sensitive) => search::Case::Sensitive,
                Some(Case::Insensitive) => search::Case::Insensitive,
                None | Some(Case::Smart) => search::Case::Smart,
            },
            globs: self.globs.unwrap_or_default(),
            context: self.context.unwrap_or(0),
            limit: self.limit,
            include_hidden: self.include_hidden.unwrap_or(false),
            wait_ms: None,
        }
    }
}

#[derive(Debug)]
pub struct More;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MoreParams {
    search_id: String,
    /// default: after the last page
    #[schemars(range(min = 0, max = 9_007_199_254_740_992_u64))]
    offset: Option<u64>,
    #[schemars(range(min = 1, max = 1000), extend("default" = 100))]
    limit: Option<u64>,
    #[schemars(range(min = 0, max = 10_000))]
    wait_ms: Option<u64>,
}

impl Operation for More {
    const FACTS: Facts = Facts {
        name: "search_more",
        action: "more",
        about: "The next page of a search, or the one at offset. Refuses unknown ids.",
        ..FACTS
    };
    type Params = MoreParams;
    type Answer = PageAnswer;

    async fn carry_out(call: Call<'_>, params: MoreParams) -> Result<PageAnswer, Refused> {
        let MoreParams { search_id, offset, limit, wait_ms } = params;
        Ok(PageAnswer::of(call.broker.more_of_search(search_id, offset, limit, wait_ms.unwrap_or(0)).await?))
    }

    fn summary(answer: &PageAnswer) -> String {
        answer.summary()
    }
}

#[derive(Debug)]
pub struct Stop;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StopParams {
    search_id: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct StopAnswer {
    /// False: it was over.
    stopped: bool,
}

impl Operation for Stop {
    const FACTS: Facts = Facts {
        name: "search_stop",
        action: "stop",
        effect: Effect::Sets,
        about: "End a search; its matches stay. Refuses unknown ids.",
        ..FACTS
    };
    type Params = StopParams;
    type Answer = StopAnswer;

    async fn carry_out(call: Call<'_>, params: StopParams) -> Result<StopAnswer, Refused> {
        Ok(StopAnswer { stopped: call.broker.stop_search(params.search_id).await? })
    }

    fn summary(answer: &StopAnswer) -> String {
        if answer.stopped { "stopped".into() } else { "it was over".into() }
    }
}

#[derive(Debug)]
pub struct List;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListParams {}

#[derive(Debug, Serialize, JsonSchema)]
pub struct ListAnswer {
    searches: Vec<Summary>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct Summary {
    search_id: String,
    pattern: String,
    path: String,
    state: &'static str,
    total: usize,
    searched_files: u64,
    duration_ms: u64,
}

impl Operation for List {
    const FACTS: Facts = Facts { name: "search_list", action: "list", about: "Searches and their state.", ..FACTS };
    type Params = ListParams;
    type Answer = ListAnswer;

    async fn carry_out(call: Call<'_>, _: ListParams) -> Result<ListAnswer, Refused> {
        Ok(ListAnswer { searches: call.broker.searches().await?.into_iter().map(Summary::of).collect() })
    }

    fn summary(answer: &ListAnswer) -> String {
        format!("{} searches", answer.searches.len())
    }
}

impl Summary {
    fn of(summary: search::Summary) -> Self {
        let search::Summary { search_id, pattern, path, state: at, total, searched_files, duration_ms } = summary;
        Summary { search_id, pattern, path, state: state(at), total, searched_files, duration_ms }
    }
}
