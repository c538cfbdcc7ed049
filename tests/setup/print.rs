//! Without `--write`: valid text on stdout, the place on stderr, nothing touched.

use crate::{FILES, User, parse, program};
use serde_json::json;
use std::path::Path;

#[test]
fn every_client_gets_the_program_the_policy_and_the_workspace() {
    let user = User::new();
    let workspace = user.workspace();
    for (client, scope, name, servers) in FILES.iter().filter(|row| row.0 != "claude-code") {
        let words = [client, "--scope", scope, "--policy", "coder", "--workspace", &workspace, "--name", "walls"];
        let outcome = user.setup(&words);
        assert_eq!(outcome.code, 0, "{client}: {outcome:?}");
        let whole = parse(Path::new(name), &outcome.stdout);
        let entry = &whole[servers]["walls"];
        assert_eq!(entry["command"], json!(program()), "{client}: {outcome:?}");
        let args = json!(["serve", "--policy", "coder", "--workspace", workspace]);
        assert_eq!(entry["args"], args, "{client}: {outcome:?}");
        let file = user.file(scope, name);
        assert!(outcome.stderr.contains(&format!("belongs in {}", file.display())), "{client}: {outcome:?}");
        assert!(!file.exists(), "{client}: nothing is written");
    }
}

/// Without `--workspace`: the arguments, by how a client tells a server where the project is.
const STARTS: &[(&str, &[&str])] = &[
    ("codex", &["serve"]),
    ("gemini", &["serve"]),
    ("cursor", &["serve", "--workspace", "${workspaceFolder}"]),
    ("vscode", &["serve", "--workspace", "${workspaceFolder}"]),
    ("code", &["serve", "--workspace", "${workspaceFolder}"]),
];

#[test]
fn the_workspace_is_the_project_that_the_client_has_open() {
    let user = User::new();
    for (client, args) in STARTS {
        let outcome = user.setup(&[client]);
        let name = if *client == "codex" { "x.toml" } else { "x.json" };
        let whole = parse(Path::new(name), &outcome.stdout);
        let servers = whole.as_object().expect("an object").values().next().expect("servers");
        assert_eq!(servers["stockade"]["args"], json!(args), "{client}: {outcome:?}");
    }
    let outcome = user.setup(&["claude-desktop"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (125, ""), "{outcome:?}");
    assert!(outcome.stderr.contains("hint: name the directory the agent works in: `--workspace DIR`"), "{outcome:?}");
}

#[test]
fn the_keys_that_only_one_client_has_are_there() {
    let user = User::new();
    let entry = |client: &str, name: &str, servers: &str| {
        parse(Path::new(name), &user.setup(&[client]).stdout)[servers]["stockade"].clone()
    };
    assert_eq!(entry("codex", "x.toml", "mcp_servers")["tool_timeout_sec"], json!(600));
    assert_eq!(entry("gemini", "x.json", "mcpServers")["timeout"], json!(600_000));
    assert_eq!(entry("vscode", "x.json", "servers")["type"], json!("stdio"));
    assert_eq!(entry("cursor", "x.json", "mcpServers").as_object().expect("an object").len(), 2);
}

#[test]
fn a_policy_file_is_named_by_its_absolute_path() {
    let user = User::new();
    user.home.file("walls.toml", "extends = \"coder\"\n");
    let words = ["gemini", "--policy", "../walls.toml", "--workspace", &user.workspace()];
    let mut command = user.command(&words);
    let outcome = crate::Outcome::new(&command.current_dir(user.home.directory("deep")).output().expect("stockade"));
    let file = user.home.path().join("walls.toml").display().to_string();
    let whole = parse(Path::new("x.json"), &outcome.stdout);
    assert_eq!(whole["mcpServers"]["stockade"]["args"][2], json!(file), "{outcome:?}");
}

#[test]
fn it_works_from_the_home_directory_where_no_agent_may_work() {
    let user = User::new();
    let at_home = |words: &[&str]| {
        crate::Outcome::new(&user.command(words).current_dir(user.home.path()).output().expect("stockade"))
    };
    assert_eq!(at_home(&["codex"]).code, 0);
    let outcome = at_home(&["codex", "--scope", "project"]);
    assert_eq!(outcome.code, 125, "there the home would be the workspace: {outcome:?}");
    assert!(outcome.stderr.contains("home directory"), "{outcome:?}");
}

#[test]
fn a_build_is_warned_of_and_an_installed_program_is_not() {
    let user = User::new();
    let beside = crate::Scratch::new();
    let run = |program: &Path| {
        let mut command = std::process::Command::new(program);
        command.args(["setup", "codex"]).env("HOME", user.home.path()).current_dir(user.project.path());
        crate::Outcome::new(&command.output().expect("stockade"))
    };
    let built = beside.directory("target/debug").join("stockade");
    beside.directory("target/debug/.fingerprint");
    let installed = beside.directory("bin").join("stockade");
    for path in [&built, &installed] {
        crate::support::cases::copy(&crate::stockade(), path);
    }
    assert!(run(&built).stderr.starts_with("warning: "), "{:?}", run(&built));
    assert!(!run(&installed).stderr.contains("warning: "), "{:?}", run(&installed));
}

#[test]
fn without_a_client_they_are_listed_with_their_files() {
    let user = User::new();
    let outcome = user.setup(&[]);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    for (client, _, name, _) in FILES.iter().filter(|row| row.1 == "user") {
        let file = user.file("user", name).display().to_string();
        let line = outcome.stdout.lines().find(|line| line.starts_with(&format!("{client} ")));
        assert!(line.is_some_and(|line| line.ends_with(&file)), "{client}: {outcome:?}");
    }
}

#[test]
fn directories_of_the_environment_are_heeded() {
    let user = User::new();
    let cases = [
        ("XDG_CONFIG_HOME", "vscode", "Code/User/mcp.json"),
        ("CODEX_HOME", "codex", "config.toml"),
        ("CLAUDE_CONFIG_DIR", "claude-code", ".claude.json"),
    ];
    for (variable, client, name) in cases {
        let above = user.home.directory("elsewhere");
        let output = user.command(&[client]).env(variable, &above).output().expect("stockade");
        let outcome = crate::Outcome::new(&output);
        assert!(outcome.stderr.contains(&above.join(name).display().to_string()), "{client}: {outcome:?}");
    }
}
