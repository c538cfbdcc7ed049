//! The network wall with `mode = "proxy"`: the listed hosts through the broker, nobody else, and no other way out.
//!
//! There is no DNS here: what names resolve to is tested beside `broker::proxy`. Servers are threads of the test.

mod support;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use support::{Outcome, Yard};

/// An HTTP server on the host's loopback that answers with the request it got.
fn mirror() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || reflect(stream));
        }
    });
    port
}

fn reflect(mut stream: TcpStream) {
    let (mut request, mut chunk) = (Vec::new(), [0; 4096]);
    let complete = |request: &[u8]| {
        let text = String::from_utf8_lossy(request);
        let (head, body) = text.split_once("\r\n\r\n")?;
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap_or("0");
        (body.len() >= length.parse().ok()?).then_some(())
    };
    while complete(&request).is_none() {
        match stream.read(&mut chunk) {
            Ok(got) if got > 0 => request.extend_from_slice(&chunk[..got]),
            _ => return,
        }
    }
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", request.len());
    drop(stream.write_all(&[head.as_bytes(), &request].concat()));
}

fn yard(hosts: &[String]) -> Yard {
    Yard::with(&format!("[network]\nmode = \"proxy\"\nallow_hosts = {hosts:?}"))
}

fn at(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

/// What the proxy answers to these bytes, with so many other connections open.
fn talk(yard: &Yard, request: &str, held: usize, end: &str) -> Outcome {
    let probe = yard.probe_path();
    let outcome = yard.run_with_input(&[&probe, "proxy-talk", "3128", &held.to_string(), end], request.as_bytes());
    assert_eq!(outcome.code, 0, "{outcome:?}");
    outcome
}

fn status(outcome: &Outcome) -> u16 {
    outcome.stdout.get(9..12).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{outcome:?}"))
}

/// What curl says, told about the proxy by the environment alone.
fn curl(yard: &Yard, words: &str) -> Outcome {
    yard.shell(&format!("NO_PROXY= no_proxy= curl -sS --max-time 20 -w '%{{http_code}} %{{http_connect}}' {words}"))
}

#[test]
fn a_listed_host_is_reached_and_its_neighbours_are_not() {
    let (listed, other) = (mirror(), mirror());
    let yard = yard(&[at(listed), "registry.example".into()]);
    for way in ["", "--proxytunnel"] {
        let answer = curl(&yard, &format!("{way} http://127.0.0.1:{listed}/hello?x"));
        assert!(answer.stdout.starts_with("GET /hello?x HTTP/1.1\r\n"), "{answer:?}");
        assert!(answer.stdout.ends_with(if way.is_empty() { "200 000" } else { "200 200" }), "{answer:?}");
        for url in [format!("http://127.0.0.1:{other}/"), "http://registry.example.evil.example/".into()] {
            let answer = curl(&yard, &format!("{way} {url}"));
            assert!(answer.stdout.ends_with(if way.is_empty() { "403 000" } else { "000 403" }), "{answer:?}");
        }
    }
    let reason = curl(&yard, &format!("http://127.0.0.1:{other}/")).stdout;
    assert!(reason.contains(&format!("`127.0.0.1:{other}` is not in `network.allow_hosts`")), "{reason}");
    assert!(reason.contains(&format!("which lists `127.0.0.1:{listed}`, `registry.example`")), "{reason}");
    // The control: the neighbour is there.
    assert_eq!(yard.probe_outside(&["connect", &at(other)]), 0);
}

#[test]
fn there_is_no_way_around_the_proxy() {
    let listed = mirror();
    let yard = yard(&[at(listed)]);
    assert_eq!(yard.probe(&["connect", &at(listed)]), libc::ECONNREFUSED);
    assert_eq!(yard.probe(&["connect", "192.0.2.1:80"]), libc::ENETUNREACH);
    assert_eq!(yard.probe(&["connect", "127.0.0.1:3128"]), 0);
    assert_eq!(yard.probe_outside(&["connect", &at(listed)]), 0);
}

#[test]
fn nobody_in_the_cell_can_take_the_proxys_place() {
    assert_eq!(yard(&[]).probe(&["bind", "127.0.0.1:3128"]), libc::EADDRINUSE);
    assert_eq!(yard(&[]).probe(&["bind", "127.0.0.1:3129"]), 0);
    assert_eq!(Yard::new().probe(&["bind", "127.0.0.1:3128"]), 0);
}

#[test]
fn an_empty_list_denies_everyone() {
    let port = mirror();
    let request = format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n");
    let denied = talk(&yard(&[]), &request, 0, "keep");
    assert_eq!(status(&denied), 403);
    assert!(denied.stdout.contains("`network.allow_hosts` of the policy, which is empty"), "{denied:?}");
    assert_eq!(status(&talk(&yard(&[at(port)]), &request, 0, "keep")), 200);
}

/// NT-12: spellings of a listed host that must not pass for it. `{port}` is the one that is listed with 127.0.0.1.
const SPELLINGS: [(&str, u16); 12] = [
    ("127.0.0.1:{port}", 200),
    ("0x7f.1:{port}", 400),
    ("0x7f000001:{port}", 400),
    ("2130706433:{port}", 400),
    ("0177.0.0.1:{port}", 400),
    ("127.1:{port}", 400),
    ("127.0.0.1.:{port}", 400),
    ("[::ffff:127.0.0.1]:{port}", 400),
    ("x@127.0.0.1:{port}", 400),
    ("localhost:{port}", 403),
    ("127.0.0.1.evil.example:{port}", 403),
    ("evil\0.127.0.0.1:{port}", 400),
];

#[test]
fn only_the_one_spelling_of_a_host_passes() {
    let port = mirror();
    let yard = yard(&[at(port)]);
    for (spelling, expected) in SPELLINGS {
        let host = spelling.replace("{port}", &port.to_string());
        let request = format!("CONNECT {host} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n");
        assert_eq!(status(&talk(&yard, &request, 0, "keep")), expected, "{spelling:?}");
    }
}

#[test]
fn the_origin_gets_one_request_with_its_own_host() {
    let port = mirror();
    let first =
        "Host: evil.example\r\nProxy-Authorization: x\r\nConnection: X-Mine\r\nX-Mine: 1\r\nA: b\r\nContent-Length: 4";
    let request = format!(
        "POST http://127.0.0.1:{port}/in HTTP/1.1\r\n{first}\r\n\r\nbodyGET http://127.0.0.1:{port}/ HTTP/1.1\r\n\r\n"
    );
    let answer = talk(&yard(&[at(port)]), &request, 0, "keep");
    let (_, seen) = answer.stdout.split_once("\r\n\r\n").expect("a body");
    let wanted = format!(
        "POST /in HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nA: b\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody"
    );
    assert_eq!(seen, wanted);
}

#[test]
fn a_head_has_a_limit() {
    let port = mirror();
    let yard = yard(&[at(port)]);
    let head = |bytes: usize| format!("GET http://127.0.0.1:{port}/ HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(bytes));
    assert_eq!(status(&talk(&yard, &head(15_000), 0, "keep")), 200);
    assert_eq!(status(&talk(&yard, &head(16_384), 0, "keep")), 431);
    assert_eq!(status(&talk(&yard, &head(1 << 20), 0, "keep")), 431);
    assert_eq!(status(&talk(&yard, &"x".repeat(20_000), 0, "keep")), 431);
}

#[test]
fn slow_clients_delay_nobody_until_there_are_too_many() {
    let port = mirror();
    let yard = yard(&[at(port)]);
    let request = format!("GET http://127.0.0.1:{port}/ HTTP/1.1\r\n\r\n");
    for (held, expected, turned_away) in [(63, 200, 0), (64, 503, 0), (100, 503, 36)] {
        let answer = talk(&yard, &request, held, "keep");
        assert_eq!(status(&answer), expected, "{held}: {answer:?}");
        assert!(answer.stderr.contains(&format!("turned away: {turned_away}\n")), "{held}: {answer:?}");
    }
}

#[test]
fn a_head_that_never_ends_is_given_up() {
    assert_eq!(status(&talk(&yard(&[]), "CONNECT 127.0.0.1:1 HTTP/1.1\r\n", 0, "keep")), 408);
}

/// Takes one connection and tells what came of it until its end; answers only then.
fn listener(answer: &'static [u8]) -> (u16, JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    let port = listener.local_addr().expect("an address").port();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut heard = Vec::new();
        drop(stream.read_to_end(&mut heard));
        drop(stream.write_all(answer));
        heard
    });
    (port, thread)
}

#[test]
fn a_half_closed_tunnel_still_gets_its_answer() {
    let (port, heard) = listener(b"late answer");
    let long = "x".repeat(1 << 20);
    let answer = talk(&yard(&[at(port)]), &format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n{long}"), 0, "half");
    assert!(answer.stdout.ends_with("\r\n\r\nlate answer"), "{answer:?}");
    assert_eq!(heard.join().expect("the server ends").len(), long.len());
}

#[test]
fn a_tunnel_ends_with_its_cell() {
    let (port, heard) = listener(b"");
    let yard = Yard::with(&format!(
        "[network]\nmode = \"proxy\"\nallow_hosts = [\"127.0.0.1:{port}\"]\n[limits]\nwall_time = \"2s\""
    ));
    let probe = yard.probe_path();
    let request = format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\nhello");
    let outcome = yard.run_with_input(&[&probe, "proxy-talk", "3128", "0", "keep"], request.as_bytes());
    assert_eq!(outcome.code, 124, "{outcome:?}");
    assert_eq!(heard.join().expect("the server ends"), b"hello");
}

#[test]
fn programs_are_told_about_the_proxy_and_the_policy_may_say_otherwise() {
    let show = "env | grep -i _proxy= | sort";
    let url = "http://127.0.0.1:3128";
    let mut expected = Vec::new();
    for name in ["http_proxy", "https_proxy", "all_proxy"] {
        expected.extend([format!("{name}={url}"), format!("{}={url}", name.to_uppercase())]);
    }
    expected.extend(["no_proxy", "NO_PROXY"].map(|name| format!("{name}=localhost,127.0.0.1,::1")));
    expected.sort();
    let mut found: Vec<String> = yard(&[]).shell(show).stdout.lines().map(Into::into).collect();
    found.sort();
    assert_eq!(found, expected);
    assert_eq!(Yard::new().shell(show).stdout, "");
    let own = Yard::with("[network]\nmode = \"proxy\"\n[environment]\nset = { HTTP_PROXY = \"mine\" }");
    assert_eq!(own.shell("echo $HTTP_PROXY $http_proxy").stdout, format!("mine {url}\n"));
}
