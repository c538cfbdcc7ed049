//! Which addresses are the public internet. Everything else is somebody's inside, and a name must not lead there.
//!
//! From IANA's special-purpose address registries (RFC 6890 and its updates).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Public,
    /// With what it is instead.
    Special(&'static str),
}

const SPECIAL_V4: [(Ipv4Addr, u32, &str); 15] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8, "an unspecified address"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "a private address"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "a carrier's private address"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "a loopback address"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "a link-local address"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "a private address"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "a reserved address"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "an address for documentation"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "a private address"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "an address for benchmarks"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "an address for documentation"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "an address for documentation"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "a multicast address"),
    (Ipv4Addr::new(255, 255, 255, 255), 32, "the broadcast address"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "a reserved address"),
];

/// Only 2000::/3 is given out; of it, and of what carries an IPv4 address, these are special.
const SPECIAL_V6: [(Ipv6Addr, u32, &str); 9] = [
    (Ipv6Addr::UNSPECIFIED, 128, "an unspecified address"),
    (Ipv6Addr::LOCALHOST, 128, "a loopback address"),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, "a link-local address"),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, "a private address"),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, "a private address"),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, "a multicast address"),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, "an address for documentation"),
    // Teredo, ORCHID, benchmarks: tunnels and labels, not places.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, "a reserved address"),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, "an address for documentation"),
];

pub fn kind(address: IpAddr) -> Kind {
    match address {
        IpAddr::V4(four) => kind_v4(four),
        IpAddr::V6(six) => match embedded(six) {
            Some(four) => kind_v4(four),
            None => kind_v6(six),
        },
    }
}

fn kind_v4(four: Ipv4Addr) -> Kind {
    let inside = |net: Ipv4Addr, bits: u32| (four.to_bits() ^ net.to_bits()).leading_zeros() >= bits;
    match SPECIAL_V4.iter().find(|(net, bits, _)| inside(*net, *bits)) {
        Some((_, _, what)) => Kind::Special(what),
        None => Kind::Public,
    }
}

fn kind_v6(six: Ipv6Addr) -> Kind {
    let inside = |net: Ipv6Addr, bits: u32| (six.to_bits() ^ net.to_bits()).leading_zeros() >= bits;
    match SPECIAL_V6.iter().find(|(net, bits, _)| inside(*net, *bits)) {
        Some((_, _, what)) => Kind::Special(what),
        None if six.segments()[0] >> 13 == 1 => Kind::Public,
        None => Kind::Special("a reserved address"),
    }
}

/// The IPv4 address that packets to this one end up at: mapped, translated (RFC 6052) or tunnelled (6to4).
fn embedded(six: Ipv6Addr) -> Option<Ipv4Addr> {
    let four = |high: u16, low: u16| Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    match six.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => four(high, low),
        [0x2002, high, low, ..] => four(high, low),
        _ => None,
    }
}
