//! Spellings of hosts and what rules make of them: data.

use super::{Destination, HostRule};

/// A request's spelling and its canonical form, or a part of why there is none.
const SPELLINGS: [(&str, Result<&str, &str>); 46] = [
    ("crates.io:443", Ok("crates.io:443")),
    ("CRATES.io:443", Ok("crates.io:443")),
    ("crates.io.:443", Ok("crates.io:443")),
    ("xn--bcher-kva.example:443", Ok("xn--bcher-kva.example:443")),
    ("a_b.example:8080", Ok("a_b.example:8080")),
    ("127.0.0.1:80", Ok("127.0.0.1:80")),
    ("[::1]:80", Ok("[::1]:80")),
    ("[0:0:0:0:0:0:0:1]:80", Ok("[::1]:80")),
    ("[2001:DB8::1]:80", Ok("[2001:db8::1]:80")),
    ("crates.io..:443", Err("between single dots")),
    (".crates.io:443", Err("between single dots")),
    ("crates..io:443", Err("between single dots")),
    (".:443", Err("between single dots")),
    (":443", Err("between single dots")),
    ("", Err("no port")),
    ("crates.io", Err("no port")),
    ("crates.io:", Err("port")),
    ("crates.io:0", Err("port")),
    ("crates.io:+443", Err("port")),
    ("crates.io:0443", Err("port")),
    ("crates.io:65536", Err("port")),
    ("crates.io:443:80", Err("port")),
    ("crates.io:44 3", Err("port")),
    ("evil\0.crates.io:443", Err("control character")),
    ("evil .crates.io:443", Err("space")),
    ("evil\t.crates.io:443", Err("control character")),
    ("evil\r\n.crates.io:443", Err("control character")),
    ("crates.io@evil.example:443", Err("user name")),
    ("user:word@crates.io:443", Err("port")),
    ("evil%00.crates.io:443", Err("percent")),
    ("bücher.example:443", Err("not ASCII")),
    ("crates。io:443", Err("not ASCII")),
    ("evil.example\\.crates.io:443", Err("between single dots")),
    ("evil.example/.crates.io:443", Err("scheme or a path")),
    ("*.crates.io:443", Err("between single dots")),
    ("0x7f.1:80", Err("four plain decimal numbers")),
    ("0X7F000001:80", Err("four plain decimal numbers")),
    ("2130706433:80", Err("four plain decimal numbers")),
    ("0177.0.0.1:80", Err("four plain decimal numbers")),
    ("127.0.0.01:80", Err("four plain decimal numbers")),
    ("127.1:80", Err("four plain decimal numbers")),
    ("127.0.0.1.:80", Err("four plain decimal numbers")),
    ("::1:80", Err("port")),
    ("[::ffff:127.0.0.1]:80", Err("IPv4 address written as IPv6")),
    ("[fe80::1%eth0]:80", Err("not an IPv6 address")),
    ("[::1:80", Err("without its `]`")),
];

#[test]
fn a_host_has_one_spelling() {
    for (text, expected) in SPELLINGS {
        match (Destination::parse(text, None), expected) {
            (Ok(found), Ok(canonical)) => assert_eq!(found.to_string(), canonical, "{text:?}"),
            (Err(fault), Err(part)) => assert!(fault.contains(part), "{text:?}: {fault}"),
            (found, _) => panic!("{text:?}: {found:?}, expected {expected:?}"),
        }
    }
}

#[test]
fn the_scheme_gives_the_port_only_where_none_is_written() {
    let text = |text| Destination::parse(text, Some(80)).map(|destination| destination.to_string());
    assert_eq!(text("crates.io"), Ok("crates.io:80".into()));
    assert_eq!(text("[::1]"), Ok("[::1]:80".into()));
    assert_eq!(text("crates.io:8080"), Ok("crates.io:8080".into()));
    assert!(text("crates.io:").is_err());
}

/// A rule, a destination, and whether the rule allows it.
const VERDICTS: [(&str, &str, bool); 31] = [
    ("crates.io", "crates.io:443", true),
    ("crates.io", "crates.io:80", true),
    ("crates.io", "crates.io:22", false),
    ("crates.io", "crates.io:8080", false),
    ("crates.io", "static.crates.io:443", false),
    ("crates.io", "crates.io.evil.example:443", false),
    ("crates.io", "evilcrates.io:443", false),
    ("crates.io", "io:443", false),
    ("Crates.IO.", "crates.io:443", true),
    ("crates.io", "CRATES.io.:443", true),
    ("crates.io:443", "crates.io:443", true),
    ("crates.io:443", "crates.io:80", false),
    ("crates.io:8080", "crates.io:443", false),
    ("*.crates.io", "static.crates.io:443", true),
    ("*.crates.io", "a.b.crates.io:443", true),
    ("*.crates.io", "crates.io:443", false),
    ("*.crates.io", "evilcrates.io:443", false),
    ("*.crates.io", "static.crates.io.evil.example:443", false),
    ("*.crates.io:443", "static.crates.io:80", false),
    ("*.io", "crates.io:443", true),
    ("127.0.0.1:8080", "127.0.0.1:8080", true),
    ("127.0.0.1:8080", "127.0.0.1:80", false),
    ("127.0.0.1", "127.0.0.1:80", true),
    ("127.0.0.1", "127.0.0.2:80", false),
    ("localhost", "127.0.0.1:80", false),
    ("127.0.0.1", "[::1]:80", false),
    ("[::1]:80", "[0::1]:80", true),
    ("[::1]:80", "127.0.0.1:80", false),
    ("[::1]", "[::1]:443", true),
    ("*.1.example", "127.0.0.1:80", false),
    ("1.example", "1.example:80", true),
];

#[test]
fn a_rule_allows_what_it_names_and_nothing_beside_it() {
    for (rule, destination, allowed) in VERDICTS {
        let rules = [HostRule::parse(rule).expect(rule)];
        let destination = Destination::parse(destination, None).expect(destination);
        assert_eq!(destination.rule(&rules).is_some(), allowed, "{rule} and {destination}");
        assert!(destination.rule(&[]).is_none(), "an empty list denies {destination}");
    }
}

#[test]
fn a_rule_is_written_as_it_is_meant_and_reads_back() {
    for text in ["crates.io", "*.crates.io:443", "127.0.0.1:18080", "[::1]:80", "[2001:db8::1]"] {
        let rule = HostRule::parse(text).expect(text);
        assert_eq!(rule.to_string(), text);
    }
}

#[test]
fn a_rule_that_could_be_read_in_two_ways_is_refused() {
    for text in [
        "*",
        "*.",
        "**.crates.io",
        "a.*.io",
        "*.0.0.1",
        "0x7f.1",
        "https://crates.io",
        "crates.io/",
        "[::ffff:1.2.3.4]",
    ] {
        assert!(HostRule::parse(text).is_err(), "{text}");
    }
}
