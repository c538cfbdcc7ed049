//! `[[expect]]` as written becomes promises that a judge can be asked about.
//!
//! Whether they hold is decided in [`super::expect`].

use std::ops::Range;

use super::error::Error;
use super::file::Expect;
use super::layers::{Given, Layers, MAX_ENTRIES, Origin};
use super::places::Places;
use super::written::{At, List};
use super::{Attempt, Claim, Expectation, Verdict, words};

/// The promises of every layer, the parents' first.
pub(super) fn expectations(places: &Places<'_>, layers: &Layers) -> Result<Vec<Expectation>, Error> {
    let mut all = Vec::new();
    for layer in layers.0.iter().rev() {
        for at in &layer.file.expect {
            let origin = Origin::Written(&layer.source, at.span.clone());
            let claims = claims(places, &at.value, |span| Origin::Written(&layer.source, span))?;
            if claims.is_empty() {
                return Err(origin
                    .error("an `[[expect]]` that promises nothing")
                    .hint("add `denied = […]` or `allowed = […]`"));
            }
            if claims.len() > MAX_ENTRIES || all.len() > MAX_ENTRIES {
                return Err(origin.error(format!("more than {MAX_ENTRIES} promises")));
            }
            let why = at.value.why.as_ref().map(|why| why.value.clone()).unwrap_or_default();
            all.push(Expectation { why, claims });
        }
    }
    Ok(all)
}

fn claims<'a>(
    places: &Places<'_>,
    written: &Expect,
    origin: impl Fn(Range<usize>) -> Origin<'a>,
) -> Result<Vec<Claim>, Error> {
    let entries = |list: &Option<List>| list.clone().map(|list| list.value).unwrap_or_default();
    let denied = entries(&written.denied).into_iter().map(|entry| (Verdict::Denied, entry));
    let allowed = entries(&written.allowed).into_iter().map(|entry| (Verdict::Allowed, entry));
    let claim = |(verdict, entry): (Verdict, At<String>)| {
        let given = Given { value: entry.value, origin: origin(entry.span) };
        Ok(Claim { verdict, attempt: attempt(places, &given)? })
    };
    denied.chain(allowed).map(claim).collect()
}

fn attempt(places: &Places<'_>, given: &Given<'_, String>) -> Result<Attempt, Error> {
    let shapes = "write `read PATH`, `write PATH`, `execute PROGRAM`, `connect HOST:PORT` or `run ARGV…`";
    let text = given.value.trim();
    let (verb, object) = text.split_once(' ').map_or((text, ""), |(verb, object)| (verb, object.trim()));
    let error = |message: String| given.error(message).hint(shapes);
    if object.is_empty() || object.contains(char::is_control) {
        return Err(error(format!("`{text}` is not an attempt")));
    }
    let path = |text: &str| places.expand(&Given { value: text.to_owned(), origin: given.origin.clone() });
    match verb {
        "read" => Ok(Attempt::Read(path(object)?)),
        "write" => Ok(Attempt::Write(path(object)?)),
        "execute" if object.contains('/') => Ok(Attempt::Execute(path(object)?.display().to_string())),
        "execute" => Ok(Attempt::Execute(object.to_owned())),
        "connect" => connect(object).ok_or_else(|| error(format!("`{object}` is not a host and a port"))),
        "run" => {
            let words = words::split(object).ok_or_else(|| error("a quote that is not closed".to_owned()))?;
            Ok(Attempt::Run(words.iter().map(|word| places.fill(word)).collect()))
        }
        _ => Err(error(format!("`{verb}` is not an attempt"))),
    }
}

fn connect(object: &str) -> Option<Attempt> {
    let (host, port) = object.rsplit_once(':')?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host = bare.unwrap_or(host);
    let fits = !host.is_empty() && (bare.is_some() || !host.contains(':')) && !host.contains(char::is_whitespace);
    let port = port.parse().ok().filter(|port| *port > 0)?;
    fits.then(|| Attempt::Connect(host.to_owned(), port))
}
