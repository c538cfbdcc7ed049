//! Argument rules, which look at the requested words, and `shell = false`.

use crate::support::Yard;

/// Requests under a list with argument rules, and the exit code: 125 is a refusal.
const RULED: &[(&[&str], i32)] = &[
    (&["echo", "log", "x"], 0),
    (&["/bin/echo", "log"], 0),
    (&["/usr/bin/echo", "log"], 0),
    (&["echo", "push"], 125),
    (&["echo"], 125),
    (&["echo", "--", "log"], 125),
    (&["echo", "logs"], 125),
    (&["echo", "status", "--force"], 125),
    (&["echo", "status"], 0),
    (&["cat", "/etc/hostname"], 0),
    (&["ls"], 125),
];

#[test]
fn argument_rules_hold_for_what_is_asked_for() {
    let yard = Yard::with(
        "[commands]\nallowed = [\"echo log\", \"echo status\", \"cat\"]\nblocked = [\"echo status --force\"]",
    );
    for (argv, code) in RULED {
        let outcome = yard.run(argv);
        assert_eq!(outcome.code, *code, "{argv:?}: {outcome:?}");
        assert_eq!(outcome.stdout.is_empty(), *code == 125, "{argv:?}: {outcome:?}");
    }
}

#[test]
fn git_log_may_be_asked_for_and_git_push_may_not() {
    let yard = Yard::with("[commands]\nblocked = [\"git push\"]");
    assert_eq!(
        yard.shell("git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first").code,
        0
    );
    let outcome = yard.run(&["git", "log", "--format=%s"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "first\n"), "{outcome:?}");
    let outcome = yard.run(&["git", "push", "origin"]);
    assert_eq!(outcome.code, 125, "{outcome:?}");
    assert!(
        outcome.stderr.starts_with("error: `git push origin` is not allowed: `git push` is in `blocked`\n"),
        "{outcome:?}"
    );
    // Below a shell the rule is advice: the kernel sees programs, not arguments.
    assert_eq!(yard.shell("git push 2>/dev/null; test $? = 128").code, 0, "git itself ran");
}

#[test]
fn refusals_name_the_rule_and_what_is_allowed_instead() {
    let yard = Yard::with("[commands]\nallowed = [\"echo log\"]");
    let outcome = yard.run(&["echo", "push"]);
    assert_eq!(
        outcome.stderr,
        "error: `echo push` is not allowed: nothing in `allowed` covers it\n\
         hint: `stockade policy show` prints the command lists in force\n"
    );
}

#[test]
fn without_a_shell_no_shell_can_be_opened() {
    let yard = Yard::with("[commands]\nshell = false\nallowed = [\"cat\"]");
    let mut command = std::process::Command::new(crate::support::stockade());
    let run = yard.command();
    let shared: Vec<_> = run.get_args().skip(1).collect();
    let output = command.arg("shell").args(&shared).output().expect("stockade starts");
    assert_eq!(output.status.code(), Some(125));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "error: the policy says `shell = false`: no command strings\nhint: give the program and its arguments as `argv`\n"
    );
    let outcome = yard.run(&["bash", "-c", "cat /etc/hostname"]);
    assert_eq!(outcome.code, 125, "{outcome:?}");
    assert_eq!(yard.run(&["cat", "/etc/hostname"]).stdout, "stockade\n", "control");
}

#[test]
fn the_shipped_reader_of_history_reads_and_nothing_else() {
    let yard = Yard::new();
    assert_eq!(
        yard.shell("git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first").code,
        0
    );
    let run = |words: &[&str]| {
        let mut command = std::process::Command::new(crate::support::stockade());
        command.args(["run", "--policy", "git-read", "--workspace"]).arg(yard.workspace.path());
        command.current_dir(yard.workspace.path()).arg("--").args(words);
        crate::support::Outcome::new(&command.output().expect("stockade starts"))
    };
    let log = run(&["git", "log", "--format=%s"]);
    assert_eq!((log.code, log.stdout.as_str()), (0, "first\n"), "{log:?}");
    for refused in [&["git", "push"][..], &["git", "commit"], &["bash"], &["python3"], &["git"]] {
        assert_eq!(run(refused).code, 125, "{refused:?}");
    }
}
