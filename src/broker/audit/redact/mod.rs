//! What must not reach a log, and how it is taken out.
//!
//! Three kinds: values the broker knows to be secret (variables whose names fit the policy's `redact`), what stands
//! where secrets stand (`TOKEN=…`, `--password …`, `Authorization: …`, `https://user:pass@…`), and what looks like a
//! key of a well-known service. Each finds ranges of the text; overlapping ones become one `<redacted:NAME>`. In
//! doubt more is hidden, never less; what a command hides from text (base64, a file) is beyond this.

mod places;
mod shapes;
mod words;

use super::call::{Call, Record, Subject};
use crate::policy::{Environment, glob};
use memchr::memmem::Finder;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

/// Shorter values are words of everyday commands.
const SHORTEST: usize = 6;

/// A line of a value of many lines (a private key) is hidden by itself from this length on.
const SHORTEST_LINE: usize = 16;

/// Values that calls bring along; the oldest make room.
const LEARNED: usize = 64;

/// Words, paths and names of variables that a record holds.
const RECORD_BYTES: usize = 8 << 10;

/// Looked at of one text. Twice what can be shown of it, so that no secret is cut in half and so not known.
const LOOKED_AT: usize = 4 * RECORD_BYTES;

/// A longer one says no more.
const LONGEST_NAME: usize = 64;

/// Of a long value, this much is looked for.
const NEEDLE: usize = 1 << 10;

/// Knows one policy's secrets.
#[derive(Debug)]
pub struct Redactor {
    agent: Arc<str>,
    globs: Vec<String>,
    known: Vec<Secret>,
    /// Of calls and sessions; for the life of the broker, as a later command may repeat them.
    learned: RwLock<VecDeque<Secret>>,
}

struct Secret {
    name: Arc<str>,
    finder: Finder<'static>,
    length: usize,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secret({})", self.name)
    }
}

/// A part of a text that must not be seen, and what to call it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hidden {
    range: Range<usize>,
    name: Arc<str>,
}

impl Redactor {
    /// `operator` is the environment that the broker itself was started with.
    pub fn new(agent: &str, environment: &Environment, operator: &[(String, String)]) -> Self {
        let globs = environment.redact.iter().map(|glob| glob.to_uppercase()).collect();
        let mut redactor = Redactor { agent: agent.into(), globs, known: Vec::new(), learned: RwLock::default() };
        redactor.known = operator.iter().chain(&environment.set).flat_map(|(n, v)| redactor.secrets(n, v)).collect();
        // Patterns are compiled when they are first used; the first call should not pay for it.
        redactor.text("a=b: c");
        redactor
    }

    /// The call without its secrets.
    pub fn clean(&self, call: Call) -> Record {
        self.learn(&call.env);
        let mut page = Page { room: RECORD_BYTES, omitted: 0 };
        let (mut argv, mut command, mut paths) = (None, None, None);
        match &call.subject {
            Subject::Argv(words) => {
                let mut shown = self.argv(words).into_iter();
                argv = Some(page.list(words, |_| shown.next().unwrap_or_default()));
            }
            Subject::Command(text) => command = Some(page.fit(text.len(), self.text(text))),
            Subject::Paths(list) => paths = Some(page.list(list, |path| self.text(path))),
            Subject::Nothing => {}
        }
        let names = page.list(call.env.iter().map(|(name, _)| name), |name| self.text(name));
        let short = |text: Option<String>| text.map(|text| start_of(&self.text(&text), RECORD_BYTES / 2).to_owned());
        let (session, cwd, proc_id) = (short(call.session), short(call.cwd), short(call.proc_id));
        Record {
            kind: "call",
            time: call.at,
            call_id: call.call_id,
            agent: Arc::clone(&self.agent),
            session,
            tool: call.tool,
            argv,
            command,
            paths,
            omitted_bytes: page.omitted,
            cwd,
            env: names,
            decision: call.decision.name(),
            enforcement: call.enforcement,
            duration_us: u64::try_from(call.duration.as_micros()).unwrap_or(u64::MAX),
            proc_id,
            exit: call.exit,
            bytes_in: call.bytes_in,
            bytes_out: call.bytes_out,
        }
    }

    /// Remembers the values of variables that are secret by name, as a session's or a call's.
    pub fn learn(&self, env: &[(String, String)]) {
        let fresh: Vec<Secret> = env.iter().flat_map(|(name, value)| self.secrets(name, value)).collect();
        if fresh.is_empty() {
            return;
        }
        let mut learned = self.learned.write().unwrap_or_else(PoisonError::into_inner);
        for secret in fresh {
            learned.retain(|old| old.finder.needle() != secret.finder.needle());
            learned.push_back(secret);
        }
        let beyond = learned.len().saturating_sub(LEARNED);
        learned.drain(..beyond);
    }

    /// A text without its secrets. A command line, a path and free text are looked at alike.
    pub fn text(&self, text: &str) -> String {
        let seen = start_of(text, LOOKED_AT);
        let mut hidden = self.everywhere(seen);
        places::in_script(seen, 0, &|name| self.is_secret(name), &mut hidden);
        self.check_names(&mut hidden);
        show(seen, text.len(), hidden)
    }

    /// Words whose limits are known are looked at as words.
    fn argv(&self, argv: &[String]) -> Vec<String> {
        let words: Vec<&str> = argv.iter().map(|word| start_of(word, LOOKED_AT)).collect();
        let mut hidden: Vec<Vec<Hidden>> = words.iter().map(|word| self.everywhere(word)).collect();
        places::in_argv(&words, &|name| self.is_secret(name), &mut hidden);
        hidden.iter_mut().for_each(|parts| self.check_names(parts));
        let shown = words.iter().zip(argv).zip(hidden);
        shown.map(|((seen, word), hidden)| show(seen, word.len(), hidden)).collect()
    }

    /// What is secret wherever it stands.
    fn everywhere(&self, text: &str) -> Vec<Hidden> {
        let mut hidden = Vec::new();
        let learned = self.learned.read().unwrap_or_else(PoisonError::into_inner);
        for secret in self.known.iter().chain(learned.iter()) {
            for start in secret.finder.find_iter(text.as_bytes()) {
                let end = (start + secret.length).min(text.len());
                hidden.push(Hidden { range: start..end, name: Arc::clone(&secret.name) });
            }
        }
        shapes::find(text, &|name| self.is_secret(name), &mut hidden);
        hidden
    }

    /// A name comes from the text, which may have put a secret there too.
    fn check_names(&self, hidden: &mut [Hidden]) {
        for part in hidden {
            if part.name.len() > LONGEST_NAME || !self.everywhere(&part.name).is_empty() {
                part.name = "secret".into();
            }
        }
    }

    fn is_secret(&self, name: &str) -> bool {
        let upper = name.to_uppercase().replace('-', "_");
        self.globs.iter().any(|glob| glob::matches(glob, &upper)) || places::names_a_secret(name)
    }

    /// A value by itself and, where it has many, its lines.
    fn secrets(&self, name: &str, value: &str) -> Vec<Secret> {
        let trimmed = value.trim();
        if trimmed.len() < SHORTEST || !self.is_secret(name) {
            return Vec::new();
        }
        let lines = trimmed.lines().map(str::trim).filter(|line| line.len() >= SHORTEST_LINE && *line != trimmed);
        let name: Arc<str> = start_of(name, LONGEST_NAME).into();
        let secret = |text: &str| {
            let needle = &text.as_bytes()[..text.len().min(NEEDLE)];
            Secret { name: Arc::clone(&name), finder: Finder::new(needle).into_owned(), length: text.len() }
        };
        lines.take(LEARNED - 1).chain([trimmed]).map(secret).collect()
    }
}

/// What a record still has room for.
struct Page {
    room: usize,
    omitted: u64,
}

impl Page {
    fn list<'a>(
        &mut self,
        given: impl IntoIterator<Item = &'a String>,
        mut show: impl FnMut(&'a str) -> String,
    ) -> Vec<String> {
        let mut list = Vec::new();
        for text in given {
            // Empty words cost room too: there may be many.
            if self.room < 4 {
                self.omitted += text.len() as u64;
                continue;
            }
            self.room -= 4;
            list.push(self.fit(text.len(), show(text)));
        }
        list
    }

    fn fit(&mut self, given: usize, mut text: String) -> String {
        let keep = start_of(&text, self.room).len();
        if keep < text.len() {
            self.omitted += given.saturating_sub(keep) as u64;
            text.truncate(keep);
        } else if given > LOOKED_AT {
            self.omitted += given.saturating_sub(text.len()) as u64;
        }
        self.room -= keep;
        text
    }
}

/// At most so many bytes of a text, ending where a character does.
fn start_of(text: &str, most: usize) -> &str {
    &text[..boundary(text, most, -1)]
}

/// The nearest place between two characters, in one direction.
fn boundary(text: &str, at: usize, step: isize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at = at.saturating_add_signed(step);
    }
    at
}

/// The text with every hidden part replaced. Of a text longer than what was looked at, half of that is shown.
fn show(seen: &str, whole: usize, mut hidden: Vec<Hidden>) -> String {
    let shown = if seen.len() < whole { start_of(seen, LOOKED_AT / 2).len() } else { seen.len() };
    hidden.retain(|part| part.range.start < part.range.end);
    hidden.sort_by_key(|part| (part.range.start, std::cmp::Reverse(part.range.end)));
    let mut text = String::with_capacity(shown);
    let (mut at, mut name): (usize, Option<Arc<str>>) = (0, None);
    for part in hidden {
        // Ranges come from bytes; a character that is half hidden is hidden.
        let (start, end) = (boundary(seen, part.range.start, -1), boundary(seen, part.range.end, 1));
        if start >= at || name.is_none() {
            if start >= shown {
                break;
            }
            text.push_str(&seen[at.min(start)..start]);
            text.push_str(&format!("<redacted:{}>", part.name));
            name = Some(part.name);
        }
        at = at.max(end);
    }
    if at < shown {
        text.push_str(&seen[at..shown]);
    }
    text
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
