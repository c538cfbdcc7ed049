//! Crate fences: a third-party crate is named by few modules, so that replacing it stays a small change.

use super::Finding;
use super::source::Source;

/// A crate, and the modules that may name it. Crates not listed are like the standard library here.
const FENCES: &[(&str, &[&str])] = &[
    ("caps", &["host", "launch", "sys"]),
    ("clap", &["cli"]),
    ("landlock", &["host", "plan", "launch"]),
    ("portable_pty", &[]),
    ("rmcp", &["mcp"]),
    ("rusqlite", &["broker"]),
    ("schemars", &["policy", "mcp"]),
    ("seccompiler", &["plan"]),
    ("tokio", &["cli", "serve", "mcp", "broker", "sys"]),
    ("toml", &["policy"]),
    ("tracing_subscriber", &["cli", "serve"]),
];

/// Where the functions of `libc` may be called. Its constants (`libc::SYS_openat`) are plain numbers, free to all.
const LIBC_CALLS: &str = "sys";

pub fn check(source: &Source) -> Vec<Finding> {
    let module = source.module();
    let mut findings = Vec::new();
    for (name, allowed) in FENCES {
        if allowed.contains(&module) {
            continue;
        }
        for word in source.names_below(name) {
            let home = match allowed {
                [] => "tests only".to_owned(),
                allowed => format!("`{}`", allowed.join("`, `")),
            };
            let message = format!("`{module}` names the crate `{name}`, whose place is {home}");
            findings.push(source.error(word.at, message));
        }
    }
    if module != LIBC_CALLS {
        for word in source.names_below("libc") {
            if !word.name.starts_with(char::is_uppercase) {
                let message = format!("`libc::{}` belongs in `{LIBC_CALLS}`", word.name);
                findings.push(source.error(word.at, message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::source::Source;

    fn count(path: &str, text: &str) -> usize {
        check(&Source::read(path, text)).len()
    }

    #[test]
    fn a_crate_stays_behind_its_fence() {
        assert_eq!(count("src/cli/mod.rs", "use clap::Parser;"), 0);
        assert_eq!(count("src/plan/mod.rs", "use clap::Parser;"), 1);
        assert_eq!(count("src/launch/spawn.rs", "tokio::spawn(f)"), 1);
        assert_eq!(count("src/cli/run.rs", "use portable_pty::PtySize;"), 1);
    }

    #[test]
    fn constants_of_libc_are_free_and_its_functions_are_not() {
        assert_eq!(count("src/plan/mod.rs", "let a = libc::SYS_openat;"), 0);
        assert_eq!(count("src/plan/mod.rs", "use libc::{EPERM, getpid};"), 1);
        assert_eq!(count("src/sys/mod.rs", "libc::getpid()"), 0);
    }
}
