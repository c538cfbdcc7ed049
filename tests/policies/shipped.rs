//! What the shipped policies promise, and that a policy shown is a policy.

use std::fs;

use stockade::policy::expect::{Judge, Paper};
use stockade::policy::{Attempt, Bytes, Overflow, Overrides, Verdict, shipped};

use crate::scratch::Scratch;

#[test]
fn every_shipped_policy_keeps_its_promises_and_reads_back_the_same() {
    for name in shipped::names() {
        let scratch = Scratch::new();
        for directory in [".cargo/registry", ".rustup"] {
            fs::create_dir_all(scratch.path("home").join(directory)).expect("a directory");
        }
        let policy = scratch.load_with(name, None, &Overrides::default()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(policy.agent, name);
        assert!(shipped::text(name).is_some_and(|text| text.starts_with("# For a")), "{name} says whom it is for");
        assert!(
            shipped::text(name).is_some_and(|text| text.contains("[[expect]]")),
            "{name} promises something itself"
        );
        for claim in policy.expectations.iter().flat_map(|expectation| &expectation.claims) {
            assert_eq!(Paper.judge(&policy, &claim.attempt), Ok(claim.verdict), "{name}: {}", claim.attempt);
        }
        let mut again = scratch.load(&policy.to_toml()).unwrap_or_else(|error| panic!("{name}: {error}"));
        again.name.clone_from(&policy.name);
        assert_eq!(again, policy, "{name}");
    }
}

#[test]
fn awkward_values_survive_being_shown() {
    let scratch = Scratch::new();
    for directory in ["work/a b", "work/q?", "work/it's"] {
        fs::create_dir(scratch.path(directory)).expect("a directory");
    }
    let text = "agent = \"x\"\n[filesystem]\nallowed_roots = [\"{workspace}/a b\", \"{workspace}/q??\", \"{workspace}/it's\"]\n\
                [commands]\nshell = false\nallowed = [\"'{workspace}/a b/tool' 'two words' ''\"]\n[limits]\ncpus = 0.1\ncpu_time = \"90s\"\nmemory = 1234567\n\
                output_overflow = \"kill\"\n[retention]\nmax_bytes = \"3M\"\n\
                [network]\nmode = \"host\"\nconnect_ports = [443]\nbind_ports = []\n[environment]\nset = { \"A.B\" = \"line\\nnext \\\"q\\\" \\\\\" }\n\
                [syscalls]\nallow = [\"io_uring\", \"debug\"]\n[identity]\nhost_user = \"owner\"\n[enforcement]\ncgroups = \"if-available\"\n[tools]\nsurface = \"families\"\n\
                [[expect]]\ndenied = [\"connect [::1]:80\", \"run sh -c 'a b'\", \"read {workspace}/x  y\"]\n";
    let policy = scratch.load(text).expect("a policy");
    assert_eq!(policy.filesystem.grants.len(), 3);
    assert_eq!(policy.commands.allowed[0].arguments, ["two words", ""]);
    assert_eq!((policy.limits.output_overflow, policy.retention.max_bytes), (Overflow::Kill, Bytes(3 << 20)));
    assert_eq!(scratch.load(&policy.to_toml()).expect("the same again"), policy);
}

#[test]
fn paper_judges_commands_and_connections() {
    let scratch = Scratch::new();
    let explicit = "[commands]\nallowed = [\"git log\", \"cat\", \"/usr/lib/git-core/*\"]\nblocked = [\"cat --help\"]\n[network]\nmode = \"host\"\nconnect_ports = [443]\n";
    let all = "[commands]\nallowed = [\"*\"]\nblocked = [\"sudo\", \"git push\"]\n[network]\nmode = \"proxy\"\nallow_hosts = [\"*.crates.io\", \"pypi.org:443\"]\n";
    let run = |words: &str| Attempt::Run(words.split(' ').map(String::from).collect());
    let execute = |program: &str| Attempt::Execute(program.to_owned());
    let connect = |host: &str, port| Attempt::Connect(host.to_owned(), port);
    for (policy, attempt, allowed) in [
        (explicit, run("git log -p"), true),
        (explicit, run("git push"), false),
        (explicit, run("git"), false),
        (explicit, execute("git"), true),
        (explicit, execute("bash"), false),
        (explicit, execute("/usr/lib/git-core/git-log"), true),
        (explicit, run("cat x"), true),
        (explicit, run("cat --help"), false),
        (explicit, run("/usr/bin/cat x"), true),
        (explicit, connect("1.1.1.1", 443), true),
        (explicit, connect("1.1.1.1", 80), false),
        (all, run("git push origin"), false),
        (all, run("git status"), true),
        (all, execute("git"), true),
        (all, execute("/usr/bin/sudo"), false),
        (all, execute("/opt/outside/tool"), false),
        (all, connect("static.crates.io", 80), true),
        (all, connect("crates.io", 443), false),
        (all, connect("evilcrates.io", 443), false),
        (all, connect("PyPI.org", 443), true),
        (all, connect("pypi.org", 22), false),
    ] {
        let expected = if allowed { Verdict::Allowed } else { Verdict::Denied };
        let found = Paper.judge(&scratch.load(policy).expect("a policy"), &attempt);
        assert_eq!(found, Ok(expected), "{attempt} in {policy}");
    }
}
