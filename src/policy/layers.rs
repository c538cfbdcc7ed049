//! An `extends` chain: the chosen file first, its parents after it, what every policy starts from last.
//!
//! A single value is taken from the first layer that gives it. A list replaces its parents'
//! (`nearest`), except `hidden`, `blocked` and `redact`, which add up (`gathered`), so that a child
//! cannot unhide or unblock by leaving something out. Nothing is merged before it is asked for: a
//! value still knows its own file and line.

use super::error::{Error, Place};
use super::file::File;
use super::source::Source;
use super::written::{At, List};

#[derive(Debug)]
pub(super) struct Layer {
    pub source: Source,
    pub file: File,
}

#[derive(Debug)]
pub(super) struct Layers(pub Vec<Layer>);

/// Where a value was given.
#[derive(Debug, Clone)]
pub(super) enum Origin<'a> {
    Written(&'a Source, std::ops::Range<usize>),
    /// A flag with its value, as typed.
    Flag(String),
}

/// A value and where it was given.
#[derive(Debug, Clone)]
pub(super) struct Given<'a, T> {
    pub value: T,
    pub origin: Origin<'a>,
}

/// More entries than any of these lists needs; every list has its bound in resolve time and in mounts.
pub(super) const MAX_ENTRIES: usize = 4096;

impl Origin<'_> {
    pub fn error(&self, message: impl Into<String>) -> Error {
        match self {
            Origin::Written(source, span) => source.error(span, message),
            Origin::Flag(flag) => Error { place: Place::Flag(flag.clone()), message: message.into(), hint: None },
        }
    }
}

impl<T> Given<'_, T> {
    pub fn flag(name: &str, typed: &str, value: T) -> Self {
        Given { value, origin: Origin::Flag(format!("{name} {typed}")) }
    }

    pub fn error(&self, message: impl Into<String>) -> Error {
        self.origin.error(message)
    }
}

impl Layers {
    /// The value of the first layer that gives one, and which layer that is.
    pub fn ranked<T: Clone>(&self, get: impl Fn(&File) -> &Option<At<T>>) -> Option<(usize, Given<'_, T>)> {
        self.0.iter().enumerate().find_map(|(rank, layer)| {
            let at = get(&layer.file).as_ref()?;
            Some((rank, given(layer, at)))
        })
    }

    pub fn optional<T: Clone>(&self, get: impl Fn(&File) -> &Option<At<T>>) -> Option<Given<'_, T>> {
        self.ranked(get).map(|(_, given)| given)
    }

    /// A value that `base.toml` gives when nobody else does; loading any policy shows whether it does.
    pub fn pick<T: Clone>(&self, get: impl Fn(&File) -> &Option<At<T>>) -> Given<'_, T> {
        self.optional(get).expect("base.toml gives every key that is picked")
    }

    /// The entries of the first layer that gives the list.
    pub fn nearest<T: Clone>(
        &self,
        bound: usize,
        get: impl Fn(&File) -> &Option<At<Vec<At<T>>>>,
    ) -> Result<Vec<Given<'_, T>>, Error> {
        let layer = self.0.iter().find(|layer| get(&layer.file).is_some());
        layer.map_or(Ok(Vec::new()), |layer| entries(layer, &get, bound))
    }

    /// The entries of every layer, the parents' first, each once.
    pub fn gathered(
        &self,
        bound: usize,
        get: impl Fn(&File) -> &Option<List>,
    ) -> Result<Vec<Given<'_, String>>, Error> {
        let mut all: Vec<Given<'_, String>> = Vec::new();
        for layer in self.0.iter().rev() {
            for entry in entries(layer, &get, bound)? {
                if !all.iter().any(|known| known.value == entry.value) {
                    all.push(entry);
                }
            }
        }
        Ok(all)
    }
}

fn given<'a, T: Clone>(layer: &'a Layer, at: &At<T>) -> Given<'a, T> {
    Given { value: at.value.clone(), origin: Origin::Written(&layer.source, at.span.clone()) }
}

fn entries<'a, T: Clone>(
    layer: &'a Layer,
    get: impl Fn(&File) -> &Option<At<Vec<At<T>>>>,
    bound: usize,
) -> Result<Vec<Given<'a, T>>, Error> {
    let Some(list) = get(&layer.file) else {
        return Ok(Vec::new());
    };
    if list.value.len() > bound {
        let message = format!("{} entries, more than the {bound} this list may have", list.value.len());
        return Err(layer.source.error(&list.span, message).hint("name what holds several of them instead"));
    }
    Ok(list.value.iter().map(|entry| given(layer, entry)).collect())
}
