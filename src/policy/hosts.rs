//! Whom `allow_hosts` names: one canonical form of a host and a port, and whether a rule covers it.
//!
//! A host has one spelling here. A spelling that another program might read as a different host (`0x7f.1`, a second
//! trailing dot, a name that is not ASCII) is refused rather than translated, so a rule and a request can be compared
//! as they stand. Nothing is resolved; what a name may resolve to is decided in `plan::proxy`.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What a rule without a port allows: the web, and nothing else that may listen there.
const WEB: [u16; 2] = [80, 443];

/// The longest name of the DNS (RFC 1035, 2.3.4), without the trailing dot.
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

/// A host in its one spelling: lower-case name without a trailing dot, or an address as its standard text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Host {
    Name(String),
    Address(IpAddr),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    pub host: Host,
    pub port: u16,
}

/// One entry of `allow_hosts`: `crates.io`, `*.crates.io`, `192.0.2.1:8080`, `[2001:db8::1]:443`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRule {
    reach: Reach,
    /// `None` for [`WEB`].
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Reach {
    Exactly(Host),
    /// Every name below this one, at any depth, and not the name itself.
    Below(String),
}

/// Why a text is not a host, or not in its one spelling. A lower-case fragment.
pub type Fault = &'static str;

impl Host {
    pub fn parse(text: &str) -> Result<Host, Fault> {
        if let Some(inside) = text.strip_prefix('[') {
            return inside.strip_suffix(']').ok_or("a `[` without its `]`").and_then(six);
        }
        if let Some(fault) = strange(text) {
            return Err(fault);
        }
        let lower = text.to_ascii_lowercase();
        let bare = lower.strip_suffix('.').unwrap_or(&lower);
        if bare.rsplit('.').next().is_some_and(is_number) {
            // inet_aton(3) takes octal, hexadecimal and fewer than four parts; Rust takes the standard text only.
            let four = lower.parse::<Ipv4Addr>().map_err(|_| "an address that is not four plain decimal numbers")?;
            return Ok(Host::Address(four.into()));
        }
        let fits = bare.len() <= MAX_NAME && bare.split('.').all(is_label);
        if fits {
            Ok(Host::Name(bare.into()))
        } else {
            Err("a name is letters, digits, `-` and `_` between single dots")
        }
    }
}

/// Characters that no host holds, each with what it was probably meant to do.
fn strange(text: &str) -> Option<Fault> {
    let found = |wanted: fn(char) -> bool| text.contains(wanted);
    match () {
        () if found(|c| c == '@') => Some("a user name before the host"),
        () if found(|c| c == '%') => Some("a percent sign: neither escapes nor zones are understood"),
        () if found(|c| !c.is_ascii()) => Some("a name that is not ASCII: write its `xn--` form"),
        () if found(|c| c.is_ascii_control() || c == ' ') => Some("a space or control character"),
        () => None,
    }
}

fn is_label(label: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !label.is_empty() && label.len() <= MAX_LABEL && label.bytes().all(fits)
}

/// A last label like this makes a host an address to at least one reader (WHATWG URL, "ends in a number").
fn is_number(label: &str) -> bool {
    match label.strip_prefix("0x") {
        Some(rest) => rest.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

/// An address of version 4 in the clothes of version 6 has another spelling already.
fn six(inside: &str) -> Result<Host, Fault> {
    let address: Ipv6Addr = inside.parse().map_err(|_| "not an IPv6 address")?;
    match address.to_ipv4_mapped() {
        Some(_) => Err("an IPv4 address written as IPv6"),
        None => Ok(Host::Address(address.into())),
    }
}

impl Destination {
    /// `host:port`, or `host` where the scheme gives a port.
    pub fn parse(text: &str, default_port: Option<u16>) -> Result<Destination, Fault> {
        let (host, port) = split(text)?;
        let port = port.map(parse_port).transpose()?.or(default_port).ok_or("no port")?;
        Ok(Destination { host: Host::parse(host)?, port })
    }

    /// The first rule that allows it; none of an empty list does.
    pub fn rule<'a>(&self, rules: &'a [HostRule]) -> Option<&'a HostRule> {
        rules.iter().find(|rule| rule.allows(self))
    }
}

fn split(text: &str) -> Result<(&str, Option<&str>), Fault> {
    if text.contains('/') {
        return Err("a scheme or a path");
    }
    let end = if text.starts_with('[') { text.find(']').ok_or("a `[` without its `]`")? + 1 } else { 0 };
    match text[end..].find(':') {
        None => Ok((text, None)),
        Some(colon) => Ok((&text[..end + colon], Some(&text[end + colon + 1..]))),
    }
}

fn parse_port(text: &str) -> Result<u16, Fault> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| plain).ok_or("a port that is not a plain number from 1 to 65535")
}

impl HostRule {
    pub fn parse(text: &str) -> Result<HostRule, Fault> {
        let (host, port) = split(text)?;
        let port = port.map(parse_port).transpose()?;
        let reach = match host.strip_prefix("*.") {
            None => Reach::Exactly(Host::parse(host)?),
            Some(parent) => match Host::parse(parent)? {
                Host::Name(name) => Reach::Below(name),
                Host::Address(_) => return Err("nothing is below an address"),
            },
        };
        Ok(HostRule { reach, port })
    }

    pub fn allows(&self, destination: &Destination) -> bool {
        let host = match (&self.reach, &destination.host) {
            (Reach::Exactly(wanted), host) => wanted == host,
            (Reach::Below(parent), Host::Name(name)) => {
                name.strip_suffix(parent.as_str()).is_some_and(|rest| rest.ends_with('.'))
            }
            (Reach::Below(_), Host::Address(_)) => false,
        };
        host && self.port.map_or(WEB.contains(&destination.port), |port| port == destination.port)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Address(IpAddr::V4(four)) => write!(f, "{four}"),
            Host::Address(IpAddr::V6(six)) => write!(f, "[{six}]"),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reach {
            Reach::Exactly(host) => write!(f, "{host}")?,
            Reach::Below(parent) => write!(f, "*.{parent}")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
#[path = "hosts_tests.rs"]
mod tests;
