//! Values as the operator wrote them, each with its place in the file.
//!
//! [`At`] is what lets an error that is found late (a root that does not exist) still point at a line.
//! The visitors here accept what a key may hold and nothing near it; what the text means is
//! decided in [`super::units`] and [`super::resolve`].

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A value and the bytes of the file it was read from.
#[derive(Debug, Clone, PartialEq)]
pub struct At<T> {
    pub value: T,
    pub span: Range<usize>,
}

/// A list whose entries each know their own place.
pub type List = At<Vec<At<String>>>;

impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = toml::Spanned::<T>::deserialize(deserializer)?;
        let span = spanned.span();
        Ok(At { value: spanned.into_inner(), span })
    }
}

impl<T: JsonSchema> JsonSchema for At<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<T>()
    }
}

/// A size or a duration before its unit is read: `"512M"`, `"10s"`, or a plain integer.
#[derive(Debug, Clone, PartialEq)]
pub enum Amount {
    Text(String),
    Number(i128),
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Amount::Text(text) => f.write_str(text),
            Amount::Number(number) => write!(f, "{number}"),
        }
    }
}

/// A whole number of things; its bounds belong to the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count(pub i128);

/// `"/bin/bash"`, or `false` for a policy without `command` strings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shell {
    Program(String),
    Off,
}

/// Integers reach a visitor by four doors, depending on their size.
macro_rules! visit_integers {
    ($make:expr) => {
        fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
            Ok($make(i128::from(number)))
        }
        fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
            Ok($make(i128::from(number)))
        }
        fn visit_i128<E: Error>(self, number: i128) -> Result<Self::Value, E> {
            Ok($make(number))
        }
        fn visit_u128<E: Error>(self, number: u128) -> Result<Self::Value, E> {
            Ok($make(i128::try_from(number).unwrap_or(i128::MAX)))
        }
    };
}

struct AmountVisitor;

impl Visitor<'_> for AmountVisitor {
    type Value = Amount;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number with its unit in quotes")
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<Amount, E> {
        Ok(Amount::Text(text.to_owned()))
    }
    visit_integers!(Amount::Number);
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AmountVisitor)
    }
}

struct CountVisitor;

impl Visitor<'_> for CountVisitor {
    type Value = Count;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number")
    }
    visit_integers!(Count);
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CountVisitor)
    }
}

struct ShellVisitor;

impl Visitor<'_> for ShellVisitor {
    type Value = Shell;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the path of a shell in quotes, or false")
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<Shell, E> {
        Ok(Shell::Program(text.to_owned()))
    }
    fn visit_bool<E: Error>(self, on: bool) -> Result<Shell, E> {
        if on {
            return Err(E::custom("`shell = true` names no shell"));
        }
        Ok(Shell::Off)
    }
}

impl<'de> Deserialize<'de> for Shell {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ShellVisitor)
    }
}

/// A schema that is written out where it is used, so that editors show it in place.
macro_rules! inline_schema {
    ($type:ty, $name:literal, $($schema:tt)+) => {
        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($($schema)+)
            }
        }
    };
}

inline_schema!(Amount, "Amount", { "type": ["string", "integer"], "minimum": 0 });
inline_schema!(Count, "Count", { "type": "integer", "minimum": 0 });
inline_schema!(Shell, "Shell", { "anyOf": [{ "type": "string" }, { "const": false }] });
