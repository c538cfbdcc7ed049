//! What is refused leaves the file as it was, and says what to paste.

use crate::{User, beside, parse, read};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A file that cannot be edited, and a part of the reason.
const UNEDITABLE: &[(&str, &str, &str, &str)] = &[
    ("vscode", ".config/Code/User/mcp.json", "{\n  // mine\n  \"servers\": {}\n}\n", "is not plain JSON"),
    ("vscode", ".config/Code/User/mcp.json", "{\"servers\": {},}", "is not plain JSON"),
    ("cursor", ".cursor/mcp.json", "{\"mcpServers\": ", "is not plain JSON"),
    ("cursor", ".cursor/mcp.json", "[]", "is not a JSON object"),
    ("cursor", ".cursor/mcp.json", "{\"mcpServers\": []}", "holds a `mcpServers` that is not an object"),
    ("cursor", ".cursor/mcp.json", "{\"mcpServers\": {}, \"mcpServers\": {}}", "holds `mcpServers` twice"),
    ("cursor", ".cursor/mcp.json", "{\"mcpServers\": {\"stockade\": 1, \"stockade\": 2}}", "holds `stockade` twice"),
    ("codex", ".codex/config.toml", "model = \n", "is not TOML"),
    ("codex", ".codex/config.toml", "mcp_servers = { other = {} }\n", "in a way that this does not edit"),
    ("codex", ".codex/config.toml", "[mcp_servers]\nstockade = { url = \"u\" }\n", "in a way that this does not edit"),
    ("codex", ".codex/config.toml", "mcp_servers = 1\n", "in a way that this does not edit"),
];

#[test]
fn what_cannot_be_edited_is_untouched_and_what_to_paste_is_shown() {
    for (client, name, text, reason) in UNEDITABLE {
        let user = User::new();
        let file = user.home.file(name, text);
        let outcome = user.setup(&[client, "--write"]);
        assert_eq!(outcome.code, 125, "{text}: {outcome:?}");
        assert!(outcome.stderr.contains(&format!("error: `{}` ", file.display())), "{text}: {outcome:?}");
        assert!(outcome.stderr.contains(reason), "{text}: {outcome:?}");
        assert_eq!(read(&file), *text);
        assert_eq!(beside(&file).len(), 1, "{text}: nothing is left beside it");
        assert_eq!(outcome.stdout, user.setup(&[client]).stdout, "{text}");
        parse(&file, &outcome.stdout);
    }
}

#[test]
fn a_read_only_file_is_not_replaced() {
    let user = User::new();
    let file = user.home.file(".cursor/mcp.json", "{}");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).expect("a mode");
    let outcome = user.setup(&["cursor", "--write"]);
    assert_eq!(outcome.code, 125, "{outcome:?}");
    assert!(outcome.stderr.contains("is read-only"), "{outcome:?}");
    assert_eq!((read(&file).as_str(), beside(&file).len()), ("{}", 1));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("a mode");
    assert_eq!(user.setup(&["cursor", "--write"]).code, 0, "control");
}

type Make = fn(&Path);

#[test]
fn neither_a_directory_nor_a_pipe_nor_a_dead_link_is_taken_for_a_file() {
    let make: [(&str, Make); 3] = [
        ("is not a regular file", |path| fs::create_dir(path).expect("a directory")),
        ("is not a regular file", |path| {
            nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        }),
        ("is a link to nothing", |path| std::os::unix::fs::symlink("missing", path).expect("a link")),
    ];
    for (reason, make) in make {
        let user = User::new();
        let file = user.home.directory(".cursor").join("mcp.json");
        make(&file);
        let outcome = user.setup(&["cursor", "--write"]);
        assert_eq!(outcome.code, 125, "{outcome:?}");
        assert!(outcome.stderr.contains(reason), "{outcome:?}");
        assert_eq!(beside(&file), ["mcp.json"]);
    }
}

#[test]
fn a_link_out_of_the_project_is_not_followed() {
    let user = User::new();
    let outside = user.home.file("settings.json", "{}");
    user.project.directory(".gemini");
    std::os::unix::fs::symlink(&outside, user.project.path().join(".gemini/settings.json")).expect("a link");
    std::os::unix::fs::symlink(user.home.path(), user.project.path().join(".vscode")).expect("a link");
    for client in ["gemini", "vscode"] {
        let outcome = user.setup(&[client, "--scope", "project", "--write"]);
        assert_eq!(outcome.code, 125, "{outcome:?}");
        assert!(outcome.stderr.contains("leads out of the project by a link"), "{outcome:?}");
    }
    assert_eq!(beside(&outside), ["settings.json"]);
    assert_eq!(read(&outside), "{}");
    assert_eq!(user.setup(&["cursor", "--scope", "project", "--write"]).code, 0, "control");
}

#[test]
fn a_policy_that_does_not_load_is_refused_before_anything_is_written() {
    let user = User::new();
    let broken = user.home.file("broken.toml", "extends = \"coder\"\n[limits]\nmemory = 3\n").display().to_string();
    let inside = user.project.file("own.toml", "extends = \"coder\"\n").display().to_string();
    for policy in [broken.as_str(), &inside, "no-such-policy", "./missing.toml"] {
        let outcome = user.setup(&["codex", "--policy", policy, "--workspace", &user.workspace(), "--write"]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (125, ""), "{policy}: {outcome:?}");
        assert!(outcome.stderr.contains("error: "), "{policy}: {outcome:?}");
    }
    assert!(!user.file("user", ".codex").exists());
}

#[test]
fn words_that_are_not_known_are_2_and_say_what_is() {
    let user = User::new();
    let long = "n".repeat(33);
    let cases: [(&[&str], &str); 6] = [
        (&["vim"], "claude-code, claude-desktop, codex, cursor, vscode, gemini"),
        (&["codex", "--scope", "all"], "user, project"),
        (&["codex", "--name", "a.b"], "a name is 1 to 32 letters, digits, `-` and `_`"),
        (&["codex", "--name", &long], "a name is 1 to 32"),
        (&["codex", "--name", ""], "a name is 1 to 32"),
        (&["--write"], "<CLIENT>"),
    ];
    for (words, part) in cases {
        let outcome = user.setup(words);
        assert_eq!(outcome.code, 2, "{words:?}: {outcome:?}");
        assert!(outcome.stderr.contains(part), "{words:?}: {outcome:?}");
    }
    let outcome = user.setup(&["claude-desktop", "--scope", "project", "--workspace", &user.workspace()]);
    assert_eq!(outcome.code, 125, "{outcome:?}");
    assert!(outcome.stderr.contains("Claude Desktop has no configuration per project"), "{outcome:?}");
}

#[test]
fn a_path_that_the_client_would_take_for_a_variable_is_refused() {
    let user = User::new();
    let odd = user.project.directory("a$HOME and ${x}").display().to_string();
    for client in ["claude-code", "cursor", "vscode", "gemini"] {
        let outcome = user.setup(&[client, "--workspace", &odd]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (125, ""), "{client}: {outcome:?}");
        assert!(outcome.stderr.contains("would put a variable in its place"), "{client}: {outcome:?}");
    }
    let outcome = user.setup(&["codex", "--workspace", &odd]);
    let whole = parse(Path::new("x.toml"), &outcome.stdout);
    assert_eq!(whole["mcp_servers"]["stockade"]["args"], json!(["serve", "--workspace", odd]), "control");
}

#[test]
fn a_file_that_the_agent_could_rewrite_is_warned_of() {
    let user = User::new();
    let warned = |words: &[&str]| user.setup(words).stderr.contains("warning: the agent may write `");
    assert!(warned(&["cursor", "--scope", "project"]));
    assert!(!warned(&["cursor", "--scope", "project", "--policy", "read-only"]));
    assert!(!warned(&["cursor", "--workspace", &user.workspace()]));
}
