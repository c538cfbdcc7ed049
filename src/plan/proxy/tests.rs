//! Heads of requests and resolved addresses, and what is decided about them: data.

use super::addresses::{Kind, kind};
use super::request::{self, end_of_head};
use super::{ProxyPlan, choose};
use crate::policy::hosts::{Destination, HostRule};
use std::net::{IpAddr, SocketAddr};

fn proxy(rules: &[&str]) -> ProxyPlan {
    ProxyPlan { port: super::PORT, allow: rules.iter().map(|rule| HostRule::parse(rule).expect(rule)).collect() }
}

/// A first line, and where it leads or the status of the denial, with `crates.io`, `*.crates.io:443` and one address listed.
const FIRST_LINES: [(&str, Result<&str, u16>); 43] = [
    ("CONNECT crates.io:443 HTTP/1.1", Ok("crates.io:443")),
    ("CONNECT CRATES.IO.:443 HTTP/1.0", Ok("crates.io:443")),
    ("CONNECT static.crates.io:443 HTTP/1.1", Ok("static.crates.io:443")),
    ("CONNECT 127.0.0.1:18080 HTTP/1.1", Ok("127.0.0.1:18080")),
    ("GET http://crates.io/ HTTP/1.1", Ok("crates.io:80")),
    ("GET HTTP://crates.io HTTP/1.1", Ok("crates.io:80")),
    ("GET http://crates.io?q=http://evil.example/ HTTP/1.1", Ok("crates.io:80")),
    ("POST http://crates.io:443/a%00b@c HTTP/1.1", Ok("crates.io:443")),
    ("CONNECT crates.io:22 HTTP/1.1", Err(403)),
    ("CONNECT static.crates.io:80 HTTP/1.1", Err(403)),
    ("CONNECT crates.io.evil.example:443 HTTP/1.1", Err(403)),
    ("CONNECT evilcrates.io:443 HTTP/1.1", Err(403)),
    ("CONNECT localhost:443 HTTP/1.1", Err(403)),
    ("CONNECT 169.254.169.254:80 HTTP/1.1", Err(403)),
    ("CONNECT 127.0.0.1:18081 HTTP/1.1", Err(403)),
    ("CONNECT [::1]:18080 HTTP/1.1", Err(403)),
    ("GET http://evil.example/crates.io HTTP/1.1", Err(403)),
    ("GET http://evil.example?crates.io HTTP/1.1", Err(403)),
    ("CONNECT [::ffff:127.0.0.1]:18080 HTTP/1.1", Err(400)),
    ("CONNECT 0x7f.1:18080 HTTP/1.1", Err(400)),
    ("CONNECT 2130706433:18080 HTTP/1.1", Err(400)),
    ("CONNECT 0177.0.0.1:18080 HTTP/1.1", Err(400)),
    ("CONNECT evil.example\0.crates.io:443 HTTP/1.1", Err(400)),
    ("CONNECT evil.example%00.crates.io:443 HTTP/1.1", Err(400)),
    ("CONNECT evil.example\t.crates.io:443 HTTP/1.1", Err(400)),
    ("CONNECT crätes.io:443 HTTP/1.1", Err(400)),
    ("CONNECT crates.io HTTP/1.1", Err(400)),
    ("CONNECT crates.io:443/ HTTP/1.1", Err(400)),
    ("CONNECT http://crates.io:443 HTTP/1.1", Err(400)),
    ("CONNECT  crates.io:443 HTTP/1.1", Err(400)),
    ("CONNECT crates.io:443 HTTP/1.1 ", Err(400)),
    ("CONNECT crates.io:443 HTTP/2", Err(400)),
    ("CONNECT crates.io:443", Err(400)),
    ("CONNECT crates.io:443 HTTP/1.1\nHost: x", Err(400)),
    ("GET http://crates.io@evil.example/ HTTP/1.1", Err(400)),
    ("GET http://evil.example\\@crates.io/ HTTP/1.1", Err(400)),
    ("GET http://crates.io/#top HTTP/1.1", Err(400)),
    ("GET http:///crates.io HTTP/1.1", Err(400)),
    ("GET / HTTP/1.1", Err(405)),
    ("GET https://crates.io/ HTTP/1.1", Err(405)),
    ("GET ftp://crates.io/ HTTP/1.1", Err(405)),
    ("OPTIONS * HTTP/1.1", Err(405)),
    ("connect crates.io:443 HTTP/1.1", Err(405)),
];

#[test]
fn a_request_leads_where_its_rule_says_or_nowhere() {
    let proxy = proxy(&["crates.io", "*.crates.io:443", "127.0.0.1:18080"]);
    for (line, expected) in FIRST_LINES {
        let head = format!("{line}\r\nHost: crates.io\r\n\r\n");
        match (proxy.decide(head.as_bytes()), expected) {
            (Ok(request), Ok(destination)) => assert_eq!(request.destination.to_string(), destination, "{line:?}"),
            (Err(denial), Err(status)) => assert_eq!(denial.status(), status, "{line:?}: {denial}"),
            (found, _) => panic!("{line:?}: {found:?}, expected {expected:?}"),
        }
    }
}

#[test]
fn an_empty_list_denies_everyone_and_says_why() {
    for line in ["CONNECT crates.io:443 HTTP/1.1", "GET http://127.0.0.1/ HTTP/1.1"] {
        let denial = proxy(&[]).decide(format!("{line}\r\n\r\n").as_bytes()).expect_err(line);
        assert_eq!(denial.status(), 403);
        assert!(denial.to_string().contains("`network.allow_hosts` of the policy, which is empty"), "{denial}");
    }
}

#[test]
fn a_denial_stays_short_however_long_the_list_is() {
    let rules: Vec<String> = (0..4000).map(|number| format!("{number}.{}.example", "x".repeat(60))).collect();
    let proxy = proxy(&rules.iter().map(String::as_str).collect::<Vec<_>>());
    let denial = proxy.decide(b"CONNECT evil.example:443 HTTP/1.1\r\n\r\n").expect_err("unlisted");
    assert!(denial.to_string().contains("` and 3980 more (ports"), "{denial}");
    assert!(denial.to_bytes().len() < 8 << 10);
}

/// Fields of a request for `http://crates.io:8080/x?y`, and the head for the origin or the status of the denial.
const FIELDS: [(&str, Result<&str, u16>); 14] = [
    ("", Ok("")),
    ("Host: evil.example\r\n", Ok("")),
    ("Accept: */*\r\nProxy-Connection: keep-alive\r\n", Ok("Accept: */*\r\n")),
    ("Proxy-Authorization: Basic x\r\nTE: gzip\r\nUpgrade: h2c\r\nTrailer: a\r\nKeep-Alive: 3\r\n", Ok("")),
    ("Connection: X-One, close\r\nx-one: 1\r\nX-Two: 2\r\n", Ok("X-Two: 2\r\n")),
    ("Connection: content-length\r\nContent-Length: 3\r\n", Ok("Content-Length: 3\r\n")),
    ("A:b\r\nC: \t d \r\n", Ok("A: b\r\nC: d\r\n")),
    ("Transfer-Encoding: chunked\r\n", Err(411)),
    ("Content-Length: 3\r\nContent-Length: 3\r\n", Err(400)),
    ("Content-Length: +3\r\n", Err(400)),
    ("Content-Length: 99999999999999999999\r\n", Err(400)),
    ("A: b\r\n folded\r\n", Err(400)),
    ("A : b\r\n", Err(400)),
    ("A: b\nHost: evil\r\n", Err(400)),
];

#[test]
fn the_origin_gets_its_own_host_and_nothing_meant_for_the_proxy() {
    for (fields, expected) in FIELDS {
        let head = format!("GET http://crates.io:8080/x?y HTTP/1.1\r\n{fields}\r\n");
        match (request::parse(head.as_bytes()), expected) {
            (Ok(request::Request { kind: request::Kind::Fetch { head, .. }, .. }), Ok(kept)) => {
                let wanted = format!("GET /x?y HTTP/1.1\r\nHost: crates.io:8080\r\n{kept}Connection: close\r\n\r\n");
                assert_eq!(String::from_utf8_lossy(&head), wanted, "{fields:?}");
            }
            (Err(denial), Err(status)) => assert_eq!(denial.status(), status, "{fields:?}: {denial}"),
            (found, _) => panic!("{fields:?}: {found:?}, expected {expected:?}"),
        }
    }
}

#[test]
fn a_head_ends_with_its_first_empty_line() {
    assert_eq!(end_of_head(b"CONNECT a:1 HTTP/1.1\r\n\r\nearly"), Some(24));
    assert_eq!(end_of_head(b"CONNECT a:1 HTTP/1.1\r\n\r"), None);
}

const ADDRESSES: [(&str, bool); 48] = [
    ("1.1.1.1", true),
    ("9.255.255.255", true),
    ("11.0.0.0", true),
    ("100.63.255.255", true),
    ("100.128.0.0", true),
    ("128.0.0.1", true),
    ("169.253.255.255", true),
    ("172.15.255.255", true),
    ("172.32.0.0", true),
    ("192.167.1.1", true),
    ("223.255.255.255", true),
    ("2606:4700::1111", true),
    ("2a00:1450::1", true),
    ("64:ff9b::1.1.1.1", true),
    ("2002:0101:0101::1", true),
    ("0.0.0.0", false),
    ("0.1.2.3", false),
    ("10.0.0.1", false),
    ("100.64.0.1", false),
    ("100.127.255.255", false),
    ("127.0.0.1", false),
    ("127.255.255.254", false),
    ("169.254.169.254", false),
    ("172.16.0.1", false),
    ("172.31.255.255", false),
    ("192.0.0.8", false),
    ("192.168.0.1", false),
    ("198.18.0.1", false),
    ("203.0.113.1", false),
    ("224.0.0.1", false),
    ("239.255.255.250", false),
    ("240.0.0.1", false),
    ("255.255.255.255", false),
    ("::", false),
    ("::1", false),
    ("::127.0.0.1", false),
    ("::ffff:127.0.0.1", false),
    ("::ffff:10.0.0.1", false),
    ("64:ff9b::10.0.0.1", false),
    ("64:ff9b:1::1", false),
    ("2002:7f00:1::1", false),
    ("2001::1", false),
    ("2001:db8::1", false),
    ("fc00::1", false),
    ("fdff::1", false),
    ("fe80::1", false),
    ("fec0::1", false),
    ("ff02::1", false),
];

#[test]
fn only_the_public_internet_is_public() {
    for (address, public) in ADDRESSES {
        let parsed: IpAddr = address.parse().expect(address);
        assert_eq!(kind(parsed) == Kind::Public, public, "{address}");
    }
    assert_eq!(kind(IpAddr::from([0, 0, 0, 0, 0, 0xffff, 0x0101, 0x0101])), Kind::Public);
}

type Addresses = &'static [&'static str];

/// A destination, what it resolves to, and which of these is connected to.
const CHOICES: [(&str, Addresses, Result<Addresses, u16>); 9] = [
    ("crates.io:443", &["1.1.1.1", "2606:4700::1"], Ok(&["1.1.1.1:443", "[2606:4700::1]:443"])),
    ("crates.io:443", &["127.0.0.1", "1.1.1.1"], Ok(&["1.1.1.1:443"])),
    ("crates.io:443", &["127.0.0.1"], Err(403)),
    ("crates.io:443", &["::ffff:169.254.169.254"], Err(403)),
    ("crates.io:443", &["8.8.4.4"], Err(403)),
    ("crates.io:443", &["::ffff:8.8.4.4"], Err(403)),
    ("crates.io:443", &[], Err(502)),
    ("127.0.0.1:18080", &["10.0.0.1"], Ok(&["127.0.0.1:18080"])),
    ("8.8.4.4:22", &[], Ok(&["8.8.4.4:22"])),
];

#[test]
fn a_name_never_leads_inside_and_a_listed_address_is_meant() {
    let own: IpAddr = "8.8.4.4".parse().expect("an address");
    for (destination, found, expected) in CHOICES {
        let destination = Destination::parse(destination, None).expect(destination);
        let found: Vec<IpAddr> = found.iter().map(|address| address.parse().expect(address)).collect();
        let chosen = choose(&destination, &found, &[own]);
        match expected {
            Ok(wanted) => {
                let wanted: Vec<SocketAddr> = wanted.iter().map(|address| address.parse().expect(address)).collect();
                assert_eq!(chosen.as_ref(), Ok(&wanted), "{destination} {found:?}");
            }
            Err(status) => {
                assert_eq!(chosen.expect_err("a denial").status(), status, "{destination} {found:?}");
            }
        }
    }
}
