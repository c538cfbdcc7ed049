//! A child and its parents: what is replaced, what adds up, where it ends.

use stockade::policy::{CommandRule, Overflow, Overrides};

use crate::scratch::Scratch;

#[test]
fn a_child_replaces_lists_but_cannot_unhide_or_unblock() {
    let scratch = Scratch::new();
    scratch.write(
        "policies/parent.toml",
        "agent = \"parent\"\n[filesystem]\nallowed_roots = [\"{workspace}\"]\nhidden = [\"a\"]\n[commands]\nallowed = [\"*\"]\nblocked = [\"su\"]\n\
         [environment]\npass = [\"LANG\"]\nset = { A = \"1\", B = \"2\" }\nredact = [\"X\"]\n[limits]\ncpus = 3\noutput_overflow = \"pause\"\n[[expect]]\ndenied = [\"read /a\"]\n",
    );
    let child = "extends = \"parent.toml\"\n[filesystem]\nallowed_roots = []\nhidden = [\"b\"]\n[commands]\nallowed = [\"git log\"]\nblocked = [\"dd\"]\n\
                 [environment]\npass = []\nset = { B = \"3\" }\nredact = [\"Y\"]\n[[expect]]\ndenied = [\"read /b\"]\n";
    let policy = scratch.load(child).expect("a child");
    let programs = |rules: &[CommandRule]| rules.iter().map(|rule| rule.program.clone()).collect::<Vec<_>>();
    assert_eq!(policy.agent, "case", "an identity is not inherited");
    assert_eq!((policy.limits.cpus, policy.limits.output_overflow), (3.0, Overflow::Pause));
    assert_eq!(policy.filesystem.grants, []);
    assert_eq!(policy.filesystem.hidden, ["a", "b"]);
    assert_eq!(policy.commands.allowed, [CommandRule { program: "git".into(), arguments: vec!["log".into()] }]);
    assert_eq!(programs(&policy.commands.blocked), ["su", "dd"]);
    assert_eq!(policy.environment.pass, [""; 0]);
    assert_eq!(policy.environment.set, [("A".into(), "1".into()), ("B".into(), "3".into())]);
    assert!(["X", "Y", "*TOKEN*"].iter().all(|name| policy.environment.redact.iter().any(|known| known == name)));
    assert_eq!(policy.expectations.len(), 2);
}

#[test]
fn a_chain_of_parents_ends() {
    let scratch = Scratch::new();
    let link = |from: usize, to: usize| {
        scratch.write(&format!("policies/p{from}.toml"), &format!("extends = \"p{to}.toml\"\n"));
    };
    (1..8).for_each(|number| link(number, number + 1));
    scratch.write("policies/p8.toml", "");
    let load = || scratch.load_with("policies/p1.toml", None, &Overrides::default());
    load().expect("eight policies");
    link(8, 9);
    scratch.write("policies/p9.toml", "");
    let error = load().expect_err("nine policies");
    assert!(error.contains("p8.toml:1:11: more than 8 policies"), "{error}");
    link(3, 1);
    let error = load().expect_err("a circle");
    assert!(error.contains("p3.toml:1:11: ") && error.contains("extends itself"), "{error}");
}

#[test]
fn a_parent_inside_the_workspace_is_refused_too() {
    let scratch = Scratch::new();
    scratch.write("work/parent.toml", "").chmod("work", 0o755);
    let text =
        |roots: &str| format!("extends = \"{{tmp}}/work/parent.toml\"\n[filesystem]\n{roots} = [\"{{workspace}}\"]\n");
    scratch.load(&text("read_only_roots")).expect("the agent cannot write it");
    let error = scratch.load(&text("allowed_roots")).expect_err("the agent could write it");
    assert!(error.contains("holds this policy (`{tmp}/work/parent.toml`)"), "{error}");
}

#[test]
fn a_lowered_bound_takes_the_inherited_wall_time_with_it() {
    let scratch = Scratch::new();
    let policy = scratch.load("extends = \"default\"\n[limits]\nmax_wall_time = \"5m\"\n");
    assert_eq!(policy.expect("a tighter child").limits.wall_time.as_secs(), 300);
    let text = "extends = \"default\"\n[limits]\nwall_time = \"2h\"\n";
    let error = scratch.load(text).expect_err("longer than the inherited bound");
    assert!(error.contains("case.toml:3:13: `2h` is longer than `max_wall_time`"), "{error}");
}
