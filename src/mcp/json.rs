//! JSON as this server reads it: a key stands once in an object, a number fits, a text is Unicode.
//!
//! One rule for all layers: a message that two readers could understand differently is refused.

use rmcp::model::{ErrorCode, RequestId};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// A message that is answered with a protocol error.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// `None`: the id could not be read, and the answer's is null.
    pub id: Option<RequestId>,
    pub code: ErrorCode,
    pub message: String,
}

impl Fault {
    pub fn new(id: Option<RequestId>, code: ErrorCode, message: impl Into<String>) -> Self {
        Fault { id, code, message: message.into() }
    }

    /// The answer, as a line.
    pub fn line(&self) -> Vec<u8> {
        let id = self.id.clone().map_or(Value::Null, RequestId::into_json_value);
        let error = serde_json::json!({ "code": self.code.0, "message": self.message });
        let mut line = serde_json::json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string().into_bytes();
        line.push(b'\n');
        line
    }
}

pub fn parse(line: &[u8]) -> Result<Value, Fault> {
    let Ok(text) = std::str::from_utf8(line) else {
        return Err(Fault::new(None, ErrorCode::PARSE_ERROR, "the message is not UTF-8"));
    };
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Strict.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    value.map_err(|error| {
        let said = error.to_string();
        let code = if error.is_data() {
            ErrorCode::INVALID_REQUEST
        } else if said.starts_with("number out of range") {
            ErrorCode::INVALID_PARAMS
        } else {
            ErrorCode::PARSE_ERROR
        };
        Fault::new(salvaged_id(text), code, said)
    })
}

/// The id of a request; what the protocol does not allow, or could not be echoed exactly, is none.
pub fn request_id(value: &Value) -> Option<RequestId> {
    match value {
        Value::Number(number) => number.as_i64().map(RequestId::Number),
        Value::String(text) => Some(RequestId::String(text.as_str().into())),
        _ => None,
    }
}

/// The id of a message whose other parts cannot be read, so that its sender does not wait in vain.
fn salvaged_id(text: &str) -> Option<RequestId> {
    #[derive(serde::Deserialize)]
    struct Envelope {
        id: Value,
    }
    let envelope: Envelope = serde_json::from_str(text).ok()?;
    request_id(&envelope.id)
}

/// A [`Value`], unless a key stands twice in an object.
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(entry) = entries.next_element_seed(Strict)? {
            list.push(entry);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                let key: String = key.chars().take(64).collect();
                return Err(A::Error::custom(format_args!("the key `{key}` stands twice in one object")));
            }
            map.insert(key, entries.next_value_seed(Strict)?);
        }
        Ok(Value::Object(map))
    }
}
