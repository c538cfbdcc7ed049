//! Verdicts become a classic BPF program: architecture, then a balanced tree over ranges of numbers.
//!
//! `seccompiler` installs the program and lends its instruction type, but does not compile it: it knows one
//! action for matches and one for the rest, where this filter has several errors; it does not look at x32
//! numbers; and it tests numbers one by one, which takes the kernel some 1.3 ms to load, ten times as long
//! as a tree, because the kernel walks the program once per number to learn which calls are always allowed.
//!
//! The ranges cover every 32-bit number, so x32 (0x4000_0000 and up) falls into the last one, ENOSYS, with no
//! test of its own. Code is laid down from the end to the start: every target is known when a jump is made,
//! and one too far for 8 bits gets a long jump right behind it.

use nix::errno::Errno;
use seccompiler::sock_filter;

use super::Program;
use super::numbers::Arch;
use super::rule::{Case, Outcome, Test, Verdict, Word};

/// The kernel takes no longer program (`BPF_MAXINSNS`).
pub(super) const MAX_INSTRUCTIONS: usize = 4096;

pub(super) const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
pub(super) const AND: u16 = 0x54; // BPF_ALU | BPF_AND | BPF_K
pub(super) const JUMP: u16 = 0x05; // BPF_JMP | BPF_JA
pub(super) const IF_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
pub(super) const IF_AT_LEAST: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
pub(super) const IF_ANY_BIT: u16 = 0x45; // BPF_JMP | BPF_JSET | BPF_K
pub(super) const RETURN: u16 = 0x06; // BPF_RET | BPF_K

pub(super) const RETURN_ALLOW: u32 = 0x7FFF_0000;
pub(super) const RETURN_ERRNO: u32 = 0x0005_0000;

/// Offsets in `struct seccomp_data`: number, architecture, instruction pointer, six arguments.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const ARGUMENTS: u32 = 16;

/// Compiles verdicts, ascending by number; every other number answers ENOSYS.
pub(super) fn compile(arch: Arch, verdicts: &[(u32, &'static Verdict)]) -> Program {
    let mut code = Assembler::default();
    let ranges = ranges(verdicts);
    let tree = code.tree(&ranges);
    let number = code.load(NUMBER, tree);
    let foreign = code.answer(UNKNOWN);
    let known = code.branch(IF_EQUAL, arch.audit(), number, foreign);
    code.load(ARCH, known);
    code.reversed.reverse();
    debug_assert!(code.reversed.len() <= MAX_INSTRUCTIONS);
    code.reversed
}

const UNKNOWN: Outcome = Outcome::Refuse(Errno::ENOSYS);

/// What all numbers of a range have in common.
#[derive(Clone, Copy)]
enum Leaf {
    Answer(Outcome),
    Check(&'static [Case], Outcome),
}

impl Leaf {
    fn of(verdict: &Verdict) -> Leaf {
        match *verdict {
            Verdict::Plain(outcome) => Leaf::Answer(outcome),
            Verdict::Checked { cases, otherwise } => Leaf::Check(cases, otherwise),
        }
    }

    fn same(self, other: Leaf) -> bool {
        match (self, other) {
            (Leaf::Answer(one), Leaf::Answer(two)) => one == two,
            (Leaf::Check(one, rest), Leaf::Check(two, other)) => std::ptr::eq(one, two) && rest == other,
            (Leaf::Answer(_), Leaf::Check(..)) | (Leaf::Check(..), Leaf::Answer(_)) => false,
        }
    }
}

/// Ranges that cover every number, as the first number of each; neighbours differ.
fn ranges(verdicts: &[(u32, &'static Verdict)]) -> Vec<(u32, Leaf)> {
    let mut ranges: Vec<(u32, Leaf)> = Vec::new();
    let mut add = |start: u32, leaf: Leaf| {
        if ranges.last().is_none_or(|&(_, last)| !last.same(leaf)) {
            ranges.push((start, leaf));
        }
    };
    let mut next = 0;
    for &(number, verdict) in verdicts {
        if number > next {
            add(next, Leaf::Answer(UNKNOWN));
        }
        add(number, Leaf::of(verdict));
        next = number + 1;
    }
    add(next, Leaf::Answer(UNKNOWN));
    ranges
}

/// A place in the program, counted from its end; 1 is the last instruction.
type Label = usize;

#[derive(Default)]
struct Assembler {
    reversed: Program,
    answers: Vec<(Outcome, Label)>,
    checks: Vec<(Leaf, Label)>,
}

impl Assembler {
    fn tree(&mut self, ranges: &[(u32, Leaf)]) -> Label {
        if let [(_, leaf)] = ranges {
            return match *leaf {
                Leaf::Answer(outcome) => self.answer(outcome),
                Leaf::Check(cases, otherwise) => match self.checks.iter().find(|(known, _)| known.same(*leaf)) {
                    Some(&(_, label)) => label,
                    None => {
                        let label = self.check(cases, otherwise);
                        self.checks.push((*leaf, label));
                        label
                    }
                },
            };
        }
        let middle = ranges.len() / 2;
        let above = self.tree(&ranges[middle..]);
        let below = self.tree(&ranges[..middle]);
        self.branch(IF_AT_LEAST, ranges[middle].0, above, below)
    }

    /// A return, or one like it that a short jump still reaches.
    fn answer(&mut self, outcome: Outcome) -> Label {
        if let Some(&(_, label)) = self.answers.iter().rev().find(|(known, _)| *known == outcome)
            && self.distance(label) <= SHORT
        {
            return label;
        }
        let value = match outcome {
            Outcome::Allow => RETURN_ALLOW,
            Outcome::Refuse(errno) => RETURN_ERRNO | errno as u32,
        };
        let label = self.push(RETURN, value, 0, 0);
        self.answers.push((outcome, label));
        label
    }

    /// The cases in order, each going on to the next where it does not hold.
    fn check(&mut self, cases: &'static [Case], otherwise: Outcome) -> Label {
        let mut next = self.answer(otherwise);
        for case in cases.iter().rev() {
            let mut then = self.answer(case.then);
            for test in case.tests.iter().rev() {
                then = self.test(test, then, next);
            }
            next = then;
        }
        next
    }

    fn test(&mut self, test: &Test, then: Label, otherwise: Label) -> Label {
        match *test {
            Test::Any { word, mask } => {
                let jump = self.branch(IF_ANY_BIT, mask, then, otherwise);
                self.load(offset(word), jump)
            }
            Test::Is { word, mask, values } => {
                let mut next = otherwise;
                for &value in values.iter().rev() {
                    next = self.branch(IF_EQUAL, value, then, next);
                }
                if mask != u32::MAX {
                    next = self.before(AND, mask, next);
                }
                self.load(offset(word), next)
            }
        }
    }

    fn load(&mut self, offset: u32, then: Label) -> Label {
        self.before(LOAD, offset, then)
    }

    /// An instruction that falls through to `then`, with a jump between them if something else lies there.
    fn before(&mut self, operation: u16, operand: u32, then: Label) -> Label {
        if self.distance(then) > 0 {
            self.jump(then);
        }
        self.push(operation, operand, 0, 0)
    }

    fn branch(&mut self, operation: u16, operand: u32, then: Label, otherwise: Label) -> Label {
        let then = self.near(then);
        let otherwise = self.near(otherwise);
        let (yes, no) = (self.distance(then), self.distance(otherwise));
        self.push(operation, operand, narrow(yes), narrow(no))
    }

    /// The label itself if a short jump reaches it, else a long jump to it.
    fn near(&mut self, label: Label) -> Label {
        if self.distance(label) <= SHORT { label } else { self.jump(label) }
    }

    fn jump(&mut self, label: Label) -> Label {
        let distance = u32::try_from(self.distance(label)).expect("a program is shorter than 4096 instructions");
        self.push(JUMP, distance, 0, 0)
    }

    /// Instructions between one pushed now and the label.
    fn distance(&self, label: Label) -> usize {
        self.reversed.len() - label
    }

    fn push(&mut self, code: u16, k: u32, jt: u8, jf: u8) -> Label {
        self.reversed.push(sock_filter { code, jt, jf, k });
        self.reversed.len()
    }
}

/// One less than 8 bits hold: a long jump for the other branch may come between.
const SHORT: usize = 254;

fn narrow(distance: usize) -> u8 {
    u8::try_from(distance).expect("`near` keeps jumps short")
}

/// Little-endian, as both architectures are.
fn offset(word: Word) -> u32 {
    let (index, half) = match word {
        Word::Low(index) => (index, 0),
        Word::High(index) => (index, 4),
    };
    ARGUMENTS + 8 * index as u32 + half
}
