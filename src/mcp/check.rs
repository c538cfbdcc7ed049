//! Arguments held to the schema that was published: one validator for all tools and both surfaces.

use super::nearest::nearest;
use super::schema::Object;
use crate::broker::refused::Refused;
use regex::Regex;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

/// What a tool takes, read from its flat schema once.
#[derive(Debug)]
pub struct Rules {
    parameters: BTreeMap<String, Rule>,
    required: Vec<String>,
}

/// The values one parameter takes.
#[derive(Debug)]
enum Rule {
    Anything,
    Boolean,
    Integer { least: i64, most: i64 },
    Text { least: usize, most: usize, pattern: Option<Regex> },
    Choice(Vec<String>),
    List { most: usize, each: Box<Rule> },
    Table { most: usize, each: Box<Rule> },
}

impl Rules {
    pub fn read(schema: &Object) -> Self {
        let properties = schema.get("properties").and_then(Value::as_object);
        let parameters = properties.into_iter().flatten().map(|(name, schema)| (name.clone(), Rule::read(schema)));
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        Rules {
            parameters: parameters.collect(),
            required: required.filter_map(Value::as_str).map(str::to_owned).collect(),
        }
    }

    /// The arguments as they are meant: nulls left out, 5.0 as 5.
    pub fn check(&self, arguments: Object) -> Result<Object, Refused> {
        let mut checked = Object::new();
        for (name, value) in arguments {
            let Some(rule) = self.parameters.get(&name) else {
                return Err(self.unknown(&name));
            };
            // Clients send null for what they leave out.
            if value.is_null() && !matches!(rule, Rule::Anything) {
                continue;
            }
            match rule.check(&value) {
                Some(value) => drop(checked.insert(name, value)),
                None => return Err(wrong(&name, &value, rule)),
            }
        }
        match self.required.iter().find(|name| !checked.contains_key(*name)) {
            None => Ok(checked),
            Some(name) => {
                let accepted = self.parameters.get(name).map(Rule::accepts).unwrap_or_default();
                let message = format!("`{name}` is missing; it must be {accepted}");
                Err(Refused::invalid(message).with("parameter", name.as_str()))
            }
        }
    }

    fn unknown(&self, name: &str) -> Refused {
        let names = self.parameters.keys().map(String::as_str);
        let shown: String = name.chars().take(64).collect();
        let mut message = format!("there is no parameter `{shown}`; ");
        let near = nearest(name, names.clone());
        match near {
            Some(near) => write!(message, "the nearest is `{near}`"),
            None => match names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ") {
                names if names.is_empty() => write!(message, "none is taken"),
                names => write!(message, "accepted are {names}"),
            },
        }
        .expect("a String takes all that is written to it");
        let refused = Refused::invalid(message).with("parameter", shown);
        match near {
            Some(near) => refused.with("nearest", near),
            None => refused,
        }
    }
}

impl Rule {
    fn read(schema: &Value) -> Self {
        let number = |word: &str| schema.get(word).and_then(Value::as_i64);
        let size = |word: &str| number(word).and_then(|size| usize::try_from(size).ok());
        let each = |word: &str| Box::new(schema.get(word).map_or(Rule::Anything, Rule::read));
        if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
            return Rule::Choice(choices.iter().filter_map(Value::as_str).map(str::to_owned).collect());
        }
        match schema.get("type").and_then(Value::as_str) {
            Some("boolean") => Rule::Boolean,
            Some("integer") => Rule::Integer {
                least: number("minimum").unwrap_or(i64::MIN),
                most: number("maximum").unwrap_or(i64::MAX),
            },
            Some("string") => Rule::Text {
                least: size("minLength").unwrap_or(0),
                most: size("maxLength").unwrap_or(usize::MAX),
                pattern: schema
                    .get("pattern")
                    .and_then(Value::as_str)
                    .map(|pattern| Regex::new(pattern).expect("patterns of schemas are tested")),
            },
            Some("array") => Rule::List { most: size("maxItems").unwrap_or(usize::MAX), each: each("items") },
            Some("object") => {
                Rule::Table { most: size("maxProperties").unwrap_or(usize::MAX), each: each("additionalProperties") }
            }
            _ => Rule::Anything,
        }
    }

    /// The value as it is meant; `None` when it breaks the rule.
    fn check(&self, value: &Value) -> Option<Value> {
        match (self, value) {
            (Rule::Anything, value) => Some(value.clone()),
            (Rule::Boolean, Value::Bool(_)) => Some(value.clone()),
            (Rule::Integer { least, most }, Value::Number(number)) => {
                let number = number.as_i64().or_else(|| number.as_f64().and_then(integral))?;
                (*least..=*most).contains(&number).then(|| number.into())
            }
            (Rule::Text { least, most, pattern }, Value::String(text)) => {
                let fits = (*least..=*most).contains(&text.chars().count());
                let matches = pattern.as_ref().is_none_or(|pattern| pattern.is_match(text));
                (fits && matches).then(|| value.clone())
            }
            (Rule::Choice(choices), Value::String(text)) => choices.contains(text).then(|| value.clone()),
            (Rule::List { most, each }, Value::Array(list)) if list.len() <= *most => {
                list.iter().map(|entry| each.check(entry)).collect::<Option<Vec<_>>>().map(Value::Array)
            }
            (Rule::Table { most, each }, Value::Object(table)) if table.len() <= *most => {
                let entries = table.iter().map(|(name, value)| Some((name.clone(), each.check(value)?)));
                entries.collect::<Option<Object>>().map(Value::Object)
            }
            _ => None,
        }
    }

    fn accepts(&self) -> String {
        match self {
            Rule::Anything => "any JSON value".into(),
            Rule::Boolean => "true or false".into(),
            Rule::Integer { least: i64::MIN, most: i64::MAX } => "an integer".into(),
            Rule::Integer { least, most: i64::MAX } => format!("an integer from {least} on"),
            Rule::Integer { least, most } => format!("an integer from {least} to {most}"),
            Rule::Text { pattern: Some(pattern), .. } => format!("a string that matches {pattern}"),
            Rule::Text { least: 0, most: usize::MAX, .. } => "a string".into(),
            Rule::Text { least, most: usize::MAX, .. } => format!("a string of at least {least} characters"),
            Rule::Text { least, most, .. } => format!("a string of {least} to {most} characters"),
            Rule::Choice(choices) => format!("one of {}", choices.join(", ")),
            Rule::List { most, each } => format!("a list{}, each {}", bound(*most), each.accepts()),
            Rule::Table { most, each } => format!("an object{}, each value {}", bound(*most), each.accepts()),
        }
    }
}

fn bound(most: usize) -> String {
    if most == usize::MAX { String::new() } else { format!(" of at most {most}") }
}

/// 5.0 is 5; what a float cannot hold exactly is nothing.
fn integral(number: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
    (number.fract() == 0.0 && number.abs() < EXACT).then_some(number as i64)
}

fn wrong(name: &str, value: &Value, rule: &Rule) -> Refused {
    let accepted = rule.accepts();
    let shown = shown(value);
    Refused::invalid(format!("`{name}` is {shown}; it must be {accepted}"))
        .with("parameter", name)
        .with("accepted", accepted)
}

/// The value in few words: what is wrong with a long one is its length or its kind.
fn shown(value: &Value) -> String {
    const SHORT: usize = 80;
    let text = value.to_string();
    match value {
        _ if text.len() <= SHORT => text,
        Value::String(text) => format!("a string of {} characters", text.chars().count()),
        Value::Array(list) => format!("a list of {}", list.len()),
        Value::Object(table) => format!("an object of {}", table.len()),
        _ => "a long number".into(),
    }
}
