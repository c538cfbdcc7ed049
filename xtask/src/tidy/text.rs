//! Rules about a file's text: how it opens, how long it is, and what must not stand in it.

use super::source::Source;
use super::{Finding, Weight};

/// Lines of a file past which it is two files, and past which one should ask.
const LONGEST: usize = 450;
const LONG: usize = 300;

/// Lines of a module doc. Two files tell a theory of operation and may be longer.
const LONGEST_OPENING: usize = 12;
const THEORIES: [&str; 2] = ["src/launch/mod.rs", "src/launch/cgroup/mod.rs"];

/// A file opens with what it is.
pub fn opening(source: &Source) -> Option<Finding> {
    let lines = source.text.lines().take_while(|line| line.starts_with("//!"));
    match lines.count() {
        0 => Some(source.error(0, "the file does not open with a `//!` doc".into())),
        count if count > LONGEST_OPENING && !THEORIES.contains(&source.path) => {
            let message = format!("the opening doc has {count} lines; {LONGEST_OPENING} are enough");
            Some(source.error(0, message))
        }
        _ => None,
    }
}

pub fn length(source: &Source) -> Option<Finding> {
    let lines = source.text.lines().count();
    let message = format!("{lines} lines: which two things is it?");
    match lines {
        0..=LONG => None,
        lines if lines <= LONGEST => Some(source.warning(0, message)),
        _ => Some(source.error(0, message)),
    }
}

/// A lint is put off with `expect` and a reason, so that it comes back when the reason goes.
pub fn allow_attributes(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for word in source.words().iter().filter(|word| word.name == "allow") {
        let line = source.code[..word.at].rfind('\n').map_or(0, |at| at + 1);
        let before = source.code[line..word.at].trim_start();
        let called = source.code[word.at + word.name.len()..].starts_with('(');
        if called && before.starts_with('#') {
            let message = "`allow` attribute: use `expect` with a reason".into();
            findings.push(source.error(word.at, message));
        }
    }
    findings
}

pub fn unsafe_code(source: &Source) -> Vec<Finding> {
    if source.path.starts_with("src/sys/") || source.path == "src/sys.rs" {
        return Vec::new();
    }
    let words = source.words().into_iter();
    let found = words.filter(|word| word.name == "unsafe");
    let message = "unsafe code outside `src/sys`";
    found.map(|word| source.error(word.at, message.into())).collect()
}

/// Directories of a machine the code was written on.
const MACHINE: &[&str] = &["/work/", "/root/"]; // tidy: on purpose

/// The word that lets a line name one all the same.
const ON_PURPOSE: &str = "tidy: on purpose";

/// Paths that exist on one machine only.
pub fn machine_paths(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, line) in text.lines().enumerate() {
        for place in MACHINE {
            if starts_a_path(line, place) && !line.contains(ON_PURPOSE) {
                findings.push(Finding {
                    path: path.to_owned(),
                    line: at + 1,
                    weight: Weight::Error,
                    message: format!("`{place}` is a path of one machine (or say `{ON_PURPOSE}`)"),
                });
            }
        }
    }
    findings
}

/// Whether the place stands at the start of a path, not in the middle of a longer one.
fn starts_a_path(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "_-.~}>)/*".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::{Source, allow_attributes, length, machine_paths, opening, unsafe_code};

    #[test]
    fn a_file_opens_with_a_doc_of_some_lines() {
        let long = "//! x\n".repeat(13);
        assert!(opening(&Source::read("src/a.rs", "//! What it is.\nuse x;")).is_none());
        assert!(opening(&Source::read("src/a.rs", "use x;")).is_some());
        assert!(opening(&Source::read("src/a.rs", &long)).is_some());
        assert!(opening(&Source::read("src/launch/mod.rs", &long)).is_none());
    }

    #[test]
    fn a_long_file_is_asked_about_and_a_very_long_one_refused() {
        let say = |lines: usize| {
            let text = "\n".repeat(lines);
            length(&Source::read("src/a.rs", &text)).map(|finding| finding.to_string())
        };
        assert_eq!(say(300), None);
        assert!(say(301).is_some_and(|text| text.contains("warning")));
        assert!(say(451).is_some_and(|text| text.contains("error")));
    }

    #[test]
    fn allow_is_an_attribute_and_not_a_word() {
        let found = |text| allow_attributes(&Source::read("src/a.rs", text)).len();
        assert_eq!(found("#[allow(dead_code)]\n#![allow(x)]\n#[cfg_attr(a, allow(x))]"), 3);
        assert_eq!(found("fn allow(x: u8) {}\nself.allow(3); // #[allow(x)]"), 0);
    }

    #[test]
    fn unsafe_stays_in_sys() {
        let text = "unsafe { call() } // unsafe";
        assert_eq!(unsafe_code(&Source::read("src/plan/mod.rs", text)).len(), 1);
        assert!(unsafe_code(&Source::read("src/sys/fd.rs", text)).is_empty());
        let lint = "#![deny(unsafe_code)]";
        assert!(unsafe_code(&Source::read("src/plan/mod.rs", lint)).is_empty());
    }

    #[test]
    fn a_machine_path_is_found_where_it_starts() {
        let found = |text| machine_paths("README.md", text).len();
        assert_eq!(found("see /work/main/x and \"/root/.cargo\""), 2); // tidy: on purpose
        assert_eq!(found("target/work/x /home/me/work/x {dir}/root/x"), 0);
    }
}
