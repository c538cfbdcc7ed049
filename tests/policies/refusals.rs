//! What is refused, and in which words: data, in `refusals/*.txt`.
//!
//! The numbers are those of the table of attacks.

use std::fs;
use std::path::Path;

use crate::scratch::Scratch;

/// Holds every case of a data file to the words it expects.
fn refusals(file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/policies/refusals").join(file);
    let text = fs::read_to_string(path).expect("the data file");
    let cases: Vec<&str> = text.split("\n=== ").skip(1).collect();
    assert!(!cases.is_empty(), "{file} has no case");
    for case in cases {
        let (name, rest) = case.split_once('\n').expect("a name");
        let (policy, expected) = rest.split_once("---\n").expect("a policy and its error");
        match Scratch::new().load(policy) {
            Ok(_) => panic!("{file}: `{name}` is accepted"),
            Err(found) => assert_eq!(found, expected.trim_end(), "{file}: `{name}`"),
        }
    }
}

#[test]
fn an_unknown_word_is_refused_where_it_stands() {
    refusals("unknown-keys.txt");
}

#[test]
fn nothing_may_be_said_twice() {
    refusals("said-twice.txt");
}

#[test]
fn a_wrong_value_is_never_guessed_at() {
    refusals("wrong-values.txt");
}

#[test]
fn a_promise_that_cannot_be_judged_is_refused() {
    refusals("promises.txt");
}

#[test]
fn some_directories_cannot_be_granted() {
    refusals("forbidden-roots.txt");
}

#[test]
fn a_root_is_an_existing_directory_by_its_absolute_path() {
    refusals("roots-as-text.txt");
}

#[test]
fn a_hidden_path_is_named_without_ambiguity() {
    refusals("hidden.txt");
}

#[test]
fn an_agent_has_a_plain_name() {
    refusals("agent-names.txt");
}

#[test]
fn a_file_that_is_not_toml_is_refused() {
    refusals("shape.txt");
}

#[test]
fn a_parent_must_be_another_policy() {
    refusals("extends.txt");
}
