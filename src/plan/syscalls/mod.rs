//! The syscall filter: an allow-list as data (`table`, `arguments`), compiled once per policy (`bpf`).
//!
//! It is the wall in front of the kernel's own surface: what no ordinary program needs is not reachable at
//! all, and what could undo another wall (namespaces, mounts, a second ABI, sockets that Landlock does not
//! see) is refused by its arguments. It never looks behind a pointer, because another thread could change
//! what is there after the look; a call whose meaning lies in memory is therefore taken whole or refused whole:
//! `clone3`, `openat2` and `io_uring_*` answer ENOSYS, and programs fall back to calls that can be judged.
//!
//! Answers: what is known and refused gets EPERM, or the error that a kernel without the feature would give
//! where programs have a fallback for it; unknown numbers, x32 and foreign ABIs (i386 through `int 0x80`, 32-bit ARM)
//! get ENOSYS. Nothing is killed: a program that probes for a feature must live to hear that it is missing.
//! Start with `table` for what is allowed; `launch::seal` installs the program.
#![forbid(unsafe_code)]

mod arguments;
mod bpf;
mod numbers;
mod rule;
mod table;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::ptr;

use nix::errno::Errno;

use crate::policy::{Network, SyscallGroup};
use numbers::Arch;
pub use rule::Outcome;
use rule::{Rule, Verdict, When};

/// A program for the kernel, ready for `seccompiler::apply_filter`, which sets no_new_privs, loads it, and
/// allocates nothing on success.
pub type Program = seccompiler::BpfProgram;

/// The parts of a policy that shape the filter.
#[derive(Debug, Clone, Copy)]
pub struct FilterInput<'a> {
    pub groups: &'a [SyscallGroup],
    pub network: &'a Network,
    pub executables: Executables,
}

/// Whether the policy names the programs that may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Executables {
    /// `allowed = ["*"]`, with or without a block-list.
    Any,
    /// An explicit list: files that no path rule covers must not become executable.
    Listed,
}

/// One rule in force, in words for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    pub calls: Vec<&'static str>,
    /// `allowed`, `EPERM`, or `by arguments: allowed, EPERM`.
    pub answer: String,
    pub reason: &'static str,
}

/// Compiles the filter for the architecture stockade runs on.
pub fn compile(input: &FilterInput<'_>) -> Program {
    bpf::compile(Arch::NATIVE, &verdicts(Arch::NATIVE, input))
}

/// What the filter answers to one call, taken from the table and not from the program.
pub fn outcome(input: &FilterInput<'_>, number: u32, arguments: [u64; 6]) -> Outcome {
    answer(Arch::NATIVE, input, number, &arguments)
}

/// Every rule in force, in the order of the table.
pub fn describe(input: &FilterInput<'_>) -> Vec<Explanation> {
    let in_force = in_force(input);
    let known: HashSet<&str> = Arch::NATIVE.calls().map(|(_, name)| name).collect();
    let decides =
        |rule: &Rule, name: &str| known.contains(name) && in_force.get(name).is_some_and(|&it| ptr::eq(it, rule));
    rules()
        .map(|rule| Explanation {
            calls: rule.calls.split_whitespace().filter(|name| decides(rule, name)).collect(),
            answer: rule.verdict.in_words(),
            reason: rule.reason,
        })
        .filter(|told| !told.calls.is_empty())
        .collect()
}

/// Why this combination cannot be enforced by any filter, if so. A plan must refuse it instead of being weaker in silence.
pub fn contradiction(input: &FilterInput<'_>) -> Option<&'static str> {
    let rings = input.groups.contains(&SyscallGroup::IoUring);
    (rings && When::ListedPorts.holds(input)).then_some(
        "`io_uring` sends without passing the filter, so UDP and TCP fast open would leave by ports that are not \
         listed",
    )
}

/// What is answered to a number that no table knows: as a kernel without the call would answer.
static UNKNOWN: Verdict = Verdict::Plain(Outcome::Refuse(Errno::ENOSYS));

/// What is answered to a known call that no rule names.
static UNNAMED: Verdict = Verdict::Plain(Outcome::Refuse(Errno::EPERM));

fn answer(arch: Arch, input: &FilterInput<'_>, number: u32, arguments: &[u64; 6]) -> Outcome {
    let in_force = in_force(input);
    let name = arch.calls().find(|&(known, _)| known == number).map(|(_, name)| name);
    name.map_or(&UNKNOWN, |name| verdict(&in_force, name)).answer(arguments)
}

/// Every known number with its verdict, ascending.
fn verdicts(arch: Arch, input: &FilterInput<'_>) -> Vec<(u32, &'static Verdict)> {
    let in_force = in_force(input);
    arch.calls().map(|(number, name)| (number, verdict(&in_force, name))).collect()
}

fn rules() -> impl DoubleEndedIterator<Item = &'static Rule> {
    table::RULES.iter().chain(arguments::RULES)
}

/// The rule that decides each call under this input: one that holds under a condition before one that holds always.
fn in_force(input: &FilterInput<'_>) -> HashMap<&'static str, &'static Rule> {
    let (lasting, conditional): (Vec<_>, Vec<_>) =
        rules().filter(|rule| rule.when.holds(input)).partition(|rule| rule.when == When::Always);
    let ascending = lasting.into_iter().chain(conditional);
    ascending.flat_map(|rule| rule.calls.split_whitespace().map(move |name| (name, rule))).collect()
}

fn verdict(in_force: &HashMap<&'static str, &'static Rule>, name: &str) -> &'static Verdict {
    in_force.get(name).map_or(&UNNAMED, |rule| &rule.verdict)
}
