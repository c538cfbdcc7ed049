//! Claude Code: its own command is printed, and with `--write` run when it is there.

use crate::{User, beside, parse, program, read};
use serde_json::json;
use std::process::Command;

/// Stands for `claude`: notes where it was called and with what, and keeps servers as the real one does.
const CLAUDE: &str = r#"#!/usr/bin/python3
import json, os, sys
home = os.environ["HOME"]
with open(home + "/calls", "a") as calls:
    print(json.dumps([os.getcwd(), *sys.argv[1:]]), file=calls)
_, verb, _, scope, name, *rest = sys.argv[1:]
path = home + "/.claude.json" if scope == "user" else ".mcp.json"
whole = json.load(open(path)) if os.path.exists(path) else {}
servers = whole.setdefault("mcpServers", {})
if verb == "remove":
    del servers[name]
elif name in servers:
    sys.exit(f"MCP server {name} already exists in {scope} config")
else:
    servers[name] = {"type": "stdio", "command": rest[1], "args": rest[2:], "env": {}}
json.dump(whole, open(path, "w"))
"#;

fn calls(user: &User) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(user.home.path().join("calls")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("a call")).collect()
}

#[test]
fn the_printed_line_says_to_a_shell_what_is_meant() {
    let user = User::new();
    user.install("claude", "#!/bin/sh\nfor word; do printf '%s\\n' \"$word\"; done\n");
    let odd = user.project.directory("it's \"one\" \\ dir;").display().to_string();
    for client in ["claude-code", "claude"] {
        let outcome = user.setup(&[client, "--policy", "coder", "--workspace", &odd]);
        assert_eq!(outcome.stdout.lines().count(), 1, "{outcome:?}");
        assert!(outcome.stderr.contains(".claude.json"), "{outcome:?}");
        let path = user
            .command(&[])
            .get_envs()
            .find(|(name, _)| *name == "PATH")
            .and_then(|(_, path)| path)
            .map(ToOwned::to_owned);
        let shell = Command::new("/bin/sh").args(["-c", &outcome.stdout]).env("PATH", path.expect("a path")).output();
        let said = String::from_utf8(shell.expect("sh").stdout).expect("text");
        let program = program();
        let words = [
            "mcp",
            "add",
            "--scope",
            "user",
            "stockade",
            "--",
            &program,
            "serve",
            "--policy",
            "coder",
            "--workspace",
            &odd,
        ];
        assert_eq!(said.lines().collect::<Vec<_>>(), words);
    }
}

#[test]
fn its_own_command_is_run_where_it_is_there() {
    let user = User::new();
    user.install("claude", CLAUDE);
    let file = user.home.file(".claude.json", "{\"numStartups\": 3, \"mcpServers\": {\"stockade\": {\"url\": \"u\"}}}");
    let outcome = user.setup(&["claude-code", "--write"]);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(outcome.stdout.starts_with("replaced another `stockade` in "), "{outcome:?}");
    let here = user.workspace();
    let add = json!([here, "mcp", "add", "--scope", "user", "stockade", "--", program(), "serve"]);
    assert_eq!(calls(&user), [json!([here, "mcp", "remove", "--scope", "user", "stockade"]), add]);
    assert!(read(&file.with_file_name(".claude.json.stockade-backup-1")).contains("\"url\""));

    let again = user.setup(&["claude-code", "--write"]);
    assert!(again.stdout.starts_with("already there"), "{again:?}");
    assert_eq!(calls(&user).len(), 2, "and `claude` is not asked again");
}

#[test]
fn a_project_is_set_up_in_its_directory() {
    let user = User::new();
    user.install("claude", CLAUDE);
    let outcome = user.setup(&["claude-code", "--scope", "project", "--write"]);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let file = user.project.path().join(".mcp.json");
    assert_eq!(parse(&file, &read(&file))["mcpServers"]["stockade"]["args"], json!(["serve"]));
    assert_eq!(beside(&file), [".mcp.json"]);
}

#[test]
fn when_its_command_fails_that_is_said_and_the_backup_named() {
    let user = User::new();
    user.home.file(".claude.json", "{\"mcpServers\": {}}");
    user.install("claude", "#!/bin/sh\necho 'not logged in' >&2\nexit 3\n");
    let outcome = user.setup(&["claude-code", "--write"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (125, ""), "{outcome:?}");
    assert!(outcome.stderr.contains("not logged in"), "{outcome:?}");
    assert!(outcome.stderr.contains(".claude.json.stockade-backup-1"), "{outcome:?}");
    user.install("claude", "#!/bin/sh\nexit 0\n");
    let outcome = user.setup(&["claude-code", "--write"]);
    assert_eq!(outcome.code, 125, "success is not taken on its word: {outcome:?}");
    assert!(outcome.stderr.contains("does not hold the entry"), "{outcome:?}");
}
