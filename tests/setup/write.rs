//! With `--write`: our entry in, every other byte as it was, the old file kept beside.

use crate::{FILES, User, beside, parse, program, read};
use serde_json::json;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

fn write(user: &User, client: &str, scope: &str) -> crate::Outcome {
    user.setup(&[client, "--scope", scope, "--workspace", &user.workspace(), "--write"])
}

#[test]
fn a_file_that_is_not_there_is_made_and_the_second_time_nothing_is_done() {
    for (client, scope, name, servers) in FILES {
        let user = User::new();
        let file = user.file(scope, name);
        let outcome = write(&user, client, scope);
        assert_eq!(outcome.code, 0, "{client}: {outcome:?}");
        assert_eq!(outcome.stdout, format!("added `stockade` to {}\n", file.display()), "{client}");
        let text = read(&file);
        assert_eq!(parse(&file, &text)[servers]["stockade"]["command"], json!(program()), "{client}: {text}");
        let mode = fs::metadata(&file).expect("a file").mode() & 0o777;
        assert!(scope != &"user" || mode == 0o600, "{client}: keys may come to be in it: {mode:o}");

        let again = write(&user, client, scope);
        assert_eq!(again.stdout, format!("already there: `stockade` in {}\n", file.display()), "{client}: {again:?}");
        assert_eq!((again.code, read(&file)), (0, text), "{client}");
        let left: Vec<String> = beside(&file).into_iter().filter(|name| name.contains("stockade-")).collect();
        assert!(left.is_empty(), "{client}: no backup and nothing unfinished: {left:?}");
    }
}

/// A file as people and clients write them; `@` is where our entry goes, and what goes there before it.
const EXISTING: &[(&str, &str, &str)] = &[
    (
        "cursor",
        ".cursor/mcp.json",
        concat!(
            "{\n    \"mcpServers\": {\n        \"other\": {\"command\": \"x\"}@\n",
            "    },\n    \"zeta\": [1.0, 1e3, {\"a\": \"}\\\"]\"}],\n",
            "    \"alpha\": null\n}\n"
        ),
    ),
    ("cursor", ".cursor/mcp.json", "{\"z\": 1, \"mcpServers\": {\"other\": {\"url\": \"u\"}@}, \"a\": {}}"),
    ("cursor", ".cursor/mcp.json", "{\r\n\t\"mcpServers\": {\r\n\t\t\"other\": {}@\r\n\t}\r\n}\r\n"),
    (
        "gemini",
        ".gemini/settings.json",
        concat!("{\n  \"theme\": \"dark\",\n", "  \"nested\": {\"mcpServers\": {\"stockade\": 1}}@\n}"),
    ),
    ("gemini", ".gemini/settings.json", "{ \"mcpServers\": {@}, \"ui\": { \"text\": \"a,b:{\" } }\n"),
    ("vscode", ".config/Code/User/mcp.json", "{@}\n"),
    (
        "codex",
        ".codex/config.toml",
        concat!(
            "# mine\nmodel = \"o\" # why\n\n[mcp_servers.other]\ncommand = 'x'\n",
            "args = [\n  \"[mcp_servers.stockade]\",\n]\n@"
        ),
    ),
    (
        "codex",
        ".codex/config.toml",
        concat!("text = '''\n[mcp_servers.stockade]\n'''\n[mcp_servers]\n", "other = { command = \"x\" }@"),
    ),
    ("codex", ".codex/config.toml", "model = \"o\"\r\n@"),
];

#[test]
fn whatever_else_a_file_holds_stays_byte_for_byte() {
    for (client, name, marked) in EXISTING {
        let user = User::new();
        let old = marked.replace('@', "");
        let file = user.home.file(name, &old);
        let outcome = write(&user, client, "user");
        assert_eq!(outcome.code, 0, "{marked}: {outcome:?}");
        let new = read(&file);
        let (head, tail) = marked.split_once('@').expect("a mark");
        assert!(new.starts_with(head) && new.ends_with(tail), "{marked}: {new}");
        let servers = FILES.iter().find(|row| row.0 == *client).expect("a client").3;
        assert_eq!(parse(&file, &new)[servers]["stockade"]["command"], json!(program()), "{new}");
        let bare = new.matches('\n').count() - new.matches("\r\n").count();
        assert!(if old.contains("\r\n") { bare == 0 } else { !new.contains('\r') }, "line ends as they were: {new:?}");
        let backup = file.with_file_name(format!("{}.stockade-backup-1", file.file_name().expect("a name").display()));
        assert_eq!(read(&backup), old, "the backup");
        assert!(outcome.stdout.contains(&backup.display().to_string()), "{outcome:?}");
    }
}

#[test]
fn indentation_follows_the_file() {
    let user = User::new();
    let file = user.home.file(".cursor/mcp.json", "{\n\t\"mcpServers\": {\n\t\t\"other\": {}\n\t}\n}\n");
    write(&user, "cursor", "user");
    let new = read(&file);
    assert!(new.contains("\n\t\t\"other\": {},\n\t\t\"stockade\": {\n\t\t\t\"command\": \""), "{new}");
    assert!(new.ends_with("]\n\t\t}\n\t}\n}\n"), "{new}");
}

/// The same, with another entry of our name where `@` is: what it is, and what follows it.
const REPLACED: &[(&str, &str, &str, &str)] = &[
    (
        "cursor",
        ".cursor/mcp.json",
        concat!("{\n  \"mcpServers\": {\n    \"a\": 1,\n    \"stockade\": @,\n", "    \"z\": 2\n  }\n}\n"),
        "{\"url\": \"http://x\", \"headers\": {}}",
    ),
    ("cursor", ".cursor/mcp.json", "{\"mcpServers\": {\"\\u0073tockade\": @}}", "null"),
    (
        "codex",
        ".codex/config.toml",
        "a = 1\n\n@\n# of the other\n[mcp_servers.other]\ncommand = \"x\"\n",
        concat!(
            "[mcp_servers.stockade] # old\ncommand = \"y\"\n",
            "[mcp_servers.stockade.env]\nA = \"\"\"\n[b]\n\"\"\"\n"
        ),
    ),
    ("codex", ".codex/config.toml", "[z]\nb = 2\n@\n[[lists]]\nc = 3\n", "[mcp_servers.\"stockade\"]\nurl = \"u\"\n"),
];

#[test]
fn another_entry_of_our_name_is_replaced_and_said_so() {
    for (client, name, marked, entry) in REPLACED {
        let user = User::new();
        let file = user.home.file(name, &marked.replace('@', entry));
        let printed = user.setup(&[client]);
        assert_eq!((printed.code, read(&file)), (0, marked.replace('@', entry)), "only with `--write`");
        let outcome = write(&user, client, "user");
        let first = outcome.stdout.lines().next().unwrap_or_default();
        assert_eq!(first, format!("replaced another `stockade` in {}", file.display()), "{outcome:?}");
        let new = read(&file);
        let (head, tail) = marked.split_once('@').expect("a mark");
        assert!(new.starts_with(head) && new.ends_with(tail), "{marked}: {new}");
        let ours = &new[head.len()..new.len() - tail.len()];
        assert!(!ours.contains("url") && !ours.contains("[b]") && ours.contains("\"serve\""), "{ours}");
        parse(&file, &new);
    }
}

#[test]
fn what_people_add_to_our_entry_is_theirs() {
    let user = User::new();
    write(&user, "gemini", "user");
    let file = user.file("user", ".gemini/settings.json");
    let text = read(&file).replace("\"timeout\"", "\"trust\": true, \"timeout\"");
    fs::write(&file, &text).expect("a file");
    let outcome = write(&user, "gemini", "user");
    assert!(outcome.stdout.starts_with("already there"), "{outcome:?}");
    assert_eq!(read(&file), text);
}

#[test]
fn a_link_stays_a_link_and_mode_and_owner_are_kept() {
    let user = User::new();
    let real = user.home.file("dotfiles/cursor.json", "{}\n");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).expect("a mode");
    if crate::support::is_root() {
        std::os::unix::fs::chown(&real, Some(1234), Some(2345)).expect("an owner");
    }
    let before = fs::metadata(&real).expect("a file");
    let link = user.home.directory(".cursor").join("mcp.json");
    std::os::unix::fs::symlink("../dotfiles/cursor.json", &link).expect("a link");
    assert_eq!(write(&user, "cursor", "user").code, 0);
    assert!(fs::symlink_metadata(&link).expect("a link").is_symlink());
    let after = fs::metadata(&real).expect("a file");
    let dress = |found: &fs::Metadata| (found.mode(), found.uid(), found.gid());
    assert_eq!(dress(&after), dress(&before));
    assert_ne!(after.ino(), before.ino(), "a new file took the name of the old one");
    assert!(read(&real).contains("\"serve\""));
    assert_eq!(beside(&link), ["mcp.json", "mcp.json.stockade-backup-1"]);
    assert_eq!(beside(&real), ["cursor.json"]);
}

#[test]
fn each_change_keeps_a_backup_of_its_own() {
    let user = User::new();
    let file = user.home.file(".cursor/mcp.json", "{}");
    for name in ["one", "two", "three"] {
        assert_eq!(user.setup(&["cursor", "--name", name, "--write"]).code, 0);
    }
    let expect = ["mcp.json", "mcp.json.stockade-backup-1", "mcp.json.stockade-backup-2", "mcp.json.stockade-backup-3"];
    assert_eq!(beside(&file), expect);
    let whole = parse(&file, &read(&file));
    assert!(["one", "two", "three"].iter().all(|name| whole["mcpServers"][name].is_object()), "{whole}");
}
