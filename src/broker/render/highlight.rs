//! Lines that look like errors: what a reader of a long output would search for first.
//!
//! A line is strong when it says that something went wrong (`error:`, `panicked`, `FAILED`), weak when it merely speaks
//! of errors. Strong lines are kept before weak ones; of too many, the first ten (the cause) and the last ten (the
//! summary). Most lines are dismissed by one search for a few words, which is what makes it fast.

use super::{strip_ansi, text};
use regex::bytes::{Regex, RegexBuilder};
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::LazyLock;

/// How much of a line is shown, in characters.
pub const MAX_LINE: usize = 200;
/// How many lines are kept from each end.
const KEEP: usize = 10;
/// How much of a line is looked at: past this it is data, not a message.
const MAX_LOOK: usize = 4096;
/// How much is shown before the sign in a line that has it late.
const LEAD: usize = 60;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Highlight {
    pub line: u64,
    pub text: String,
}

/// The lines of an output that look like errors, in their order; lines are given with their numbers.
pub fn highlights<'a>(lines: impl Iterator<Item = (u64, &'a [u8])>) -> Vec<Highlight> {
    let mut found = Highlights::default();
    lines.for_each(|(number, line)| found.look(number, line));
    found.finish()
}

/// Highlights of lines that come one by one.
#[derive(Debug, Default)]
pub struct Highlights {
    strong: Ends,
    weak: Ends,
}

impl Highlights {
    pub fn look(&mut self, number: u64, line: &[u8]) {
        let line = &line[..line.len().min(MAX_LOOK)];
        if !WORDS.is_match(line) {
            return;
        }
        let stripped;
        let line = match memchr::memchr2(0x1b, b'\r', line) {
            Some(_) => {
                stripped = strip_ansi(line).bytes;
                stripped.as_slice()
            }
            None => line,
        };
        if let Some((rank, at)) = judge(line) {
            let ends = match rank {
                Rank::Strong => &mut self.strong,
                Rank::Weak => &mut self.weak,
            };
            ends.push(Candidate::new(number, line, at));
        }
    }

    /// At most twenty: what the strong lines leave free, the weak ones fill.
    pub fn finish(self) -> Vec<Highlight> {
        let mut kept = self.strong.both();
        let room = 2 * KEEP - kept.len();
        let mut weak = self.weak.both();
        if let Some(surplus) = weak.len().checked_sub(room) {
            let middle = room.div_ceil(2);
            weak.drain(middle..middle + surplus);
        }
        kept.extend(weak);
        kept.sort_by_key(|candidate| candidate.line);
        kept.iter().map(|candidate| Highlight { line: candidate.line, text: candidate.shown() }).collect()
    }
}

#[derive(Debug, Default)]
struct Ends {
    first: Vec<Candidate>,
    last: VecDeque<Candidate>,
}

impl Ends {
    fn push(&mut self, candidate: Candidate) {
        if self.first.len() < KEEP {
            self.first.push(candidate);
            return;
        }
        if self.last.len() == KEEP {
            self.last.pop_front();
        }
        self.last.push_back(candidate);
    }

    fn both(self) -> Vec<Candidate> {
        self.first.into_iter().chain(self.last).collect()
    }
}

/// A line that may be shown: the bytes from which it would be.
#[derive(Debug)]
struct Candidate {
    line: u64,
    window: Vec<u8>,
    /// The window does not begin where the line does.
    cut: bool,
}

impl Candidate {
    fn new(number: u64, line: &[u8], sign: usize) -> Self {
        let from = if sign + LEAD < MAX_LINE { 0 } else { sign - LEAD };
        let skipped = line[from..].iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
        let from = from + skipped;
        let end = line.len().min(from + 4 * MAX_LINE);
        Candidate { line: number, window: line[from..end].to_vec(), cut: from > 0 }
    }

    fn shown(&self) -> String {
        let lead = if self.cut { "…" } else { "" };
        let whole = text(&self.window).text;
        lead.chars().chain(whole.trim_end().chars()).filter(|c| *c == '\t' || !c.is_control()).take(MAX_LINE).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rank {
    Strong,
    Weak,
}

/// What a line is worth, and where its sign stands.
fn judge(line: &[u8]) -> Option<(Rank, usize)> {
    let mut weak = None;
    for mention in MENTIONS.find_iter(line) {
        if HARMLESS_ALONE.is_match(mention.as_bytes()) {
            continue;
        }
        if STRONG_ALONE.is_match(mention.as_bytes()) {
            return Some((Rank::Strong, mention.start()));
        }
        weak = weak.or(Some((Rank::Weak, mention.start())));
    }
    weak
}

/// Every sign below contains one of these.
const ANY: &str = "error|err!|fatal|panic|traceback|exception|fail|undefined|denied|segmentation|segfault|assert|abort\
                   |not found|no such file|cannot|core dumped|out of memory|killed";

/// Mentions that mean nothing went wrong. They come first: of two that begin at one place the earlier pattern wins, and
/// what one has covered no other sees.
const HARMLESS: &str = r"
    \b(?:0|no|zero|without)\ (?:\w+\ )?(?:errors?|failures?|failed)
    | \b(?:errors?|failed|failures?)\s*[:=]\s*0\b
    | -W(?:no-)?error\S*
    | \b(?:compiling|checking|fresh|adding|download(?:ed|ing)|installing|unpacking)\ \S+
    | [\w/.-]*(?:error|exception|assert|panic|abort|fail)[\w-]*(?:\.\w+|/)
    | \berrors?\(";

const STRONG: &str = r"
    \berrors?(?:\[\w+\])?: | (?-i:[A-Za-z](?:Error|Exception)\b) | \bexception\ in\b | \*\*\*.*\berror\ \d | \berr!
    | \berror\ (?:ts|cs|c|lnk)\d+ | \bfatal\b | \bpanicked\b | \bpanic: | \btraceback\b | (?-i:\bFAIL(?:ED|URE)?\b)
    | \bsegmentation\ fault | \bsegfault | \bcore\ dumped | \bundefined\ (?:reference|symbol) | \bassert(?:ion)?\b
    | \baborted\b | \bpermission\ denied | \bno\ such\ file\ or\ directory | \bcommand\ not\ found | \bout\ of\ memory
    | \bkilled\b";

const WEAK: &str =
    r"\b(?:errors?|exceptions?|fail(?:s|ed|ures?)?|undefined|denied|panic|abort(?:ing)?|cannot|not\ found)\b";

static WORDS: LazyLock<Regex> = LazyLock::new(|| compiled(ANY, Spaces::Meant));
static MENTIONS: LazyLock<Regex> = LazyLock::new(|| compiled(&format!("{HARMLESS}|{STRONG}|{WEAK}"), Spaces::Layout));
/// Which of them a mention is: asking the mention again is faster than capturing.
static HARMLESS_ALONE: LazyLock<Regex> = LazyLock::new(|| compiled(&format!("^(?:{HARMLESS})$"), Spaces::Layout));
static STRONG_ALONE: LazyLock<Regex> = LazyLock::new(|| compiled(&format!("^(?:{STRONG})$"), Spaces::Layout));

#[derive(Clone, Copy, PartialEq, Eq)]
enum Spaces {
    Meant,
    Layout,
}

fn compiled(pattern: &str, spaces: Spaces) -> Regex {
    RegexBuilder::new(pattern)
        .unicode(false)
        .case_insensitive(true)
        .ignore_whitespace(spaces == Spaces::Layout)
        .build()
        .expect("a pattern of our own")
}

#[cfg(test)]
#[path = "highlight_tests.rs"]
mod tests;
