//! Why the proxy does not do what was asked: a status for the program, and the reason for whoever reads it.

use crate::policy::hosts::{Destination, Fault};
use std::fmt;

/// An answer must fit a fresh socket's buffer; who lists more hosts knows where to look.
const SHOWN_RULES: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denial {
    Malformed(&'static str),
    Host(Fault),
    Method,
    /// The body's end cannot be known from the head alone.
    Length,
    TooLong,
    TooSlow,
    Unlisted {
        destination: Destination,
        listed: Vec<String>,
    },
    Special {
        destination: Destination,
        what: &'static str,
    },
    Unresolved {
        destination: Destination,
    },
    Unreachable {
        destination: Destination,
        why: String,
    },
    Busy,
}

impl Denial {
    pub fn status(&self) -> u16 {
        match self {
            Denial::Malformed(_) | Denial::Host(_) => 400,
            Denial::Unlisted { .. } | Denial::Special { .. } => 403,
            Denial::Method => 405,
            Denial::TooSlow => 408,
            Denial::Length => 411,
            Denial::TooLong => 431,
            Denial::Unresolved { .. } | Denial::Unreachable { .. } => 502,
            Denial::Busy => 503,
        }
    }

    /// Many programs show nothing but the status line, so it says as much as it can.
    fn phrase(&self) -> &'static str {
        match self {
            Denial::Malformed(_) | Denial::Host(_) => "Bad Request",
            Denial::Unlisted { .. } => "Not In network.allow_hosts",
            Denial::Special { .. } => "Not A Public Address",
            Denial::Method => "Method Not Allowed",
            Denial::TooSlow => "Request Timeout",
            Denial::Length => "Length Required",
            Denial::TooLong => "Request Header Fields Too Large",
            Denial::Unresolved { .. } => "Name Not Resolved",
            Denial::Unreachable { .. } => "Not Reachable",
            Denial::Busy => "Too Many Connections",
        }
    }

    /// The whole answer.
    pub fn to_bytes(&self) -> Vec<u8> {
        let body = format!("stockade: {self}\n");
        format!(
            "HTTP/1.1 {} {}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.status(),
            self.phrase(),
            body.len()
        )
        .into_bytes()
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Denial::Malformed(what) => write!(f, "not a request that this proxy understands: {what}"),
            Denial::Host(fault) => write!(f, "not a host in its one spelling: {fault}"),
            Denial::Method => {
                f.write_str("this proxy takes `CONNECT host:port` and requests for `http://…`, and nothing else")
            }
            Denial::Length => f.write_str("a body needs one `Content-Length`; other framings go through `CONNECT`"),
            Denial::TooLong => f.write_str("the request's head is longer than 16 KiB"),
            Denial::TooSlow => f.write_str("the request's head was not complete in time"),
            Denial::Unlisted { destination, listed } if listed.is_empty() => {
                write!(f, "`{destination}` is not in `network.allow_hosts` of the policy, which is empty")
            }
            Denial::Unlisted { destination, listed } => {
                let rest = listed.len().saturating_sub(SHOWN_RULES);
                let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
                let listed = listed[..listed.len() - rest].join("`, `");
                write!(
                    f,
                    "`{destination}` is not in `network.allow_hosts` of the policy, which lists `{listed}`{more} (ports 80 and 443 where none is given)"
                )
            }
            Denial::Special { destination, what } => write!(
                f,
                "`{destination}` resolves to {what}; `network.allow_hosts` must list such an address itself, not a name for it"
            ),
            Denial::Unresolved { destination } => write!(f, "the name of `{destination}` cannot be resolved"),
            Denial::Unreachable { destination, why } => write!(f, "`{destination}` cannot be connected to: {why}"),
            Denial::Busy => f.write_str("too many connections at once; close some first"),
        }
    }
}
