//! Hidden files while a cell lives long: replaced on the host, as editors do it, they stay hidden from what starts then.

use crate::site::Site;
use serde_json::json;
use std::fs;

#[test]
fn a_hidden_file_that_the_host_replaces_stays_hidden() {
    let open = Site::with("");
    let site = Site::with("[filesystem]\nhidden = [\"vault.txt\", \"vault/\"]");
    for site in [&open, &site] {
        fs::create_dir(site.workspace.path().join("vault")).expect("a directory");
        fs::write(site.workspace.path().join("vault/key"), "first").expect("a secret");
        fs::write(site.workspace.path().join("vault.txt"), "first").expect("a secret");
    }
    let look = json!({ "command": "cat vault.txt vault/key; ls vault; true" });
    let (mut control, mut client) = (open.open(), site.open());
    assert!(control.ok("run", look.clone())["stdout"].as_str().expect("text").starts_with("firstfirst"));
    assert_eq!(client.ok("run", look.clone())["stdout"], "");
    // A process now waits ready with the old masks; the host replaces what they lie on, again and again.
    for round in 0..5 {
        for site in [&open, &site] {
            let (new, old) = (site.workspace.path().join("new"), site.workspace.path().join("old"));
            fs::write(&new, format!("round {round}\n")).expect("a new file");
            fs::rename(&new, site.workspace.path().join("vault.txt")).expect("replaced");
            fs::create_dir(&new).expect("a new directory");
            fs::write(new.join("key"), format!("round {round}\n")).expect("a new file");
            fs::rename(site.workspace.path().join("vault"), &old).expect("moved away");
            fs::rename(&new, site.workspace.path().join("vault")).expect("replaced");
            fs::remove_dir_all(&old).expect("removed");
        }
        let shown = control.ok("run", look.clone());
        assert_eq!(shown["stdout"], format!("round {round}\nround {round}\nkey\n"), "where nothing is hidden: {shown}");
        for _ in 0..3 {
            let hidden = client.ok("run", look.clone());
            assert!(!hidden.to_string().contains("round"), "{hidden}");
        }
    }
}
