//! What the broker's proxy does with a request, decided: whom it may reach, and at which of its addresses.
//!
//! [`request`] reads the head of an HTTP request into a [`Request`] with one canonical destination; here the policy's
//! rules are held against it, and against what the destination resolved to. The same address that was judged is
//! connected to, so a name that resolves differently a moment later changes nothing. Nothing here opens a socket.

pub mod addresses;
pub mod denial;
pub mod request;

use crate::policy::Network;
use crate::policy::hosts::{Destination, Host, HostRule};
use addresses::Kind;
use denial::Denial;
use request::Request;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// Where the proxy listens on the cell's own loopback: the port that proxies are known by.
pub const PORT: u16 = 3128;

/// The proxy of a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyPlan {
    pub port: u16,
    /// Nobody when there is none.
    pub allow: Vec<HostRule>,
}

/// The proxy that a policy asks for.
pub fn plan(network: &Network) -> Option<ProxyPlan> {
    match network {
        Network::Proxy { allow_hosts } => Some(ProxyPlan { port: PORT, allow: allow_hosts.clone() }),
        Network::None | Network::Host { .. } => None,
    }
}

/// Tells programs about the proxy, in every spelling that one of them looks for.
pub fn variables(network: &Network) -> Vec<(String, String)> {
    let Some(proxy) = plan(network) else { return Vec::new() };
    let url = format!("http://127.0.0.1:{}", proxy.port);
    // A dev server of the agent's own is on the cell's loopback, which the broker cannot reach.
    let values =
        [("http_proxy", &*url), ("https_proxy", &url), ("all_proxy", &url), ("no_proxy", "localhost,127.0.0.1,::1")];
    let spellings =
        |(name, value): (&str, &str)| [name.to_owned(), name.to_uppercase()].map(|name| (name, value.into()));
    values.into_iter().flat_map(spellings).collect()
}

impl ProxyPlan {
    /// Reads a request's head and holds the rules against it.
    pub fn decide(&self, head: &[u8]) -> Result<Request, Denial> {
        let request = request::parse(head)?;
        match request.destination.rule(&self.allow) {
            Some(_) => Ok(request),
            None => Err(Denial::Unlisted {
                destination: request.destination,
                listed: self.allow.iter().map(ToString::to_string).collect(),
            }),
        }
    }
}

/// Which of the addresses that a listed destination resolved to may be connected to: for a name the public ones that are
/// not this host's own. A listed address is its own permission.
pub fn choose(destination: &Destination, found: &[IpAddr], own: &[IpAddr]) -> Result<Vec<SocketAddr>, Denial> {
    let socket = |address: IpAddr| SocketAddr::new(address, destination.port);
    if let Host::Address(address) = destination.host {
        return Ok(vec![socket(address)]);
    }
    let kind = |address: &IpAddr| match addresses::kind(*address) {
        Kind::Public if own.contains(&address.to_canonical()) => Kind::Special("an address of this host"),
        kind => kind,
    };
    let public = found.iter().filter(|address| kind(address) == Kind::Public);
    let chosen: Vec<SocketAddr> = public.map(|address| socket(*address)).collect();
    match (chosen.is_empty(), found.first().map(kind)) {
        (false, _) => Ok(chosen),
        (true, Some(Kind::Special(what))) => Err(Denial::Special { destination: destination.clone(), what }),
        (true, _) => Err(Denial::Unresolved { destination: destination.clone() }),
    }
}

#[cfg(test)]
mod tests;
