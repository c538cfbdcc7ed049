//! Where secrets stand in a command line: assignments, flags, headers, and a few programs' own ways.

use super::Hidden;
use super::words::{split, unquoted};
use std::ops::Range;

/// A script in a script in a script is looked into; deeper, its words are still words of the outer one.
const DEEPEST: usize = 3;

/// Ends of names that mean a secret whatever the policy says; `-` and `_` left out.
const SECRETS: [&str; 14] = [
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "credential",
    "credentials",
    "authorization",
    "cookie",
    "privatetoken",
];

/// Programs that take a password behind a short flag, glued to it or as the next word.
const PROGRAMS: [(&str, &str); 8] = [
    ("sshpass", "-p"),
    ("mysql", "-p"),
    ("mysqldump", "-p"),
    ("mysqladmin", "-p"),
    ("mariadb", "-p"),
    ("mariadb-dump", "-p"),
    ("redis-cli", "-a"),
    ("smbclient", "-U"),
];

/// Flags before `user:password`.
const PAIRS: [&str; 4] = ["-u", "--user", "-U", "--proxy-user"];

/// Words before the secret itself in an `Authorization` header.
const SCHEMES: [&str; 6] = ["basic", "bearer", "token", "digest", "negotiate", "apikey"];

/// Whether a variable, flag, field or header of this name holds a secret.
pub(super) fn names_a_secret(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    SECRETS.iter().any(|end| plain.ends_with(end)) || matches!(plain.as_str(), "pass" | "passin" | "passout")
}

/// Looks at a text as a shell would.
pub(super) fn in_script(text: &str, depth: usize, is_secret: &dyn Fn(&str) -> bool, hidden: &mut Vec<Hidden>) {
    let ranges = split(text);
    let words: Vec<&str> = ranges.iter().map(|range| &text[range.clone()]).collect();
    let mut found = vec![Vec::new(); words.len()];
    in_words(&words, depth, is_secret, &mut found);
    for (range, parts) in ranges.iter().zip(found) {
        let shifted =
            |part: Hidden| Hidden { range: part.range.start + range.start..part.range.end + range.start, ..part };
        hidden.extend(parts.into_iter().map(shifted));
    }
}

/// Looks at words that need no splitting.
pub(super) fn in_argv(words: &[&str], is_secret: &dyn Fn(&str) -> bool, hidden: &mut [Vec<Hidden>]) {
    in_words(words, 0, is_secret, hidden);
}

fn in_words(words: &[&str], depth: usize, is_secret: &dyn Fn(&str) -> bool, hidden: &mut [Vec<Hidden>]) {
    let (mut before, mut program, mut next) = ("", "", Next::Plain);
    for (index, raw) in words.iter().enumerate() {
        let (word, off) = unquoted(raw);
        let is_script = is_script_flag(before);
        let found = match next {
            Next::Secret(name) if SCHEMES.contains(&word.to_ascii_lowercase().as_str()) => Found::Next(name),
            Next::Secret(name) => Found::Here(0..word.len(), name),
            // Its own words tell where each secret ends.
            Next::Plain if is_script => Found::Nothing,
            Next::Plain => in_word(word, before, program, is_secret),
        };
        let mut inner = Vec::new();
        next = match found {
            Found::Next(name) => Next::Secret(name),
            Found::Here(range, name) => {
                inner.push(Hidden { range, name: name.as_str().into() });
                Next::Plain
            }
            Found::Nothing => Next::Plain,
        };
        let follower = words.get(index + 1).is_some_and(|next| !next.starts_with('-'));
        if matches!(next, Next::Plain) && takes_secret(word) && follower {
            next = Next::Secret(word.trim_start_matches('-').into());
        }
        if depth < DEEPEST && (is_script || word.contains(char::is_whitespace)) {
            in_script(word, depth + 1, is_secret, &mut inner);
        }
        let shifted = |part: Hidden| Hidden { range: part.range.start + off..part.range.end + off, ..part };
        hidden[index].extend(inner.into_iter().map(shifted));
        let name = word.rsplit('/').next().unwrap_or(word);
        program = PROGRAMS.iter().find_map(|(known, _)| (*known == name).then_some(*known)).unwrap_or(program);
        before = word;
    }
}

/// What the word before says of a word.
enum Next {
    Plain,
    Secret(String),
}

enum Found {
    Nothing,
    /// This part of the word, and what to call it.
    Here(Range<usize>, String),
    /// The word after it.
    Next(String),
}

fn in_word(word: &str, before: &str, program: &str, is_secret: &dyn Fn(&str) -> bool) -> Found {
    if let Some((range, name)) = assigned(word, is_secret).or_else(|| pair(before, word)) {
        return Found::Here(range, name);
    }
    if let Some((range, name)) = header(word, is_secret) {
        return if word[range.clone()].trim().is_empty() { Found::Next(name) } else { Found::Here(range, name) };
    }
    if word.eq_ignore_ascii_case("bearer") {
        return Found::Next("bearer".into());
    }
    let flag = PROGRAMS.iter().find_map(|(name, flag)| (program == *name).then_some(*flag));
    match flag.and_then(|flag| word.strip_prefix(flag)) {
        Some("") => Found::Next("password".into()),
        Some(glued) => Found::Here(word.len() - glued.len()..word.len(), "password".into()),
        None => Found::Nothing,
    }
}

/// `-c`, `-lc`: what follows is for a shell.
fn is_script_flag(word: &str) -> bool {
    word.strip_prefix('-').is_some_and(|rest| rest.ends_with('c') && rest.bytes().all(|byte| byte.is_ascii_lowercase()))
}

/// `--password`, as a word of its own.
fn takes_secret(word: &str) -> bool {
    word.starts_with('-') && !word.contains(['=', ':']) && names_a_secret(word)
}

/// `NAME=value`, `--name=value`, `?name=value&`: the value of the first that is secret.
fn assigned(word: &str, is_secret: &dyn Fn(&str) -> bool) -> Option<(Range<usize>, String)> {
    for (at, _) in word.match_indices('=') {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        let start = word[..at].char_indices().rev().take_while(|(_, c)| is_name(*c)).last().map_or(at, |(at, _)| at);
        let name = word[start..at].trim_matches('-');
        if name.is_empty() || !is_secret(name) {
            continue;
        }
        let in_query = word[..start].ends_with(['?', '&']);
        let rest = &word[at + 1..];
        let length = if in_query { rest.find(['&', '#']).unwrap_or(rest.len()) } else { rest.len() };
        // The rest of a query may hold another one; hiding it with this one is the safe mistake.
        let more = in_query && rest[length..].contains('=');
        return Some((at + 1..at + 1 + if more { rest.len() } else { length }, name.into()));
    }
    None
}

/// `Name: value`, to the end of its line.
fn header(word: &str, is_secret: &dyn Fn(&str) -> bool) -> Option<(Range<usize>, String)> {
    let at = word.find(':')?;
    let name = &word[..at];
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(is_name) || word[at + 1..].starts_with("//") || !is_secret(name) {
        return None;
    }
    let rest = &word[at + 1..];
    let end = rest.find(['\r', '\n']).or_else(|| rest.find("\\r")).or_else(|| rest.find("\\n")).unwrap_or(rest.len());
    Some((at + 1..at + 1 + end, name.trim_matches('-').into()))
}

/// `-u user:password`: what follows the colon.
fn pair(before: &str, word: &str) -> Option<(Range<usize>, String)> {
    let at = PAIRS.contains(&before).then(|| word.find(':')).flatten()?;
    Some((at + 1..word.len(), "password".into()))
}
