//! `config_get` and `config_set`: the policy in force, and the few keys that may be tightened while it runs.
//!
//! Both are pure. What may be set is what the broker itself enforces; everything the kernel enforces was built into
//! the cell, and cannot be changed under it. A value is never looser than the file's: the operator's word is the bound.

use super::refused::Refused;
use crate::policy::limits::{LEAST_INLINE, LEAST_OUTPUT, SHORTEST};
use crate::policy::units::{LONGEST, read_bytes, read_duration, show_bytes, show_duration};
use crate::policy::{self, Bytes, Error, Policy};
use serde_json::Value;
use std::time::Duration;

/// The policy in force as its file would write it: all of it, one section, or one value. `null`: a key left out.
pub fn get(policy: &Policy, key: Option<&str>) -> Result<Value, Refused> {
    let tree = policy.as_json();
    let Some(key) = key else { return Ok(tree) };
    if let Some(value) = find(&tree, key) {
        return Ok(value.clone());
    }
    let keys = policy::keys();
    if keys.iter().any(|known| known == key) {
        return Ok(Value::Null);
    }
    Err(unknown(key, &keys))
}

/// Sets one key of the policy in force, never past what `file` says; answers the value then in force.
pub fn set(in_force: &mut Policy, file: &Policy, key: &str, value: &Value) -> Result<Value, Refused> {
    let Some((_, knob)) = KNOBS.iter().find(|(name, _)| *name == key) else {
        return Err(not_settable(key));
    };
    let mut file = file.clone();
    match knob {
        Knob::Time(field, least) => {
            let bound = *field(&mut file);
            let text = amount(key, value, "a duration such as `\"5m\"`")?;
            let time = read_duration(key, &text, *least..=LONGEST).map_err(|error| wrong(key, &error))?;
            if time > bound {
                return Err(looser(key, &show_duration(*least), &show_duration(bound)));
            }
            longest_holds(in_force, key, time)?;
            *field(in_force) = time;
        }
        Knob::Size(field, least) => {
            let bound = *field(&mut file);
            let text = amount(key, value, "a size such as `\"4K\"`")?;
            let size = read_bytes(key, &text, *least..=u64::MAX).map_err(|error| wrong(key, &error))?;
            if size > bound {
                return Err(looser(key, &show_bytes(Bytes(*least)), &show_bytes(bound)));
            }
            *field(in_force) = size;
        }
        Knob::Number(field) => {
            let bound = *field(&mut file);
            let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
            let number = number.filter(|number| (1..=bound).contains(number));
            *field(in_force) = number.ok_or_else(|| looser(key, "1", &bound.to_string()))?;
        }
        Knob::Switch(field) => match (value.as_bool(), *field(&mut file)) {
            (Some(on), true) => *field(in_force) = on,
            (Some(false), false) => *field(in_force) = false,
            (None, true) => return Err(refuse_switch(key, "`true` or `false`")),
            (_, false) => return Err(refuse_switch(key, "`false`, as the policy file says")),
        },
    }
    // Calls that ask for nothing else get `wall_time`, which may not be more than they could ask for.
    in_force.limits.wall_time = in_force.limits.wall_time.min(in_force.limits.max_wall_time);
    get(in_force, Some(key))
}

/// Where a settable value lives, and the least it may be.
enum Knob {
    Time(fn(&mut Policy) -> &mut Duration, Duration),
    Size(fn(&mut Policy) -> &mut Bytes, u64),
    Number(fn(&mut Policy) -> &mut u32),
    Switch(fn(&mut Policy) -> &mut bool),
}

const KNOBS: [(&str, Knob); 12] = [
    ("limits.wall_time", Knob::Time(|policy| &mut policy.limits.wall_time, SHORTEST)),
    ("limits.max_wall_time", Knob::Time(|policy| &mut policy.limits.max_wall_time, SHORTEST)),
    ("limits.idle_time", Knob::Time(|policy| &mut policy.limits.idle_time, SHORTEST)),
    ("limits.output_bytes", Knob::Size(|policy| &mut policy.limits.output_bytes, LEAST_OUTPUT)),
    ("limits.inline_bytes", Knob::Size(|policy| &mut policy.limits.inline_bytes, LEAST_INLINE)),
    ("processes.per_session", Knob::Number(|policy| &mut policy.processes.per_session)),
    ("processes.total", Knob::Number(|policy| &mut policy.processes.total)),
    ("processes.keep_finished", Knob::Time(|policy| &mut policy.processes.keep_finished, Duration::ZERO)),
    ("tools.files", Knob::Switch(|policy| &mut policy.tools.files)),
    ("tools.processes", Knob::Switch(|policy| &mut policy.tools.processes)),
    ("tools.repl", Knob::Switch(|policy| &mut policy.tools.repl)),
    ("tools.system", Knob::Switch(|policy| &mut policy.tools.system)),
];

/// A name may itself have dots (`environment.set."A.B"`), so the whole rest is tried before its first part.
fn find<'a>(tree: &'a Value, key: &str) -> Option<&'a Value> {
    let fields = tree.as_object()?;
    fields.get(key).or_else(|| {
        let (section, rest) = key.split_once('.')?;
        find(fields.get(section)?, rest)
    })
}

fn unknown(key: &str, keys: &[String]) -> Refused {
    let names = || keys.iter().map(String::as_str);
    let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
    let ends: Vec<String> = names().map(last).collect();
    let near = policy::nearest(key, names()).or_else(|| {
        let end = policy::nearest(&last(key), ends.iter().map(String::as_str))?;
        names().zip(&ends).find(|(_, known)| *known == end).map(|(name, _)| name)
    });
    let sections = policy::one_of(names().filter(|name| !name.contains('.')));
    let refused = match near {
        Some(near) => {
            Refused::invalid(format!("no policy has a key `{key}`; did you mean `{near}`?")).with("nearest", near)
        }
        None => Refused::invalid(format!("no policy has a key `{key}`; accepted: {sections}, or a key in one of them")),
    };
    refused.with("key", key)
}

fn not_settable(key: &str) -> Refused {
    let keys = policy::keys();
    if !keys.iter().any(|known| known == key) {
        let refused = unknown(key, &keys);
        let message = format!("{}; {}", refused.message, settable());
        return Refused { message, ..refused };
    }
    let why = match key.split('.').next() {
        Some(section) if section == key => "values are set one by one, each by one of its keys",
        Some("retention") => "what is kept is the operator's to decide",
        Some("tools" | "processes") => "it holds for as long as this broker runs",
        _ => "it is built into the cell, and changes when stockade is started again with another policy",
    };
    Refused::invalid(format!("`{key}` cannot be set while running: {why}; {}", settable())).with("key", key)
}

fn settable() -> String {
    let names: Vec<String> = KNOBS.iter().map(|(name, _)| format!("`{name}`")).collect();
    format!("can be set: {}", names.join(", "))
}

fn amount(key: &str, value: &Value, wanted: &str) -> Result<String, Refused> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        _ => {
            Err(Refused::invalid(format!("`{key}` is not given a number with a unit; write {wanted}")).with("key", key))
        }
    }
}

fn wrong(key: &str, error: &Error) -> Refused {
    let hint = error.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    Refused::invalid(format!("`{key}`: {}{hint}", error.message)).with("key", key)
}

fn looser(key: &str, least: &str, most: &str) -> Refused {
    let message = format!("`{key}` may only be tighter than the policy file says; accepted: {least} to {most}");
    Refused::invalid(message).with("key", key).with("least", least).with("most", most)
}

fn longest_holds(in_force: &Policy, key: &str, time: Duration) -> Result<(), Refused> {
    let longest = in_force.limits.max_wall_time;
    if key != "limits.wall_time" || time <= longest {
        return Ok(());
    }
    let most = show_duration(longest);
    let message = format!("`{key}` is longer than `limits.max_wall_time`, which is {most} now; accepted: at most that");
    Err(Refused::invalid(message).with("key", key).with("most", most))
}

fn refuse_switch(key: &str, accepted: &str) -> Refused {
    let rule = "may only be turned off, or back to what the policy file says";
    Refused::invalid(format!("`{key}` {rule}; accepted: {accepted}")).with("key", key)
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
