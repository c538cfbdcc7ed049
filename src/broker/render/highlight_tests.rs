//! Which lines an agent is shown of an output too long to be shown.

use super::*;

fn marked(lines: &[&str]) -> Vec<String> {
    let numbered = lines.iter().enumerate().map(|(at, line)| (at as u64 + 1, line.as_bytes()));
    highlights(numbered).into_iter().map(|highlight| highlight.text).collect()
}

/// The first twenty places belong to strong lines, so a weak line shows only when there are few of them.
fn is_strong(line: &str) -> bool {
    let mut lines = vec!["some error of no consequence"; 20];
    lines.push(line);
    lines.extend(["some error of no consequence"; 20]);
    marked(&lines).iter().any(|text| line.contains(text.as_str()) || text.contains(line))
}

#[test]
fn lines_that_say_something_went_wrong_are_strong() {
    for line in [
        "error: could not compile `x`",
        "error[E0308]: mismatched types",
        "main.c:3:5: error: expected ';' before '}' token",
        "fatal: not a git repository",
        "thread 'main' panicked at src/main.rs:2:5:",
        "panic: runtime error: index out of range",
        "Traceback (most recent call last):",
        "TypeError: Cannot read properties of undefined (reading 'x')",
        "ValueError: invalid literal",
        "Exception in thread \"main\" java.lang.NullPointerException",
        "test parser::works ... FAILED",
        "test result: FAILED. 3 passed; 1 failed; 0 ignored",
        "--- FAIL: TestThing (0.00s)",
        "Segmentation fault (core dumped)",
        "main.o: undefined reference to `foo'",
        "E       assert 1 == 2",
        "assertion `left == right` failed",
        "npm ERR! code ELIFECYCLE",
        "make: *** [Makefile:3: all] Error 2",
        "src/a.ts(3,1): error TS2304: Cannot find name 'x'.",
        "bash: foo: command not found",
        "cat: x: No such file or directory",
        "touch: cannot touch 'x': Permission denied",
    ] {
        assert!(is_strong(line), "{line}");
    }
}

#[test]
fn lines_that_only_speak_of_errors_are_weak_or_nothing() {
    for line in ["retrying after an error", "2 errors generated", "the request was denied", "1 failed"] {
        assert_eq!(marked(&[line]), [line], "shown when there is room");
        assert!(!is_strong(line), "{line}");
    }
    for line in [
        "0 errors, 3 warnings",
        "Found no errors",
        "Errors: 0",
        "test result: ok. 12 passed; 0 failed; 0 ignored",
        "   Compiling thiserror v1.0.0",
        "   Compiling proc-macro-error v1.0.4",
        "gcc -Wall -Werror -c main.c",
        "gcc -Werror=format -c main.c",
        "src/error.rs",
        "M  src/errors/mod.rs",
        "return errors.New(x)",
        "all is well",
        "",
    ] {
        assert_eq!(marked(&[line]), [""; 0], "{line}");
    }
}

#[test]
fn of_too_many_the_first_ten_and_the_last_ten_are_kept() {
    let lines: Vec<String> = (1..=100).map(|number| format!("error: number {number}")).collect();
    let found = highlights(lines.iter().enumerate().map(|(at, line)| (at as u64 + 1, line.as_bytes())));
    let numbers: Vec<u64> = found.iter().map(|highlight| highlight.line).collect();
    assert_eq!(numbers, (1..=10).chain(91..=100).collect::<Vec<_>>());
    assert_eq!(found[19].text, "error: number 100");
}

#[test]
fn strong_lines_come_first_and_weak_ones_fill_the_rest_from_both_ends() {
    let mut lines = vec!["some failure"; 40];
    lines[20] = "error: the cause";
    let found = highlights(lines.iter().enumerate().map(|(at, line)| (at as u64 + 1, line.as_bytes())));
    let numbers: Vec<u64> = found.iter().map(|highlight| highlight.line).collect();
    assert_eq!(numbers, (1..=10).chain([21]).chain(32..=40).collect::<Vec<_>>());
}

#[test]
fn a_highlight_is_short_plain_text_around_its_sign() {
    let long = format!("{}error: here{}", "x".repeat(1000), "y".repeat(1000));
    let found = &marked(&[&format!("{} error: here {}", "x".repeat(1000), "y".repeat(1000))])[0];
    assert!(found.chars().count() == MAX_LINE && found.contains("error: here"), "{found}");
    assert_eq!(marked(&[&long]), [""; 0], "`xerror:` is no word");
    assert_eq!(marked(&["\x1b[1m\x1b[31merror\x1b[0m\x1b[1m: red\x1b[0m\r"]), ["error: red"]);
    assert!(marked(&[&format!("error: {}", "\u{20ac}".repeat(5000))])[0].chars().count() == MAX_LINE);
}
