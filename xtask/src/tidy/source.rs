//! A Rust file with comments and literals blanked out, so that a rule sees code only.
//!
//! Not a parser: it knows where comments, strings and character literals begin and end, and keeps
//! every line where it was.

use super::{Finding, Weight};

#[derive(Debug)]
pub struct Source<'a> {
    pub path: &'a str,
    pub text: &'a str,
    /// The text with comments, strings and characters replaced by spaces.
    pub code: String,
}

/// A name in the code, with the byte it starts at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word<'a> {
    pub at: usize,
    pub name: &'a str,
}

impl<'a> Source<'a> {
    pub fn read(path: &'a str, text: &'a str) -> Source<'a> {
        let code = blank(text);
        Source { path, text, code }
    }

    /// The first folder or file below `src/`: the module a file belongs to.
    pub fn module(&self) -> &'a str {
        let below = self.path.strip_prefix("src/").unwrap_or(self.path);
        let first = below.split('/').next().unwrap_or(below);
        first.strip_suffix(".rs").unwrap_or(first)
    }

    pub fn error(&self, at: usize, message: String) -> Finding {
        self.finding(at, Weight::Error, message)
    }

    pub fn warning(&self, at: usize, message: String) -> Finding {
        self.finding(at, Weight::Warning, message)
    }

    fn finding(&self, at: usize, weight: Weight, message: String) -> Finding {
        let before = &self.code.as_bytes()[..at];
        Finding {
            path: self.path.to_owned(),
            line: 1 + before.iter().filter(|byte| **byte == b'\n').count(),
            weight,
            message,
        }
    }

    /// Every name in the code.
    pub fn words(&self) -> Vec<Word<'_>> {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let mut words = Vec::new();
        let mut at = 0;
        for piece in self.code.split_inclusive(|c| !is_part(c)) {
            let name = piece.trim_end_matches(|c| !is_part(c));
            if !name.is_empty() {
                words.push(Word { at, name });
            }
            at += piece.len();
        }
        words
    }

    /// The names that follow `root::`, those in `root::{…}` included, at the first level below it.
    pub fn names_below(&self, root: &str) -> Vec<Word<'_>> {
        let mut found = Vec::new();
        for word in self.words().iter().filter(|word| word.name == root) {
            let after = word.at + root.len();
            let Some(rest) = self.code[after..].trim_start().strip_prefix("::") else {
                continue;
            };
            let rest = rest.trim_start();
            found.extend(self.first_names(self.code.len() - rest.len()));
        }
        found
    }

    fn first_names(&self, start: usize) -> Vec<Word<'_>> {
        let mut names = Vec::new();
        let mut depth = 0;
        let mut expects_name = true;
        for (offset, c) in self.code[start..].char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 1 => expects_name = true,
                c if c.is_whitespace() => continue,
                c if expects_name && (c.is_alphanumeric() || c == '_') => {
                    let rest = &self.code[start + offset..];
                    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
                    let name = &rest[..end.unwrap_or(rest.len())];
                    let at = start + offset;
                    names.push(Word { at, name });
                    expects_name = false;
                }
                _ => {}
            }
            if depth <= 0 {
                break;
            }
        }
        names
    }
}

/// Replaces everything that is not code by spaces, byte for byte.
fn blank(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let hidden = hidden_length(rest, code.chars().next_back());
        let (piece, keep) = match hidden {
            0 => (&rest[..first.len_utf8()], true),
            length => (&rest[..length], false),
        };
        for c in piece.chars() {
            if keep || c == '\n' {
                code.push(c);
            } else {
                code.extend(std::iter::repeat_n(' ', c.len_utf8()));
            }
        }
        rest = &rest[piece.len()..];
    }
    code
}

/// How many bytes of a comment or literal begin here.
fn hidden_length(rest: &str, before: Option<char>) -> usize {
    let bytes = rest.as_bytes();
    let in_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    match bytes[0] {
        b'/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
        b'/' if rest.starts_with("/*") => block_comment(rest),
        b'"' => quoted(rest, '"'),
        b'r' if !in_word || before == Some('b') => raw_string(rest),
        b'\'' => character(rest),
        _ => 0,
    }
}

fn block_comment(rest: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        let here = &rest.as_bytes()[at..];
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

fn raw_string(rest: &str) -> usize {
    let hashes = rest[1..].bytes().take_while(|byte| *byte == b'#').count();
    let Some(content) = rest[1 + hashes..].strip_prefix('"') else {
        return 0;
    };
    let end = format!("\"{}", "#".repeat(hashes));
    let open = 2 + hashes;
    content.find(&end).map_or(rest.len(), |at| open + at + end.len())
}

/// A character literal; a lifetime or label is code.
fn character(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), _) => quoted(rest, '\''),
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::Source;

    fn names<'a>(source: &'a Source, root: &str) -> Vec<&'a str> {
        let words = source.names_below(root).into_iter();
        words.map(|word| word.name).collect()
    }

    #[test]
    fn comments_and_literals_are_not_code() {
        let text = "let a = \"crate::cli\"; // crate::mcp\n/* crate::wire /* x */ */ let b = r#\"crate::\"plan\"#;\nlet c: &'static str = f('\"', '\\''); crate::sys::x();";
        let source = Source::read("src/policy/mod.rs", text);
        assert_eq!(names(&source, "crate"), ["sys"]);
        assert_eq!(source.code.len(), text.len());
        assert!(source.code.contains("&'static str"));
    }

    #[test]
    fn grouped_imports_give_their_first_level() {
        let text = "use crate::{\n    host::{Host, Kernel},\n    plan,\n    sys::{a, b},\n};\nuse crate::wire::Frame;";
        let source = Source::read("src/launch/mod.rs", text);
        assert_eq!(names(&source, "crate"), ["host", "plan", "sys", "wire"]);
        let wire = source.names_below("crate")[3];
        assert_eq!(source.error(wire.at, String::new()).line, 6);
    }

    #[test]
    fn the_module_is_the_first_name_below_src() {
        assert_eq!(Source::read("src/launch/cgroup/v1.rs", "").module(), "launch");
        assert_eq!(Source::read("src/wire.rs", "").module(), "wire");
    }
}
