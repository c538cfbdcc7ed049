//! PL-17: where rules nest, the most specific path wins and, on a tie, the stricter one; in every wall alike.
//!
//! Three nested directories with each of four rules make 64 policies. Every one is put to a real cell and held
//! against the rule on paper, `policy::expect::verdict`; a sample again with mounts alone, and with Landlock alone.

use crate::support::{Yard, cases, stockade};
use libc::{EACCES, ENOENT, EROFS};
use std::path::{Path, PathBuf};
use std::process::Command;
use stockade::policy::expect::verdict;
use stockade::policy::{Access, Overrides, Policy};

const LEVELS: [&str; 3] = ["a", "a/b", "a/b/c"];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rule {
    None,
    ReadWrite,
    ReadOnly,
    Hidden,
}

const RULES: [Rule; 4] = [Rule::None, Rule::ReadWrite, Rule::ReadOnly, Rule::Hidden];

/// Every way to give the three directories a rule each.
fn nestings() -> impl Iterator<Item = [Rule; 3]> {
    let three = |a| RULES.into_iter().flat_map(move |b| RULES.into_iter().map(move |c| [a, b, c]));
    RULES.into_iter().flat_map(three)
}

/// A yard whose tree `{b}/t/a/b/c` has these rules, a file at each level, and a workspace that is out of it.
fn yard(rules: [Rule; 3], more: &str) -> Yard {
    let list = |wanted: Rule| -> String {
        let chosen = LEVELS.iter().zip(rules).filter(|(_, rule)| *rule == wanted);
        chosen.map(|(level, _)| format!(", \"{{beside}}/t/{level}\"")).collect()
    };
    let text = format!(
        "[filesystem]\nallowed_roots = [\"{{workspace}}\"{}]\nread_only_roots = [\"{{beside}}/other\"{}]\nhidden = [\".none\"{}]\n{more}",
        list(Rule::ReadWrite),
        list(Rule::ReadOnly),
        list(Rule::Hidden)
    );
    let yard = Yard::away(&text);
    yard.beside.directory("other");
    for level in LEVELS {
        yard.beside.file(&format!("t/{level}/file"), "text");
    }
    yard
}

fn policy(yard: &Yard) -> Policy {
    let flags = Overrides { ro: vec![yard.beside.path().join("probe")], ..Overrides::default() };
    let file = yard.beside.path().join("policy.toml");
    Policy::load(file.to_str(), Some(yard.workspace.path()), &flags).expect("a policy")
}

/// The verdict as errnos of reading and of appending to a file. A hidden file is closed when its directory is
/// masked whole, and not there when something below it is granted, because then the directory is rebuilt.
fn expected(rules: [Rule; 3], level: usize, access: Option<Access>) -> (i32, i32) {
    match access {
        Some(Access::ReadWrite) => (0, 0),
        Some(Access::ReadOnly) => (0, EROFS),
        None => (ENOENT, ENOENT),
        Some(Access::Hidden) => {
            let masked = (0..=level).rev().find(|at| rules[*at] == Rule::Hidden).expect("a hidden level");
            // Hiding is for what lies in a root; outside one there is nothing to hide.
            let in_root = rules[..masked].iter().any(|rule| matches!(rule, Rule::ReadWrite | Rule::ReadOnly));
            let opened = rules[masked..].iter().any(|rule| matches!(rule, Rule::ReadWrite | Rule::ReadOnly));
            if in_root && !opened { (EACCES, EACCES) } else { (ENOENT, ENOENT) }
        }
    }
}

fn attempts(yard: &Yard, rules: [Rule; 3]) -> Vec<(String, i32)> {
    let policy = policy(yard);
    let mut attempts = Vec::new();
    for (at, level) in LEVELS.iter().enumerate() {
        let file = PathBuf::from(yard.fill(&format!("{{b}}/t/{level}/file")));
        let (read, append) = expected(rules, at, verdict(&policy, &file));
        attempts.push((format!("read {}", file.display()), read));
        attempts.push((format!("append {}", file.display()), append));
    }
    attempts
}

fn borrowed(attempts: &[(String, i32)]) -> Vec<cases::Case<'_>> {
    attempts.iter().map(|(attempt, errno)| (attempt.as_str(), *errno)).collect()
}

#[test]
fn all_64_nestings_hold_in_a_cell_as_on_paper() {
    let mut count = 0;
    for rules in nestings() {
        let yard = yard(rules, "");
        let attempts = attempts(&yard, rules);
        let held = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| yard.inside(&borrowed(&attempts))));
        assert!(held.is_ok(), "{rules:?}");
        count += 1;
    }
    assert_eq!(count, 64);
}

/// The rule on paper says of every level what a table by hand says of it: the nearest rule above.
#[test]
fn the_rule_on_paper_is_the_nearest_rule() {
    for rules in nestings() {
        let yard = yard(rules, "");
        let policy = policy(&yard);
        for at in 0..3 {
            let nearest = rules[..=at].iter().rev().find(|rule| **rule != Rule::None);
            let wanted = match nearest {
                None | Some(Rule::None) => None,
                Some(Rule::ReadWrite) => Some(Access::ReadWrite),
                Some(Rule::ReadOnly) => Some(Access::ReadOnly),
                Some(Rule::Hidden) => Some(Access::Hidden),
            };
            let path = PathBuf::from(yard.fill(&format!("{{b}}/t/{}/file", LEVELS[at])));
            assert_eq!(verdict(&policy, &path), wanted, "{rules:?} at {}", LEVELS[at]);
        }
    }
}

#[test]
fn the_stricter_rule_wins_a_tie_in_a_cell() {
    let yard = Yard::away(
        "[filesystem]\nallowed_roots = [\"{workspace}\", \"{beside}/t\", \"{beside}/u\"]\n\
         read_only_roots = [\"{beside}/t\"]\nhidden = [\"{beside}/u/x\"]",
    );
    yard.beside.file("t/file", "text");
    yard.beside.file("u/x/file", "text");
    yard.beside.file("u/file", "text");
    yard.inside(&[
        ("read {b}/t/file", 0),
        ("append {b}/t/file", EROFS),
        ("append {b}/u/file", 0),
        ("read {b}/u/x/file", EACCES),
    ]);
}

/// The mounts are a whole wall by themselves: without Landlock every nesting comes to the same.
#[test]
fn mounts_alone_hold_the_same() {
    use Rule::{Hidden, None, ReadOnly, ReadWrite};
    for rules in [
        [None, None, None],
        [ReadWrite, ReadOnly, Hidden],
        [ReadWrite, Hidden, ReadWrite],
        [ReadOnly, ReadWrite, ReadOnly],
        [ReadOnly, Hidden, None],
        [None, ReadWrite, Hidden],
    ] {
        let yard = yard(rules, "[enforcement]\nlandlock = \"if-available\"");
        let attempts = attempts(&yard, rules);
        yard.inside_without_landlock(&borrowed(&attempts));
    }
    let strict = yard([None, None, None], "");
    let run = strict.command();
    let mut command = Command::new(strict.probe_path());
    command.arg("without-landlock").arg(stockade()).args(run.get_args()).args(["--", "/bin/true"]);
    let refused = command.output().expect("stockade starts");
    assert_eq!(refused.status.code(), Some(125), "a policy that requires Landlock is refused without it");
}

/// Landlock alone, laid over the host's own files by a thread of this test: everything outside the roots is closed
/// and a read-only root is read-only. It cannot take away below a grant; there the mounts are the only wall.
#[test]
fn landlock_alone_holds_outside_the_roots() {
    use Rule::{None, ReadOnly, ReadWrite};
    let yard = yard([None, ReadOnly, ReadWrite], "");
    yard.beside.file("secret", "token");
    let policy = policy(&yard);
    let place = |path: &str| PathBuf::from(yard.fill(path));
    let places = ["{b}/t/a/file", "{b}/t/a/b/file", "{b}/t/a/b/c/file", "{b}/secret"].map(place);
    let (free, walled) = std::thread::scope(|scope| {
        let places = &places;
        let free = scope.spawn(move || places.each_ref().map(|path| try_file(path))).join().expect("a free thread");
        let thread = scope.spawn(move || {
            restrict_this_thread(&policy);
            places.each_ref().map(|path| try_file(path))
        });
        (free, thread.join().expect("a walled thread"))
    });
    assert_eq!(free, [(0, 0); 4], "control");
    assert_eq!(walled, [(EACCES, EACCES), (0, EACCES), (0, 0), (EACCES, EACCES)]);
}

/// The same in a cell, where the mounts stand in front of it: one of the 16 rulesets that a process can have is there.
#[test]
fn landlock_is_in_force_in_a_cell() {
    let yard = Yard::away("");
    let probe = yard.probe_path();
    assert_eq!(yard.run(&[&probe, "landlock-layers"]).stdout, "layers 15\n");
    let outside = Command::new(&probe).arg("landlock-layers").output().expect("the probe starts");
    assert_eq!(String::from_utf8_lossy(&outside.stdout), "layers 16\n", "control");
}

fn try_file(path: &Path) -> (i32, i32) {
    let errno = |result: std::io::Result<()>| result.err().map_or(0, |error| error.raw_os_error().unwrap_or(-1));
    let append = std::fs::File::options().append(true).open(path).map(drop);
    (errno(std::fs::read(path).map(drop)), errno(append))
}

/// Landlock binds the calling thread and what it starts, not the other tests.
fn restrict_this_thread(policy: &Policy) {
    use std::os::fd::AsFd;
    use stockade::host::{Host, System};
    use stockade::sys::landlock::{Handled, allow_path, create_ruleset, restrict_self};
    let system = System::look(&stockade::plan::question(policy)).expect("a look");
    let plan = stockade::plan::make_cell(policy, &Host::probe(), &system).expect("a plan");
    let rules = plan.landlock.expect("this kernel has Landlock");
    let handled = Handled { files: rules.files, network: rules.network, scoped: rules.scoped };
    let ruleset = create_ruleset(&handled, rules.abi).expect("a ruleset");
    for (path, access) in rules.paths {
        if let Ok(opened) = stockade::sys::descriptor::open(&path.to_c(), libc::O_PATH) {
            allow_path(ruleset.as_fd(), opened.as_fd(), access).expect("a rule");
        }
    }
    nix::sys::prctl::set_no_new_privs().expect("no new privileges");
    restrict_self(ruleset.as_fd()).expect("a wall");
}
