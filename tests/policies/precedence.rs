//! PL-17: which of several rules for one path holds.

use std::path::{Path, PathBuf};

use stockade::policy::expect::verdict;
use stockade::policy::{Access, Grant, Policy};

use crate::scratch::Scratch;

/// PL-17. Rows: the rule for `/r`, then for `/r/a`. Letters in a row: what holds for `/r/a/b/c` when the
/// rule for `/r/a/b` is none, read-write, read-only, hidden.
const NESTED: [(char, char, &str); 16] = [
    ('-', '-', "-wrh"),
    ('-', 'w', "wwrh"),
    ('-', 'r', "rwrh"),
    ('-', 'h', "hwrh"),
    ('w', '-', "wwrh"),
    ('w', 'w', "wwrh"),
    ('w', 'r', "rwrh"),
    ('w', 'h', "hwrh"),
    ('r', '-', "rwrh"),
    ('r', 'w', "wwrh"),
    ('r', 'r', "rwrh"),
    ('r', 'h', "hwrh"),
    ('h', '-', "hwrh"),
    ('h', 'w', "wwrh"),
    ('h', 'r', "rwrh"),
    ('h', 'h', "hwrh"),
];

/// Two rules for one path, in either order.
const TIES: [(char, char, char); 6] =
    [('w', 'w', 'w'), ('w', 'r', 'r'), ('w', 'h', 'h'), ('r', 'r', 'r'), ('r', 'h', 'h'), ('h', 'h', 'h')];

#[test]
fn the_most_specific_rule_wins_in_all_64_nestings() {
    let empty = Scratch::new().load("").expect("an empty policy");
    for (outer, middle, expected) in NESTED {
        for (inner, expected) in "-wrh".chars().zip(expected.chars()) {
            let mut rules = [("/r", outer), ("/r/a", middle), ("/r/a/b", inner)];
            for _ in 0..2 {
                let policy = with_rules(empty.clone(), rules);
                let found = verdict(&policy, Path::new("/r/a/b/c"));
                assert_eq!(letter(found), expected, "/r {outer}, /r/a {middle}, /r/a/b {inner}");
                assert_eq!(
                    letter(verdict(&policy, Path::new("/r/a/bb"))),
                    letter(verdict(&policy, Path::new("/r/a"))),
                    "a sibling is not inside"
                );
                rules.reverse();
            }
        }
    }
}

#[test]
fn the_stricter_rule_wins_a_tie() {
    let empty = Scratch::new().load("").expect("an empty policy");
    for (one, other, expected) in TIES {
        for rules in [[("/r", one), ("/r", other)], [("/r", other), ("/r", one)]] {
            assert_eq!(letter(verdict(&with_rules(empty.clone(), rules), Path::new("/r/x"))), expected, "{rules:?}");
        }
    }
}

#[test]
fn hidden_paths_are_masked_inside_the_roots() {
    let scratch = Scratch::new();
    let text = "[filesystem]\nallowed_roots = [\"{workspace}\"]\nhidden = [\".env\", \"secrets/\", \"**/*.pem\", \"{workspace}/deep/key\"]\n";
    let policy = scratch.load(text).expect("a policy");
    for (path, expected) in [
        ("work/.env", 'h'),
        ("work/.env.example", 'w'),
        ("work/sub/.env", 'w'),
        ("work/secrets", 'h'),
        ("work/secrets/a/b", 'h'),
        ("work/x/../secrets/a", 'h'),
        ("work/a/b/tls.pem", 'h'),
        ("work/a/b/tls.pem/c", 'h'),
        ("work/a/b/tls.pem2", 'w'),
        ("work/deep/key", 'h'),
        ("work/deep", 'w'),
        ("home/.env", '-'),
        ("work/../home", '-'),
    ] {
        assert_eq!(letter(verdict(&policy, &scratch.path(path))), expected, "{path}");
    }
}

fn with_rules<'a>(mut policy: Policy, rules: impl IntoIterator<Item = (&'a str, char)>) -> Policy {
    policy.filesystem.grants.clear();
    policy.filesystem.hidden.clear();
    for (path, rule) in rules {
        let mut grant = |access| {
            policy.filesystem.grants.push(Grant { path: PathBuf::from(path), access });
        };
        match rule {
            'w' => grant(Access::ReadWrite),
            'r' => grant(Access::ReadOnly),
            'h' => policy.filesystem.hidden.push(path.to_owned()),
            _ => {}
        }
    }
    policy
}

fn letter(access: Option<Access>) -> char {
    match access {
        None => '-',
        Some(Access::ReadWrite) => 'w',
        Some(Access::ReadOnly) => 'r',
        Some(Access::Hidden) => 'h',
    }
}
