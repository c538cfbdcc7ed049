//! `stockade policy …`: exit codes, and what is written to each stream.

use std::fs;
use std::path::Path;

use stockade::cli::policy::{Judges, PolicyCommand, run};
use stockade::policy::expect::{Judge, Paper};
use stockade::policy::{Attempt, Policy, Verdict, shipped};

use crate::scratch::Scratch;

/// What `stockade policy …` answers: the exit code, and what is written to each stream.
fn cli(command: &PolicyCommand) -> (u8, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code =
        run(command, Judges { paper: &Paper, live: &Refusing }, &mut out, &mut err).expect("memory can be written");
    (code, String::from_utf8(out).expect("text"), String::from_utf8(err).expect("text"))
}

struct Refusing;

impl Judge for Refusing {
    fn judge(&self, _: &Policy, _: &Attempt) -> Result<Verdict, String> {
        Err("no cell here".to_owned())
    }
}

#[test]
fn check_answers_for_the_promises() {
    let scratch = Scratch::new();
    let promise = |words: &str| format!("extends = \"default\"\n[[expect]]\nwhy = \"because\"\n{words}\n");
    scratch.write("policies/kept.toml", &promise("denied = [\"write /etc/passwd\"]"));
    scratch.write("policies/broken.toml", &promise("denied = [\"write {workspace}/x\"]"));
    scratch.write("policies/wrong.toml", "[limit]\n");
    let check = |name: &str, live| {
        let policy = scratch.path("policies").join(name).display().to_string();
        let (code, out, err) = cli(&PolicyCommand::Check { policy, live, workspace: Some(scratch.path("work")) });
        (code, scratch.mask(&out), scratch.mask(&err))
    };
    let (code, out, err) = check("kept.toml", false);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.ends_with("keeps its promises (13)"), "{out}");
    let (code, out, _) = check("broken.toml", false);
    let expected = "broken: `write {tmp}/work/x` is allowed, promised denied\n   why: because\n`{tmp}/policies/broken.toml` breaks 1 of 13 promises";
    assert_eq!((code, out.as_str()), (1, expected));
    let (code, out, err) = check("wrong.toml", false);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.starts_with("error: {tmp}/policies/wrong.toml:1:2: unknown key `limit`"), "{err}");
    let (code, out, _) = check("kept.toml", true);
    assert!(code == 1 && out.contains("cannot be judged: no cell here"), "{out}");
}

#[test]
fn init_writes_a_policy_that_works_and_never_overwrites() {
    let scratch = Scratch::new();
    let path = scratch.path("policies/new/mine.toml");
    let init = |from: &str| cli(&PolicyCommand::Init { from: from.to_owned(), file: Some(path.clone()) });
    let (code, _, err) = init("codr");
    assert!(code == 1 && err.contains("hint: shipped are default, read-only, coder"), "{err}");
    assert!(!path.exists());
    assert_eq!(init("coder").0, 0);
    let text = fs::read_to_string(&path).expect("the new file");
    let policy = scratch.load(&text).expect("as it is written");
    assert_eq!(policy.limits.memory.0, 4 << 30, "it extends coder");
    let uncommented: String = text
        .lines()
        .map(|line| line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).unwrap_or(line).to_owned() + "\n")
        .collect();
    assert_ne!(uncommented, text);
    assert_eq!(scratch.load(&uncommented).expect("with every line in force").agent, "my-agent");
    let (code, _, err) = init("default");
    assert!(code == 1 && err.contains("never overwritten"), "{err}");
    assert_eq!(fs::read_to_string(&path).expect("the file"), text);
}

#[test]
fn list_and_schema_know_every_policy_and_every_key() {
    let (_, list, _) = cli(&PolicyCommand::List);
    let names: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, shipped::names().collect::<Vec<_>>());
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("policies");
    assert_eq!(fs::read_dir(directory).expect("the policies").count(), names.len(), "every file is shipped");

    let (_, schema, _) = cli(&PolicyCommand::Schema);
    assert!(!schema.contains("null"), "TOML has no null");
    let schema: serde_json::Value = serde_json::from_str(&schema).expect("JSON");
    assert_eq!(schema["additionalProperties"], false);
    for (section, key) in
        [("Filesystem", "tmp_inodes"), ("Limits", "cpu_time"), ("Network", "allow_hosts"), ("Expect", "denied")]
    {
        let section = &schema["$defs"][section];
        assert_eq!(section["additionalProperties"], false);
        assert!(section["properties"][key]["description"].is_string(), "{key}: {section}");
    }
}
