//! The tools that are listed, made from the operations for one set of features and one surface.

use super::check::Rules;
use super::nearest::nearest;
use super::operation::{Effect, Facts, Family, Feature, Row, table};
use super::schema::Object;
use crate::broker::refused::{Code, Refused};
use crate::policy::{Network, Surface, Tools};
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A bound from here on is not worth its bytes in a family.
const FAR: i64 = 1_000_000;

#[derive(Debug)]
pub struct Catalogue {
    surface: Surface,
    features: Tools,
    entries: Vec<Entry>,
    pub tools: Vec<Tool>,
}

/// An operation whose parameters fit the features in force.
#[derive(Debug)]
pub struct Entry {
    pub row: Row,
    rules: Rules,
}

/// A call that names no tool.
#[derive(Debug, PartialEq, Eq)]
pub struct NoSuchTool(pub String);

impl Catalogue {
    pub fn new(features: &Tools, network: &Network) -> Self {
        let entries: Vec<Entry> = table().into_iter().map(|row| Entry::new(row, features)).collect();
        let reach = if *network == Network::None { Reach::Cell } else { Reach::World };
        let on = |entry: &&Entry| entry.row.facts.feature.is_on(features);
        let tools = match features.surface {
            Surface::Verbs => entries.iter().filter(on).map(|entry| verb(entry, reach)).collect(),
            Surface::Families => {
                let member = |family| entries.iter().filter(on).filter(move |entry| entry.row.facts.family == family);
                let families = Family::ALL.into_iter().map(|family| (family, member(family).collect::<Vec<_>>()));
                families
                    .filter(|(_, members)| !members.is_empty())
                    .map(|(name, all)| family(name, &all, reach))
                    .collect()
            }
        };
        Catalogue { surface: features.surface, features: features.clone(), entries, tools }
    }

    /// Whether it still says what the policy says.
    pub fn is_of(&self, features: &Tools) -> bool {
        self.features == *features
    }

    /// The operation that a call means, and its arguments checked.
    /// The operation that a call names, whether or not it can be carried out.
    pub fn named(&self, name: &str, arguments: &Object) -> Option<&'static str> {
        let action = arguments.get("action").and_then(Value::as_str);
        let is_meant = |facts: &Facts| match self.surface {
            Surface::Verbs => facts.name == name,
            Surface::Families => facts.family.name() == name && action.is_none_or(|action| facts.action == action),
        };
        self.entries.iter().map(|entry| &entry.row.facts).find(|facts| is_meant(facts)).map(|facts| facts.name)
    }

    pub fn find(&self, name: &str, mut arguments: Object) -> Result<Result<(&Entry, Object), Refused>, NoSuchTool> {
        let entry = match self.surface {
            Surface::Verbs => self.entries.iter().find(|entry| entry.row.facts.name == name).map(Ok),
            Surface::Families => {
                let family = Family::ALL.into_iter().find(|family| family.name() == name);
                family.map(|family| self.action(family, arguments.remove("action")))
            }
        };
        let entry = entry.ok_or_else(|| self.unknown(name))?;
        Ok(entry.and_then(|entry| {
            let feature = entry.row.facts.feature;
            if !feature.is_on(&self.features) {
                // Whoever turned off all that runs anything will look for that word.
                let off = if self.features.processes { feature } else { feature.root() };
                return Err(disabled(name, off));
            }
            Ok((entry, entry.rules.check(arguments)?))
        }))
    }

    fn action(&self, family: Family, action: Option<Value>) -> Result<&Entry, Refused> {
        let members: Vec<&Entry> = self.entries.iter().filter(|entry| entry.row.facts.family == family).collect();
        let actions = || members.iter().map(|entry| entry.row.facts.action);
        let accepted = || actions().collect::<Vec<_>>().join(", ");
        match (action, &members[..]) {
            // A family of one needs no word to choose it.
            (None | Some(Value::Null), [only]) => Ok(only),
            (None | Some(Value::Null), _) => {
                let message = format!("`action` is missing; it must be one of {}", accepted());
                Err(Refused::invalid(message).with("parameter", "action"))
            }
            (Some(Value::String(word)), members) => {
                let found = members.iter().find(|entry| entry.row.facts.action == word);
                found.copied().ok_or_else(|| {
                    let shown: String = word.chars().take(64).collect();
                    let near = nearest(&word, actions()).map(|near| format!(", such as `{near}`")).unwrap_or_default();
                    let message = format!("`action` is `{shown}`; it must be one of {}{near}", accepted());
                    Refused::invalid(message).with("parameter", "action")
                })
            }
            (Some(_), _) => {
                let message = format!("`action` must be a string, one of {}", accepted());
                Err(Refused::invalid(message).with("parameter", "action"))
            }
        }
    }

    fn unknown(&self, name: &str) -> NoSuchTool {
        let shown: String = name.chars().take(64).collect();
        let elsewhere = self.entries.iter().map(|entry| &entry.row.facts).find(|facts| match self.surface {
            Surface::Verbs => facts.family.name() == name,
            Surface::Families => facts.name == name,
        });
        let hint = match (elsewhere, self.surface) {
            (Some(facts), Surface::Families) => {
                format!("it is `{}` with the action `{}`", facts.family.name(), facts.action)
            }
            (Some(facts), Surface::Verbs) => format!("each action is a tool, such as `{}`", facts.name),
            (None, _) => match nearest(name, self.tools.iter().map(|tool| &*tool.name)) {
                Some(near) => format!("the nearest is `{near}`"),
                None => {
                    let names: Vec<_> = self.tools.iter().map(|tool| &*tool.name).collect();
                    format!("there are {}", names.join(", "))
                }
            },
        };
        NoSuchTool(format!("there is no tool `{shown}`; {hint}"))
    }
}

fn disabled(name: &str, feature: Feature) -> Refused {
    let feature = feature.name();
    let message = format!("`{name}` needs the feature `{feature}`, which this policy turns off in [tools]");
    Refused::new(Code::FeatureDisabled, message).with("feature", feature)
}

impl Entry {
    fn new(mut row: Row, features: &Tools) -> Self {
        if !Feature::Repl.is_on(features)
            && let Some(Value::Object(properties)) = row.input.get_mut("properties")
        {
            properties.retain(|name, _| !row.facts.repl_only.contains(&name.as_str()));
        }
        let rules = Rules::read(&row.input);
        Entry { row, rules }
    }
}

/// How far a command can reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Cell,
    World,
}

fn verb(entry: &Entry, reach: Reach) -> Tool {
    let row = &entry.row;
    tool(row.facts.name, row.facts.about, row.input.clone(), row.output.clone(), &[row.facts.effect], reach)
}

fn family(family: Family, members: &[&Entry], reach: Reach) -> Tool {
    let actions: Vec<_> = members.iter().map(|entry| entry.row.facts.action).collect();
    let mut input = union(members.iter().map(|entry| &entry.row.input));
    if let Some(Value::Object(properties)) = input.get_mut("properties") {
        properties.insert("action".into(), json!({ "type": "string", "enum": actions }));
    }
    let required = if actions.len() > 1 { json!(["action"]) } else { json!([]) };
    input.insert("required".into(), required);
    let output = union(members.iter().map(|entry| &entry.row.output));
    let effects: Vec<_> = members.iter().map(|entry| entry.row.facts.effect).collect();
    tool(family.name(), family.about(), input, output, &effects, reach)
}

fn tool(
    name: &'static str,
    about: &'static str,
    mut input: Object,
    mut output: Object,
    effects: &[Effect],
    reach: Reach,
) -> Tool {
    publish(&mut input);
    publish(&mut output);
    let all = |test: fn(Effect) -> bool| effects.iter().all(|effect| test(*effect));
    let annotations = ToolAnnotations::new()
        .read_only(all(|effect| effect == Effect::Reads))
        .destructive(!all(|effect| matches!(effect, Effect::Reads | Effect::Sets | Effect::Adds)))
        .idempotent(all(|effect| !matches!(effect, Effect::Runs | Effect::Disturbs | Effect::Adds | Effect::Changes)))
        .open_world(reach == Reach::World && !all(|effect| effect != Effect::Runs));
    Tool::new(name, about, Arc::new(input)).with_raw_output_schema(Arc::new(output)).with_annotations(annotations)
}

/// What a client is shown. Bounds on lengths, patterns and unknown names are enforced all the same, and their errors
/// say what is accepted; written into every schema they would cost each conversation some hundred tokens.
fn publish(schema: &mut Object) {
    for word in ["additionalProperties", "required"] {
        if schema.get(word).is_some_and(|value| *value == json!(false) || *value == json!([])) {
            schema.remove(word);
        }
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for property in properties.values_mut().filter_map(Value::as_object_mut) {
            for word in ["maxLength", "minLength", "maxItems", "maxProperties", "pattern"] {
                property.remove(word);
            }
            if let Some(Value::Object(items)) = property.get_mut("items") {
                publish(items);
            }
            // Beyond what a JSON number holds exactly there is nothing to be bounded.
            if property.get("maximum").and_then(Value::as_u64).is_some_and(|most| most >= 1 << 53) {
                property.remove("maximum");
            }
        }
    }
}

/// The parameters of a whole family: each name once, with the highest of its bounds and, where all agree, its
/// description. Bounds that nobody runs into by a wrong guess are left to the errors.
fn union<'a>(schemas: impl Iterator<Item = &'a Object>) -> Object {
    let mut properties = Object::new();
    let mut differing = BTreeSet::new();
    for (name, schema) in schemas.filter_map(|schema| schema.get("properties")?.as_object()).flatten() {
        let Some(Value::Object(known)) = properties.get_mut(name) else {
            properties.insert(name.clone(), schema.clone());
            continue;
        };
        if known.get("description") != schema.get("description") {
            differing.insert(name.clone());
        }
        widen(known, schema);
    }
    for (name, property) in properties.iter_mut().filter_map(|(name, property)| Some((name, property.as_object_mut()?)))
    {
        property.remove("minimum");
        if property.get("maximum").and_then(Value::as_i64).is_some_and(|most| most >= FAR) {
            property.remove("maximum");
        }
        if differing.contains(name) {
            property.remove("description");
        }
    }
    let Value::Object(schema) = json!({ "type": "object", "properties": properties }) else { unreachable!() };
    schema
}

fn widen(known: &mut Object, other: &Value) {
    let ours = known.get("maximum").and_then(Value::as_i64);
    match ours.zip(other.get("maximum").and_then(Value::as_i64)) {
        Some((ours, theirs)) => drop(known.insert("maximum".into(), ours.max(theirs).into())),
        None => drop(known.remove("maximum")),
    }
    // Two kinds of one name: only what both say is said.
    known.retain(|word, value| {
        matches!(word.as_str(), "minimum" | "maximum" | "description") || other.get(word) == Some(value)
    });
}
