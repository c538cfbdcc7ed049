//! Globs as `rg --glob` reads them, with bounds that keep compiling and matching them short.

use super::failure::Failure;
use ignore::overrides::{Override, OverrideBuilder};

const GLOBS_MAX: usize = 100;
const GLOB_BYTES: usize = 1024;
/// The parser and the regex it makes recurse per brace.
const NESTING_MAX: usize = 10;
/// Each star is a loop in the regex; matching one path costs their number times its length at worst.
const WILDCARDS_MAX: usize = 100;

pub fn compile(globs: &[String]) -> Result<Override, Failure> {
    if globs.len() > GLOBS_MAX {
        return Err(Failure::invalid(format!("{} globs were given; at most {GLOBS_MAX} are possible", globs.len())));
    }
    let mut builder = OverrideBuilder::new("");
    for glob in globs {
        check(glob).map_err(|rule| Failure::invalid(format!("glob `{}` {rule}", shortened(glob))))?;
        builder.add(glob).map_err(|error| Failure::invalid(format!("glob `{glob}` cannot be read: {error}")))?;
    }
    builder.build().map_err(|error| Failure::invalid(format!("`globs` cannot be compiled together: {error}")))
}

/// The rules for one glob, also for a line of an ignore file; the error completes "glob `x` …".
pub fn check(glob: &str) -> Result<(), String> {
    if glob.is_empty() {
        return Err("is empty".into());
    }
    if glob.len() > GLOB_BYTES {
        return Err(format!("has {} bytes; at most {GLOB_BYTES} are possible", glob.len()));
    }
    if glob.contains('\0') {
        return Err("holds a NUL byte, which no path can".into());
    }
    let wildcards = glob.bytes().filter(|byte| b"*?[{".contains(byte)).count();
    if wildcards > WILDCARDS_MAX {
        return Err(format!("has {wildcards} wildcards; at most {WILDCARDS_MAX} are possible"));
    }
    let (mut depth, mut deepest) = (0usize, 0usize);
    for byte in glob.bytes() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    if deepest > NESTING_MAX {
        return Err(format!("nests braces {deepest} deep; at most {NESTING_MAX} are possible"));
    }
    Ok(())
}

/// Whether a pattern for file names was meant as a glob: a star where a regex has nothing to repeat (at
/// the beginning or after a slash), and none of what only a regex has. `*.rs` and `src/**/mod.rs` are
/// globs; `.*\.rs`, `a*b` and `tests?` are regexes.
pub fn looks_like_one(pattern: &str) -> bool {
    let bytes = pattern.as_bytes();
    let bare_star = |at: usize| bytes[at] == b'*' && (at == 0 || bytes[at - 1] == b'/');
    let only_regex = |byte: &u8| b"\\^$()|+".contains(byte);
    (0..bytes.len()).any(bare_star) && !bytes.iter().any(only_regex) && !pattern.contains(".*")
}

fn shortened(glob: &str) -> String {
    match glob.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &glob[..end]),
        None => glob.into(),
    }
}
