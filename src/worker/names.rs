//! Paths as an agent writes and reads them. JSON is UTF-8 and file names are not, so a path that is no UTF-8 is spelled
//! as a `file://` URI with percent signs; every other path is itself. The kernel resolves paths; nothing here opens one
//! (`absent` looks at a link to find words for a path that is not there).

use super::ask::Terms;
use super::failure::{Code, Failure, Result};
use std::ffi::{OsStr, OsString};
use std::fmt::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

/// The kernel's PATH_MAX, its final NUL included.
const LONGEST: usize = 4096;

const URI: &str = "file://";

/// A path that may be given to the kernel, with the text it was asked by.
#[derive(Debug, Clone)]
pub struct Named<'a> {
    asked: String,
    path: PathBuf,
    terms: &'a Terms,
}

impl<'a> Named<'a> {
    /// Refuses what can be no path; everything else is for the kernel to judge.
    pub fn parse(text: &str, terms: &'a Terms) -> Result<Named<'a>> {
        if text.is_empty() {
            return Err(Failure::invalid("`path` is empty; `.` is the workspace"));
        }
        // Checked first, so that no message repeats megabytes.
        if text.len() > LONGEST * 3 + URI.len() {
            return Err(too_long(text.len()));
        }
        let bytes = match text.strip_prefix(URI) {
            Some(rest) => from_uri(text, rest)?,
            None => text.as_bytes().to_vec(),
        };
        if bytes.contains(&0) {
            return Err(Failure::invalid(format!("`path` holds a NUL byte: {text:?}; no file name can")));
        }
        if bytes.len() > LONGEST {
            return Err(too_long(bytes.len()));
        }
        let path = terms.workspace.as_path().join(OsString::from_vec(bytes));
        Ok(Named { asked: text.to_owned(), path, terms })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn asked(&self) -> &str {
        &self.asked
    }

    /// The spelling of something below this path.
    pub fn below(&self, relative: &Path) -> String {
        let whole = self.path.join(relative);
        let asked = if self.asked.starts_with(URI) { None } else { Some(Path::new(&self.asked)) };
        let short = match asked {
            Some(asked) if asked == Path::new(".") => relative.to_path_buf(),
            Some(asked) => asked.join(relative),
            None => whole.clone(),
        };
        match short.to_str() {
            Some(text) if !text.starts_with(URI) => text.to_owned(),
            _ => spell(&whole),
        }
    }

    /// Something below this path, for words.
    pub fn child(&self, relative: &Path) -> Named<'a> {
        Named { asked: self.below(relative), path: self.path.join(relative), terms: self.terms }
    }

    /// Words for a path the kernel does not find.
    pub fn absent(&self) -> Failure {
        let target = std::fs::read_link(&self.path).ok();
        let leads = target.as_ref().map(|target| self.path.parent().unwrap_or(Path::new("/")).join(target));
        if self.is_outside(&self.path) || leads.as_ref().is_some_and(|path| self.is_outside(path)) {
            let roots: Vec<String> = self.terms.roots.iter().map(|root| format!("`{root}`")).collect();
            let message = format!("`{self}` is outside every root of this cell: {}", roots.join(", "));
            return Failure::new(Code::PathNotAllowed, message).with("errno", "ENOENT");
        }
        let message = match target {
            Some(target) => format!("`{self}` is a symbolic link to `{}`, which does not exist here", spell(&target)),
            None => format!("`{self}` does not exist in this cell"),
        };
        Failure::new(Code::NotFound, message).with("errno", "ENOENT")
    }

    fn is_outside(&self, path: &Path) -> bool {
        let plain = plain(path);
        let covers = |root: &Path| plain.starts_with(root) || root.starts_with(&plain);
        !self.terms.roots.is_empty() && !self.terms.roots.iter().any(|root| covers(root.as_path()))
    }
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.asked.fmt(f)
    }
}

/// A path as text that `parse` reads back. An absolute path in, if it is not UTF-8.
pub fn spell(path: &Path) -> String {
    match path.to_str() {
        Some(text) if !text.starts_with(URI) => text.to_owned(),
        _ => to_uri(path.as_os_str()),
    }
}

fn to_uri(path: &OsStr) -> String {
    let mut text = URI.to_owned();
    for byte in path.as_bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => text.push(char::from(*byte)),
            byte => write!(text, "%{byte:02X}").unwrap_or_default(),
        }
    }
    text
}

fn from_uri(whole: &str, rest: &str) -> Result<Vec<u8>> {
    if !rest.starts_with('/') {
        let message = format!("`{whole}` is a URI with a host; `file:///` and an absolute path is accepted");
        return Err(Failure::invalid(message));
    }
    let mut bytes = Vec::with_capacity(rest.len());
    let mut left = rest.as_bytes();
    while let Some((first, after)) = left.split_first() {
        left = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let Some(byte) = byte.and_then(|digits| u8::from_str_radix(digits, 16).ok()) else {
            let message = format!("`{whole}`: `%` is followed by two hexadecimal digits in a `file://` URI");
            return Err(Failure::invalid(message));
        };
        bytes.push(byte);
        left = &after[2..];
    }
    Ok(bytes)
}

fn too_long(length: usize) -> Failure {
    Failure::invalid(format!("`path` has {length} bytes; at most {LONGEST} are accepted"))
}

/// Without `.` and `..`, by text alone.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => {
                plain.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    plain
}
