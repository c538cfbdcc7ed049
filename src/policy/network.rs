//! `[network]`: the mode, and the ports or names that belong to it.

use super::error::{Error, visible};
use super::file::Mode;
use super::hosts::HostRule;
use super::layers::{Given, Layers, MAX_ENTRIES, Origin};
use super::units::count;
use super::written::Count;
use super::{Network, Overrides};

pub(super) fn network(layers: &Layers, overrides: &Overrides) -> Result<Network, Error> {
    let (rank, mode) = layers.ranked(|file| &file.network.mode).expect("base.toml gives a mode");
    // A key beside a mode it does not belong to is a mistake; one inherited from further up is only unused.
    let beside = |rank_of: usize| rank_of <= rank && overrides.network.is_none();
    let (connect, bind) =
        (layers.ranked(|file| &file.network.connect_ports), layers.ranked(|file| &file.network.bind_ports));
    let hosts = layers.ranked(|file| &file.network.allow_hosts);
    let mode = match &overrides.network {
        Some(text) => typed_mode(text)?,
        None => mode.value,
    };
    for (rank, ports) in connect.iter().chain(&bind) {
        if mode != Mode::Host && beside(*rank) {
            return Err(ports
                .error("ports are narrowed only with `mode = \"host\"`")
                .hint("remove them, or set the mode"));
        }
    }
    if let Some((rank, hosts)) = hosts.as_ref().filter(|_| mode != Mode::Proxy)
        && beside(*rank)
    {
        return Err(hosts.error("names are reached only with `mode = \"proxy\"`").hint("remove them, or set the mode"));
    }
    Ok(match mode {
        Mode::None => Network::None,
        Mode::Host => Network::Host {
            connect_ports: connect
                .map(|_| ports(&layers.nearest(MAX_ENTRIES, |file| &file.network.connect_ports)?))
                .transpose()?,
            bind_ports: bind
                .map(|_| ports(&layers.nearest(MAX_ENTRIES, |file| &file.network.bind_ports)?))
                .transpose()?,
        },
        Mode::Proxy => Network::Proxy {
            allow_hosts: layers
                .nearest(MAX_ENTRIES, |file| &file.network.allow_hosts)?
                .iter()
                .map(host)
                .collect::<Result<_, _>>()?,
        },
    })
}

fn typed_mode(text: &str) -> Result<Mode, Error> {
    match text {
        "none" => Ok(Mode::None),
        "host" => Ok(Mode::Host),
        "proxy" => Ok(Mode::Proxy),
        _ => Err(Origin::Flag(format!("--network {text}"))
            .error("is not a mode")
            .hint("accepted: `none`, `host` or `proxy`")),
    }
}

fn ports(list: &[Given<'_, Count>]) -> Result<Vec<u16>, Error> {
    let port = |given| count(given, 1..=65535).map(|number| u16::try_from(number).unwrap_or(u16::MAX));
    list.iter().map(port).collect()
}

fn host(given: &Given<'_, String>) -> Result<HostRule, Error> {
    let hint = "write `crates.io`, `*.crates.io` or `crates.io:443`, without a scheme or a path";
    let error = |fault| given.error(format!("`{}` is not a host: {fault}", visible(&given.value))).hint(hint);
    HostRule::parse(&given.value).map_err(error)
}
