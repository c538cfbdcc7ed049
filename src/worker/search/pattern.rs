//! A request's pattern, compiled: what a line or a path is held against.
//!
//! The engine is linear in the text whatever the pattern; the bounds here keep compiling short and the
//! compiled form small.

use super::failure::Failure;
use super::globs;
use super::names::as_path;
use super::page::Syntax;
use super::request::{Case, Kind, Request};
use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use ignore::overrides::{Override, OverrideBuilder};

/// Far beyond what anyone types; a list of words this long belongs in several searches.
const PATTERN_BYTES: usize = 32 << 10;
/// The compiled automaton, and what a thread may cache of its determinised form.
const PROGRAM_BYTES: usize = 4 << 20;
const CACHE_BYTES: usize = 4 << 20;
const NESTING: u32 = 100;

#[derive(Debug, Clone)]
pub enum Pattern {
    Regex(RegexMatcher),
    Glob(Override),
}

impl Pattern {
    pub fn compile(request: &Request) -> Result<(Pattern, Syntax), Failure> {
        let text = &request.pattern;
        if text.len() > PATTERN_BYTES {
            let message = format!("`pattern` has {} bytes; at most {PATTERN_BYTES} are possible", text.len());
            return Err(Failure::invalid(message));
        }
        let is_names = request.kind == Kind::Files;
        if is_names && !request.literal && globs::looks_like_one(text) {
            return Ok((Pattern::Glob(name_glob(text, request.case)?), Syntax::Glob));
        }
        let syntax = if request.literal { Syntax::Literal } else { Syntax::Regex };
        let mut builder = RegexMatcherBuilder::new();
        builder.size_limit(PROGRAM_BYTES).dfa_size_limit(CACHE_BYTES).nest_limit(NESTING);
        builder.fixed_strings(request.literal);
        match request.case {
            Case::Sensitive => {}
            Case::Insensitive => drop(builder.case_insensitive(true)),
            Case::Smart => drop(builder.case_smart(true)),
        }
        if !is_names {
            builder.multi_line(true).line_terminator(Some(b'\n'));
        }
        let matcher = builder.build(text).map_err(|error| Failure::invalid(explain(&error.to_string())))?;
        Ok((Pattern::Regex(matcher), syntax))
    }

    /// Whether a path, relative to where the search began, matches.
    pub fn matches_name(&self, path: &[u8]) -> bool {
        match self {
            Pattern::Regex(matcher) => matcher.is_match(path).unwrap_or(false),
            Pattern::Glob(glob) => glob.matched(as_path(path), false).is_whitelist(),
        }
    }
}

fn name_glob(text: &str, case: Case) -> Result<Override, Failure> {
    globs::check(text).map_err(|rule| Failure::invalid(format!("`pattern`, read as a glob, {rule}")))?;
    let mut builder = OverrideBuilder::new("");
    let folds = match case {
        Case::Sensitive => false,
        Case::Insensitive => true,
        Case::Smart => !text.chars().any(char::is_uppercase),
    };
    let wrong = |error: ignore::Error| Failure::invalid(format!("`pattern`, read as a glob, cannot be read: {error}"));
    builder.case_insensitive(folds).map_err(wrong)?;
    // A leading `!` would leave out instead of taking in.
    let escaped = if text.starts_with('!') { format!("\\{text}") } else { text.to_owned() };
    builder.add(&escaped).map_err(wrong)?;
    builder.build().map_err(wrong)
}

/// The engine's own words can be as long as the pattern; the first lines and the last say what is wrong.
fn explain(error: &str) -> String {
    const SHOWN: usize = 400;
    let hint = if error.contains("\\n") {
        "; a search goes line by line, so a pattern cannot hold a line's end"
    } else if error.contains("size limit") {
        "; it compiles to too much, use fewer or shorter repetitions and alternatives"
    } else {
        "; set `literal` to search for the text itself"
    };
    let count = error.chars().count();
    let shown = if count <= SHOWN {
        error.to_owned()
    } else {
        let head: String = error.chars().take(SHOWN / 2).collect();
        let tail: String = error.chars().skip(count - SHOWN / 2).collect();
        format!("{head} … {tail}")
    };
    format!("`pattern` is not accepted: {shown}{hint}")
}
