//! Imports point downward: who may name whom inside the `stockade` crate.

use super::Finding;
use super::source::Source;

/// The tree, top first. Modules on one row do not import each other.
const ROWS: &[&[&str]] = &[
    &["main"],
    &["cli"],
    &["serve"],
    &["mcp"],
    &["broker"],
    &["launch", "worker"],
    &["wire"],
    &["plan"],
    &["policy"],
    &["host", "path", "sys"],
];

/// Imports along a row. `sys` holds all unsafe code, so what stands beside it must reach it.
const ALONG: &[(&str, &str)] = &[("host", "sys"), ("path", "sys")];

pub fn check(source: &Source) -> Vec<Finding> {
    let from = source.module();
    // lib.rs lists the modules; it uses none.
    if from == "lib" {
        return Vec::new();
    }
    let Some(row) = row_of(from) else {
        let message = format!("module `{from}` has no row in the tree of `cargo xtask tidy`");
        return vec![source.error(0, message)];
    };
    let root = if from == "main" { "stockade" } else { "crate" };
    let mut findings = Vec::new();
    for word in source.names_below(root) {
        // A name with no row is an item of the crate's root, which belongs to nobody.
        let Some(target) = row_of(word.name) else {
            continue;
        };
        let allowed = target > row || word.name == from || ALONG.contains(&(from, word.name));
        if !allowed {
            let way = if target == row { "sideways" } else { "upward" };
            let message = format!("`{from}` imports `{}`, which is {way} in the tree", word.name);
            findings.push(source.error(word.at, message));
        }
    }
    findings
}

fn row_of(module: &str) -> Option<usize> {
    ROWS.iter().position(|row| row.contains(&module))
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::source::Source;

    fn messages(path: &str, text: &str) -> Vec<String> {
        let findings = check(&Source::read(path, text)).into_iter();
        findings.map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn downward_is_allowed_and_upward_is_not() {
        assert!(messages("src/plan/mod.rs", "use crate::policy::Policy;").is_empty());
        assert_eq!(
            messages("src/policy/mod.rs", "//! x\nuse crate::plan::Plan;"),
            ["src/policy/mod.rs:2: error: `policy` imports `plan`, which is upward in the tree"]
        );
    }

    #[test]
    fn neighbours_do_not_meet_but_all_reach_sys() {
        assert_eq!(messages("src/launch/cell.rs", "crate::worker::start()").len(), 1);
        assert!(messages("src/host/mod.rs", "use crate::sys::probe;").is_empty());
        assert_eq!(messages("src/sys/mod.rs", "use crate::host::Host;").len(), 1);
    }

    #[test]
    fn a_module_without_a_row_is_found() {
        assert_eq!(messages("src/helpers.rs", "").len(), 1);
    }
}
