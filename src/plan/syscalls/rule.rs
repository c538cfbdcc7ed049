//! What a rule is: some calls, an answer, and the reason for it.
//!
//! Rules are only data: `table` and `arguments` hold them, `bpf` turns them into a program for the kernel,
//! and [`Verdict::answer`] evaluates them here, so that tests can hold the two against each other.

use std::fmt;

use nix::errno::Errno;

use super::{Executables, FilterInput};
use crate::policy::{Network, SyscallGroup};

/// What the filter answers to one system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The call goes on into the kernel, where the other walls stand.
    Allow,
    /// The call returns this error and nothing else happens.
    Refuse(Errno),
}

/// One row of the table.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) when: When,
    /// Names, separated by spaces; those an architecture lacks are skipped there.
    pub(super) calls: &'static str,
    pub(super) verdict: Verdict,
    pub(super) reason: &'static str,
}

/// Under which policies a rule is in force. A conditional rule stands before the one that holds always.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    Always,
    Group(SyscallGroup),
    /// The host's network, narrowed to TCP ports by Landlock.
    ListedPorts,
    /// Only listed programs may be executed.
    ListedExecutables,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Verdict {
    Plain(Outcome),
    /// The first case that holds decides.
    Checked {
        cases: &'static [Case],
        otherwise: Outcome,
    },
}

/// An outcome for calls whose arguments pass every test.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) tests: &'static [Test],
    pub(super) then: Outcome,
}

#[derive(Debug)]
pub(super) enum Test {
    /// The word under the mask equals one of the values.
    Is { word: Word, mask: u32, values: &'static [u32] },
    /// At least one bit of the mask is set.
    Any { word: Word, mask: u32 },
}

/// Half of an argument: a filter sees 32 bits at a time. The kernel reads flags, modes and commands as
/// `int`, so looking at the low half alone is exact; `TIOCSTI | 1 << 32` is `TIOCSTI` to both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Low(usize),
    High(usize),
}

pub(super) const fn allow(calls: &'static str, reason: &'static str) -> Rule {
    Rule { when: When::Always, calls, verdict: Verdict::Plain(Outcome::Allow), reason }
}

pub(super) const fn refuse(errno: Errno, calls: &'static str, reason: &'static str) -> Rule {
    Rule { when: When::Always, calls, verdict: Verdict::Plain(Outcome::Refuse(errno)), reason }
}

pub(super) const fn check(
    calls: &'static str,
    cases: &'static [Case],
    otherwise: Outcome,
    reason: &'static str,
) -> Rule {
    Rule { when: When::Always, calls, verdict: Verdict::Checked { cases, otherwise }, reason }
}

pub(super) const fn case(tests: &'static [Test], then: Outcome) -> Case {
    Case { tests, then }
}

/// The low half of an argument, all of it, is one of `values`.
pub(super) const fn is(argument: usize, values: &'static [u32]) -> Test {
    Test::Is { word: Word::Low(argument), mask: u32::MAX, values }
}

pub(super) const fn masked(argument: usize, mask: u32, values: &'static [u32]) -> Test {
    Test::Is { word: Word::Low(argument), mask, values }
}

pub(super) const fn any(argument: usize, mask: u32) -> Test {
    Test::Any { word: Word::Low(argument), mask }
}

impl Rule {
    pub(super) const fn when(self, when: When) -> Rule {
        Rule { when, ..self }
    }
}

impl When {
    pub(super) fn holds(self, input: &FilterInput<'_>) -> bool {
        match self {
            When::Always => true,
            When::Group(group) => input.groups.contains(&group),
            When::ListedPorts => match input.network {
                Network::Host { connect_ports, bind_ports } => connect_ports.is_some() || bind_ports.is_some(),
                Network::None | Network::Proxy { .. } => false,
            },
            When::ListedExecutables => match input.executables {
                Executables::Listed => true,
                Executables::Any => false,
            },
        }
    }
}

impl Verdict {
    pub(super) fn answer(&self, arguments: &[u64; 6]) -> Outcome {
        match self {
            Verdict::Plain(outcome) => *outcome,
            Verdict::Checked { cases, otherwise } => cases
                .iter()
                .find(|case| case.tests.iter().all(|test| test.holds(arguments)))
                .map_or(*otherwise, |case| case.then),
        }
    }

    /// `allowed`, `EPERM`, or `by arguments: allowed, EPERM`.
    pub(super) fn in_words(&self) -> String {
        match self {
            Verdict::Plain(outcome) => outcome.to_string(),
            Verdict::Checked { cases, otherwise } => {
                let mut words: Vec<String> = Vec::new();
                for outcome in cases.iter().map(|case| case.then).chain([*otherwise]) {
                    let word = outcome.to_string();
                    if !words.contains(&word) {
                        words.push(word);
                    }
                }
                format!("by arguments: {}", words.join(", "))
            }
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Allow => f.write_str("allowed"),
            Outcome::Refuse(errno) => write!(f, "{errno:?}"),
        }
    }
}

impl Test {
    fn holds(&self, arguments: &[u64; 6]) -> bool {
        match self {
            Test::Is { word, mask, values } => values.contains(&(word.of(arguments) & mask)),
            Test::Any { word, mask } => word.of(arguments) & mask != 0,
        }
    }
}

impl Word {
    fn of(self, arguments: &[u64; 6]) -> u32 {
        match self {
            Word::Low(index) => arguments[index] as u32,
            Word::High(index) => (arguments[index] >> 32) as u32,
        }
    }
}
