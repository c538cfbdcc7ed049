//! One line of the log: `{"v":1,"seq":…,"prev":…, … ,"hash":…}`.
//!
//! `hash` is the SHA-256 of the line's own bytes without the `hash` field, `prev` the hash of the line before. Bytes
//! are hashed as they stand in the file, so there is no second spelling of a line that would pass. It is no
//! signature: whoever may write the whole directory can write a whole new chain. Agents never see the directory.

use super::time;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::SystemTime;

/// What the first line's `prev` says.
pub const NO_HASH: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Written before the chain's own words, so that a later version can tell.
const VERSION: u32 = 1;

const SEAL: &[u8] = b",\"hash\":\"";

/// Where the chain stands: the last line's number and hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    pub seq: u64,
    pub hash: String,
}

impl Link {
    /// Before the first line.
    pub fn start() -> Self {
        Link { seq: 0, hash: NO_HASH.into() }
    }
}

/// What the log says of itself, among the calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Marker {
    /// The writer died in the middle of a line; it is left as it is, closed with a newline.
    Torn { time: String, bytes: u64, sha256: String },
    /// The log could not be written for a while.
    Gap { time: String, since: String, why: String },
    /// Calls that were not written, as the queue was full.
    Lost { time: String, since: String, count: u64, tools: BTreeMap<String, u64> },
    /// The oldest file was deleted; this was its last line.
    Removed { time: String, file: String, last: Link },
}

impl Marker {
    pub fn torn(fragment: &[u8]) -> Self {
        Marker::Torn { time: now(), bytes: fragment.len() as u64, sha256: sha256(fragment) }
    }
}

pub fn now() -> String {
    time::rfc3339(SystemTime::now())
}

/// Appends the line that follows `link` to `out` and moves `link` on to it.
pub fn write(out: &mut Vec<u8>, link: &mut Link, content: &impl Serialize) -> serde_json::Result<()> {
    let content = serde_json::to_vec(content)?;
    let start = out.len();
    let seq = link.seq + 1;
    out.extend_from_slice(format!("{{\"v\":{VERSION},\"seq\":{seq},\"prev\":\"{}\",", link.hash).as_bytes());
    out.extend_from_slice(&content[1..]);
    let hash = sha256(&out[start..]);
    out.pop();
    out.extend_from_slice(SEAL);
    out.extend_from_slice(hash.as_bytes());
    out.extend_from_slice(b"\"}\n");
    *link = Link { seq, hash };
    Ok(())
}

/// A line whose own hash is right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    pub link: Link,
    pub prev: String,
    pub marker: Option<Marker>,
}

/// What a line looks like to a reader that trusts nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    Sealed(Sealed),
    /// It has the shape of a line, and its hash is not that of its bytes.
    Changed(Option<u64>),
    /// Not a line of this log.
    Foreign,
}

#[derive(Deserialize)]
struct Frame {
    v: u32,
    seq: u64,
    prev: String,
    kind: String,
}

/// Reads one line, without its newline.
pub fn read(line: &[u8]) -> Reading {
    let Some((body, stated)) = split(line) else {
        return Reading::Foreign;
    };
    let frame = serde_json::from_slice::<Frame>(&body).ok();
    if sha256(&body) != stated {
        return Reading::Changed(frame.map(|frame| frame.seq));
    }
    let Some(frame) = frame.filter(|frame| frame.v == VERSION) else {
        return Reading::Foreign;
    };
    let marker = if frame.kind == "call" { None } else { serde_json::from_slice(&body).ok() };
    Reading::Sealed(Sealed { link: Link { seq: frame.seq, hash: stated }, prev: frame.prev, marker })
}

/// The bytes that were hashed, and the hash the line states.
fn split(line: &[u8]) -> Option<(Vec<u8>, String)> {
    let body_length = line.len().checked_sub(SEAL.len() + 64 + 2)?;
    let (body, rest) = line.split_at(body_length);
    let stated = rest.strip_prefix(SEAL)?.strip_suffix(b"\"}")?;
    let mut body = body.to_vec();
    body.push(b'}');
    Some((body, String::from_utf8(stated.to_vec()).ok()?))
}

/// In hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
