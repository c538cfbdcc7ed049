//! The head of a request to the proxy, read strictly: what two readers could understand differently is refused.
//!
//! One request per connection (RFC 9112). A plain request is rewritten for the origin: its path, one `Host` of the
//! destination that was judged, no field that is meant for the proxy.

use super::denial::Denial;
use crate::policy::hosts::Destination;

/// More than any browser sends; cookies included.
pub const MAX_HEAD: usize = 16 << 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub destination: Destination,
    pub kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Bytes both ways until both sides are done.
    Tunnel,
    /// The head as the origin gets it, and how many bytes of body follow.
    Fetch { head: Vec<u8>, body: u64 },
}

/// Fields between us and the client (RFC 9110, 7.6.1); the origin gets none of them.
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
];

/// Where the head ends in what has come so far.
pub fn end_of_head(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

/// Reads a head that ends with its empty line.
pub fn parse(head: &[u8]) -> Result<Request, Denial> {
    let text = std::str::from_utf8(head).map_err(|_| Denial::Malformed("bytes that are not text"))?;
    let text = text.strip_suffix("\r\n\r\n").ok_or(Denial::Malformed("no empty line"))?;
    let mut lines = text.split("\r\n");
    let line = lines.next().unwrap_or_default();
    let [method, target, version] = line.split(' ').collect::<Vec<_>>()[..] else {
        return Err(Denial::Malformed("a first line that is not a method, a target and a version"));
    };
    if !matches!(version, "HTTP/1.1" | "HTTP/1.0") {
        return Err(Denial::Malformed("a version other than HTTP/1.1 and HTTP/1.0"));
    }
    if !is_token(method) || !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(match target.is_ascii() {
            true => Denial::Malformed("control characters in the first line"),
            false => Denial::Host("a name that is not ASCII: write its `xn--` form"),
        });
    }
    let fields = lines.map(field).collect::<Result<Vec<_>, _>>()?;
    if method == "CONNECT" {
        let destination = Destination::parse(target, None).map_err(Denial::Host)?;
        return Ok(Request { destination, kind: Kind::Tunnel });
    }
    fetch(method, target, &fields)
}

fn is_token(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(fits)
}

fn field(line: &str) -> Result<(&str, &str), Denial> {
    let (name, value) = line.split_once(':').ok_or(Denial::Malformed("a field without a colon"))?;
    let value = value.trim_matches([' ', '\t']);
    let plain = !value.chars().any(|c| c.is_control() && c != '\t');
    if is_token(name) && plain {
        Ok((name, value))
    } else {
        Err(Denial::Malformed("a field that is not one line of text"))
    }
}

fn fetch(method: &str, target: &str, fields: &[(&str, &str)]) -> Result<Request, Denial> {
    let scheme = target.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("http://"));
    let rest = scheme.map(|scheme| &target[scheme.len()..]).ok_or(Denial::Method)?;
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if path.contains('#') {
        return Err(Denial::Malformed("a fragment, which is the client's own business"));
    }
    let destination = Destination::parse(authority, Some(80)).map_err(Denial::Host)?;
    let body = body(fields)?;
    let slash = if path.starts_with('/') { "" } else { "/" };
    let host = if destination.port == 80 { destination.host.to_string() } else { destination.to_string() };
    let mut head = format!("{method} {slash}{path} HTTP/1.1\r\nHost: {host}\r\n");
    let named: Vec<String> = all(fields, "connection").flat_map(|value| value.split(',')).map(lower).collect();
    for (name, value) in fields {
        let known = lower(name);
        // The body's length stays even if `Connection` names it: without it the body would be read as a request.
        let dropped = HOP_BY_HOP.contains(&&*known) || (named.contains(&known) && known != "content-length");
        if !dropped {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    head.push_str("Connection: close\r\n\r\n");
    Ok(Request { destination, kind: Kind::Fetch { head: head.into_bytes(), body } })
}

fn lower(text: &str) -> String {
    text.trim().to_ascii_lowercase()
}

fn all<'a>(fields: &'a [(&str, &str)], wanted: &'a str) -> impl Iterator<Item = &'a str> {
    fields.iter().filter(move |(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| *value)
}

/// How many bytes belong to this request; what comes after them is never passed on.
fn body(fields: &[(&str, &str)]) -> Result<u64, Denial> {
    if all(fields, "transfer-encoding").next().is_some() {
        return Err(Denial::Length);
    }
    let mut lengths = all(fields, "content-length");
    match (lengths.next(), lengths.next()) {
        (None, _) => Ok(0),
        (Some(length), None) if length.bytes().all(|byte| byte.is_ascii_digit()) => {
            length.parse().map_err(|_| Denial::Malformed("a `Content-Length` that is not a number"))
        }
        _ => Err(Denial::Malformed("more than one `Content-Length`, or one that is not a number")),
    }
}
