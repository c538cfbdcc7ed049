//! What clients are shown: small, portable, honest, and the same as what is enforced.

use super::catalogue::{Catalogue, NoSuchTool};
use super::operation::table;
use super::schema::Object;
use crate::broker::refused::{Code, Refused};
use crate::policy::{Network, Surface, Tools};
use rmcp::model::Tool;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

fn everything(surface: Surface) -> Tools {
    Tools { surface, files: true, processes: true, repl: true, system: true }
}

fn catalogue(surface: Surface) -> Catalogue {
    Catalogue::new(&everything(surface), &Network::None)
}

fn both() -> impl Iterator<Item = Tool> {
    [Surface::Verbs, Surface::Families].into_iter().flat_map(|surface| catalogue(surface).tools)
}

fn names(catalogue: &Catalogue) -> Vec<&str> {
    catalogue.tools.iter().map(|tool| &*tool.name).collect()
}

/// Names, descriptions and input schemas, as a model pays for them.
fn bytes(catalogue: &Catalogue) -> usize {
    let given = catalogue.tools.iter().map(|tool| {
        let description = tool.description.as_deref().unwrap_or_default();
        json!({ "name": tool.name, "description": description, "inputSchema": *tool.input_schema }).to_string().len()
    });
    given.sum()
}

#[test]
fn the_list_of_tools_stays_within_its_budget() {
    for (surface, most) in [(Surface::Verbs, 12_200), (Surface::Families, 6700)] {
        let bytes = bytes(&catalogue(surface));
        println!("{surface:?}: {bytes} bytes");
        assert!(bytes <= most, "{surface:?}: {bytes} bytes, at most {most} are affordable");
    }
}

/// Compares with a file; `UPDATE_SNAPSHOTS=1` writes it.
fn compare(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(name);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(known, text, "tests/snapshots/{name} differs: UPDATE_SNAPSHOTS=1 writes it anew");
}

#[test]
fn the_tools_are_those_of_the_snapshot() {
    for (surface, name) in [(Surface::Verbs, "tools-verbs.txt"), (Surface::Families, "tools-families.txt")] {
        let mut text = String::new();
        for tool in catalogue(surface).tools {
            let hints = tool.annotations.unwrap();
            let hint = |hint: Option<bool>, word| if hint.unwrap() { word } else { "" };
            writeln!(text, "{}: {}", tool.name, tool.description.unwrap()).unwrap();
            let words = [
                hint(hints.read_only_hint, " read-only"),
                hint(hints.destructive_hint, " destructive"),
                hint(hints.idempotent_hint, " idempotent"),
                hint(hints.open_world_hint, " open-world"),
            ];
            writeln!(text, "  hints{}", words.concat()).unwrap();
            writeln!(text, "  in  {}", Value::Object((*tool.input_schema).clone())).unwrap();
            writeln!(text, "  out {}\n", Value::Object((*tool.output_schema.unwrap()).clone())).unwrap();
        }
        compare(name, &text);
    }
}

/// Every word of a schema that some client does not understand.
fn unportable(schema: &Value, place: &str, found: &mut Vec<String>) {
    const WORDS: [&str; 10] = [
        "type",
        "properties",
        "required",
        "items",
        "additionalProperties",
        "enum",
        "minimum",
        "maximum",
        "default",
        "description",
    ];
    let Some(schema) = schema.as_object() else {
        found.push(format!("{place} is {schema}"));
        return;
    };
    for (word, value) in schema {
        match (word.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                properties.iter().for_each(|(name, inner)| unportable(inner, &format!("{place}.{name}"), found));
            }
            ("items" | "additionalProperties", inner) => unportable(inner, &format!("{place}[]"), found),
            ("type", kind) if !kind.is_string() => found.push(format!("{place}: type {kind}")),
            (word, _) if !WORDS.contains(&word) => found.push(format!("{place}: {word}")),
            _ => {}
        }
    }
}

#[test]
fn schemas_are_flat_and_portable() {
    for tool in both() {
        for schema in [&tool.input_schema, tool.output_schema.as_ref().unwrap()] {
            let mut found = Vec::new();
            unportable(&Value::Object((**schema).clone()), &tool.name, &mut found);
            assert_eq!(found, Vec::<String>::new());
            assert_eq!(schema["type"], "object", "{}", tool.name);
        }
    }
}

#[test]
fn names_and_descriptions_are_short() {
    for tool in both() {
        let fits = |c: char| c.is_ascii_lowercase() || c == '_';
        assert!(tool.name.len() <= 40 && tool.name.chars().all(fits), "{}", tool.name);
        let description = tool.description.unwrap();
        assert!(description.ends_with('.') && description.matches(". ").count() <= 1, "{description}");
    }
}

#[test]
fn what_a_feature_turns_off_is_not_listed_and_says_so_when_called() {
    let run = Tools { repl: false, system: false, files: false, ..everything(Surface::Verbs) };
    let only_run = Catalogue::new(&run, &Network::None);
    assert_eq!(names(&only_run), ["run"]);
    let given = &only_run.tools[0].input_schema["properties"];
    assert!(given.get("yield_ms").is_none() && given.get("session").is_none() && given.get("timeout_ms").is_some());
    assert_eq!(refused(&only_run, "proc_list", &json!({})).code, Code::FeatureDisabled);
    assert_eq!(refused(&only_run, "run", &json!({ "yield_ms": 1 })).code, Code::InvalidArgument);

    let nothing_runs = Tools { processes: false, files: false, ..everything(Surface::Verbs) };
    let system = ["config_get", "config_set", "health", "usage_stats", "recent_calls", "feedback"];
    assert_eq!(names(&Catalogue::new(&nothing_runs, &Network::None)), system);
    let families = Catalogue::new(&Tools { processes: false, ..everything(Surface::Families) }, &Network::None);
    assert_eq!(names(&families), ["fs", "search", "config", "telemetry"]);
    assert_eq!(refused(&families, "process", &json!({ "action": "list" })).code, Code::FeatureDisabled);
}

fn arguments(value: &Value) -> Object {
    value.as_object().unwrap().clone()
}

fn refused(catalogue: &Catalogue, name: &str, given: &Value) -> Refused {
    catalogue.find(name, arguments(given)).unwrap().err().unwrap()
}

#[test]
fn both_surfaces_reach_the_same_operations_with_the_same_checks() {
    let (verbs, families) = (catalogue(Surface::Verbs), catalogue(Surface::Families));
    for row in table() {
        let facts = row.facts;
        for given in [json!({}), json!({ "proc_id": "a", "timeout_ms": 60_000 }), json!({ "sessoin": "x" })] {
            let verb = verbs.find(facts.name, arguments(&given)).unwrap();
            let mut with_action = arguments(&given);
            with_action.insert("action".into(), facts.action.into());
            let member = families.find(facts.family.name(), with_action).unwrap();
            assert_eq!(verb.is_ok(), member.is_ok(), "{}", facts.name);
            match (verb, member) {
                (Ok((verb, _)), Ok((member, _))) => assert_eq!(verb.row.facts.name, member.row.facts.name),
                (Err(verb), Err(member)) => assert_eq!(verb.message, member.message),
                _ => unreachable!(),
            }
        }
    }
}

#[test]
fn a_wrong_action_or_tool_names_the_right_one() {
    let families = catalogue(Surface::Families);
    for (given, says) in [
        (json!({}), "`action` is missing; it must be one of start, send, read"),
        (json!({ "action": "strat" }), "such as `start`"),
        (json!({ "action": 5 }), "must be a string"),
    ] {
        let message = refused(&families, "process", &given).message;
        assert!(message.contains(says), "{message}");
    }
    assert!(families.find("run", arguments(&json!({ "command": "true" }))).unwrap().is_ok());
    let verbs = catalogue(Surface::Verbs);
    for (catalogue, name, says) in [
        (&verbs, "proc_sart", "the nearest is `proc_start`"),
        (&verbs, "process", "each action is a tool, such as `proc_start`"),
        (&families, "proc_read", "it is `process` with the action `read`"),
        (&families, "elephant", "there are run, process, session, fs, search, config"),
    ] {
        let NoSuchTool(message) = catalogue.find(name, Object::new()).unwrap_err();
        assert!(message.contains(says), "{message}");
    }
}

#[test]
fn only_what_can_reach_the_network_is_open_to_the_world() {
    let open = |network: &Network| {
        let tools = Catalogue::new(&everything(Surface::Verbs), network).tools;
        let open = tools.into_iter().filter(|tool| tool.annotations.as_ref().unwrap().open_world_hint == Some(true));
        open.map(|tool| tool.name.into_owned()).collect::<Vec<_>>()
    };
    assert_eq!(open(&Network::None), Vec::<String>::new());
    let host = Network::Host { connect_ports: None, bind_ports: None };
    assert_eq!(open(&host), ["run", "proc_start", "proc_send"]);
}
