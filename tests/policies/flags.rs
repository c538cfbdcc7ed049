//! PL-15: what the command line and the environment can change, and what they cannot.

use stockade::policy::{Access, Network, Operator, Overrides};

use crate::scratch::Scratch;

#[test]
fn a_flag_is_named_when_it_is_at_fault() {
    let one = |set: fn(&mut Overrides)| {
        let mut overrides = Overrides::default();
        set(&mut overrides);
        overrides
    };
    let cases: [(Overrides, &str); 9] = [
        (one(|o| o.memory = Some("12x".into())), "`--memory 12x`: `12x` is not a size\nhint: write a size as"),
        (one(|o| o.cpus = Some("two".into())), "`--cpus two`: is not a number\nhint: "),
        (one(|o| o.cpus = Some("-1".into())), "`--cpus -1`: -1 CPUs is out of bounds\nhint: "),
        (one(|o| o.processes = Some("0".into())), "`--processes 0`: 0 is out of bounds\nhint: "),
        (
            one(|o| o.timeout = Some("2h".into())),
            "`--timeout 2h`: `2h` is longer than `max_wall_time`\nhint: `max_wall_time` is 1h",
        ),
        (
            one(|o| o.network = Some("all".into())),
            "`--network all`: is not a mode\nhint: accepted: `none`, `host` or `proxy`",
        ),
        (one(|o| o.env = vec!["CI".into()]), "`--env CI`: has no `=`\nhint: "),
        (one(|o| o.rw = vec!["/etc".into()]), "`--rw /etc`: `/etc` is a system directory"),
        (one(|o| o.ro = vec!["gone".into()]), "`--ro gone`: `{tmp}/work/gone`: no such directory\nhint: "),
    ];
    let scratch = Scratch::new();
    for (overrides, expected) in cases {
        let error = scratch.load_with("default", None, &overrides).expect_err(expected);
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn flags_are_laid_over_the_policy() {
    let scratch = Scratch::new();
    let overrides = Overrides {
        rw: vec![scratch.path("home/.ssh")],
        ro: vec!["sub".into()],
        memory: Some("64G".into()),
        timeout: Some("10s".into()),
        network: Some("host".into()),
        env: vec!["A=b=c".into()],
        ..Overrides::default()
    };
    let policy = scratch.load_with("default", None, &overrides).expect("flags");
    let grants: Vec<_> = policy
        .filesystem
        .grants
        .iter()
        .map(|grant| (scratch.mask(&grant.path.display().to_string()), grant.access))
        .collect();
    let expected = [
        ("{tmp}/home/.ssh", Access::ReadWrite),
        ("{tmp}/work", Access::ReadWrite),
        ("{tmp}/work/sub", Access::ReadOnly),
    ];
    assert_eq!(grants, expected.map(|(path, access)| (path.to_owned(), access)));
    assert_eq!(policy.limits.memory.0, 64 << 30);
    assert_eq!(policy.limits.wall_time.as_secs(), 10);
    assert_eq!(policy.network, Network::Host { connect_ports: None, bind_ports: None });
    assert_eq!(policy.environment.set, [("A".to_owned(), "b=c".to_owned())]);
    let rw = Overrides { rw: vec![scratch.path("work")], ..Overrides::default() };
    let error = scratch.load_with("read-only", None, &rw).expect_err("the policy says read-only");
    assert!(error.contains("the stricter one wins"), "{error}");
}

/// The environment is the client's; it may say neither where home is nor where state was.
#[test]
fn the_environment_cannot_move_the_operators_home() {
    const CHILD: &str = "STOCKADE_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        let operator = Operator::current().expect("an operator");
        println!("home={} states={}", operator.homes[0].display(), operator.states.len());
        return;
    }
    let run = |home: &str| {
        let mut command = std::process::Command::new(std::env::current_exe().expect("this test"));
        command
            .args(["--exact", "flags::the_environment_cannot_move_the_operators_home", "--nocapture"])
            .env(CHILD, "1");
        let output = command.env("HOME", home).env("STOCKADE_MEMORY", "64G").output().expect("a child");
        let text = String::from_utf8(output.stdout).expect("text");
        text[text.find("home=").expect("an answer")..].split_whitespace().next().expect("a word").to_owned()
    };
    assert_eq!(run("/"), run("/srv"));
}
