//! Attempts as data: each is made inside a cell, where its errno is known, and outside, where it must fare differently.

use crate::support::{Yard, is_root};

/// The attack's number, the probe's words, the errno inside, and what the same words come to outside.
pub type Case<'a> = (&'a str, &'a str, i32, Outside);

/// The control of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outside {
    /// It works for anyone.
    Works,
    /// It works for root of namespaces of its own.
    WorksWithin,
    /// It works for root; an ordinary user is refused by the host too, so the run as root is the control.
    WorksForRoot,
    /// It fails there too, but with another errno: the call is reached.
    Differs,
    /// As `Differs`, for root of namespaces of its own: for what would change the real host, should it work.
    DiffersWithin,
    /// As `Differs`, for root; the host refuses an ordinary user before it looks at the arguments.
    DiffersForRoot,
    /// Other than inside, if this kernel has what is attempted; else it answers the same, and there is no control.
    IfKnown,
    /// It must not be tried on a real host, or cannot be.
    NotTried,
}

/// Makes every attempt inside one cell, and its control outside.
pub fn check(yard: &Yard, cases: &[Case<'_>]) {
    let words: Vec<&str> = cases.iter().map(|case| case.1).collect();
    let inside = try_inside(yard, &words);
    let mut failures = Vec::new();
    for ((id, words, expected, outside), answer) in cases.iter().zip(&inside) {
        if answer != expected {
            failures.push(format!("{id}: `{words}` came to {answer} inside, not {expected}"));
        }
        failures.extend(control(yard, words, *expected, *outside).map(|failure| format!("{id}: {failure}")));
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

/// The errno of each attempt, all in one cell, one after the other.
pub fn try_inside(yard: &Yard, attempts: &[&str]) -> Vec<i32> {
    let script = "while read -r words; do \"$0\" $words </dev/null >/dev/null 2>&1; echo $?; done";
    let input: String = attempts.iter().map(|words| format!("{words}\n")).collect();
    let outcome = yard.run_with_input(&["/bin/bash", "-fc", script, &yard.probe_path()], input.as_bytes());
    let answers: Vec<i32> = outcome.stdout.lines().map(|line| line.parse().expect("a number")).collect();
    assert_eq!(answers.len(), attempts.len(), "{outcome:?}");
    answers
}

fn control(yard: &Yard, words: &str, inside: i32, outside: Outside) -> Option<String> {
    let split: Vec<&str> = words.split_whitespace().collect();
    let within: Vec<&str> = ["within"].into_iter().chain(split.iter().copied()).collect();
    let (tried, good): (_, fn(i32, i32) -> bool) = match outside {
        Outside::Works => (&split, |answer, _| answer == 0),
        Outside::WorksWithin => (&within, |answer, _| answer == 0),
        Outside::WorksForRoot if is_root() => (&split, |answer, _| answer == 0),
        Outside::Differs => (&split, |answer, inside| answer != inside && answer < 200),
        Outside::DiffersWithin => (&within, |answer, inside| answer != inside && answer < 200),
        Outside::DiffersForRoot if is_root() => (&split, |answer, inside| answer != inside && answer < 200),
        Outside::IfKnown => (&split, |answer, _| answer < 200),
        Outside::WorksForRoot | Outside::DiffersForRoot | Outside::NotTried => return None,
    };
    let answer = yard.probe_outside(tried);
    (!good(answer, inside)).then(|| format!("`{words}` came to {answer} outside, which is no {outside:?}"))
}
