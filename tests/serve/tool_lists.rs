//! The tool lists as people read them, in `verbs.txt` and `families.txt`. `STOCKADE_TEST_BLESS=1` writes them anew.

use crate::mcp::Client;
use crate::site::Site;
use crate::surface::FAMILIES;
use serde_json::Value;
use std::fmt::Write;

/// A tool list as people read it.
fn readable(client: &mut Client) -> String {
    let mut text = String::new();
    for tool in client.learn()["tools"].as_array().expect("tools") {
        let hints = tool["annotations"].as_object().expect("annotations");
        let hints: Vec<&str> = hints.iter().filter(|(_, on)| **on == true).map(|(name, _)| name.as_str()).collect();
        writeln!(
            text,
            "{} [{}]\n  {}",
            tool["name"].as_str().expect("a name"),
            hints.join(" "),
            tool["description"].as_str().expect("a description")
        )
        .expect("text");
        for (side, arrow) in [("inputSchema", "<"), ("outputSchema", ">")] {
            let required: Vec<&str> =
                tool[side]["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            for (name, schema) in tool[side]["properties"].as_object().into_iter().flatten() {
                let mut schema = schema.clone();
                let fields = schema.as_object_mut().expect("a schema");
                fields.remove("description");
                let mark = if required.contains(&name.as_str()) { "" } else { "?" };
                writeln!(text, "  {arrow} {name}{mark} {}", Value::Object(fields.clone())).expect("text");
            }
        }
    }
    text
}

#[test]
fn the_tool_lists_are_those_that_were_agreed_on() {
    for (policy, file) in [("", "verbs.txt"), (FAMILIES, "families.txt")] {
        let found = readable(&mut Site::with(policy).open());
        let path = crate::support::repo().join("tests/serve").join(file);
        if std::env::var_os("STOCKADE_TEST_BLESS").is_some() {
            std::fs::write(&path, &found).expect("a file");
        }
        let agreed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(found == agreed, "{file} differs; STOCKADE_TEST_BLESS=1 writes it anew. Found:\n{found}");
    }
}
