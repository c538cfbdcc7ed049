//! The proxy with names of its own, on this host's loopback: what a cell cannot be made to resolve without a network.

use super::{Proxy, Resolve};
use crate::plan::proxy::{PORT, ProxyPlan};
use crate::policy::hosts::HostRule;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn serve(rules: &[&str], resolve: Box<Resolve>) -> (Proxy, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    let address = listener.local_addr().expect("an address");
    let allow = rules.iter().map(|rule| HostRule::parse(rule).expect(rule)).collect();
    let proxy = Proxy::serve_resolving(listener.into(), ProxyPlan { port: PORT, allow }, resolve).expect("a proxy");
    (proxy, address)
}

/// All that the proxy answers.
fn ask(proxy: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(proxy).expect("the proxy accepts");
    stream.write_all(request.as_bytes()).expect("the proxy reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the proxy answers");
    answer
}

/// Somebody on the host's loopback who must not be reached, and how often he was.
fn insider() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    let port = listener.local_addr().expect("an address").port();
    let visits = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&visits);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            count.fetch_add(1, Ordering::SeqCst);
            drop(stream.map(|mut stream| stream.write_all(b"HTTP/1.1 200 OK\r\n\r\ninside")));
        }
    });
    (port, visits)
}

#[test]
fn a_listed_name_that_resolves_to_loopback_is_refused_and_nobody_is_called() {
    let (port, visits) = insider();
    let rules = [format!("evil.example:{port}"), format!("127.0.0.1:{port}")];
    let loopback = |_: &str| Ok(vec![IpAddr::from(Ipv4Addr::LOCALHOST)]);
    let (_proxy, address) = serve(&rules.each_ref().map(String::as_str), Box::new(loopback));
    let answer = ask(address, &format!("CONNECT evil.example:{port} HTTP/1.1\r\n\r\n"));
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert!(answer.contains(&format!("`evil.example:{port}` resolves to a loopback address")), "{answer}");
    assert_eq!(visits.load(Ordering::SeqCst), 0);
    let control = ask(address, &format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n"));
    assert!(control.ends_with("inside"), "{control}");
    assert_eq!(visits.load(Ordering::SeqCst), 1);
}

#[test]
fn a_name_is_resolved_once_so_a_second_answer_changes_nothing() {
    let (port, visits) = insider();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    // Public when it is judged and loopback ever after. The first was the 6bone's and is routed nowhere.
    let rebinding = move |_: &str| {
        let first = count.fetch_add(1, Ordering::SeqCst) == 0;
        Ok(vec![if first { Ipv6Addr::new(0x3ffe, 0, 0, 0, 0, 0, 0, 1).into() } else { Ipv4Addr::LOCALHOST.into() }])
    };
    let (_proxy, address) = serve(&[&format!("rebind.example:{port}")], Box::new(rebinding));
    let answer = ask(address, &format!("CONNECT rebind.example:{port} HTTP/1.1\r\n\r\n"));
    assert!(!answer.contains("inside"), "{answer}");
    assert_eq!((asked.load(Ordering::SeqCst), visits.load(Ordering::SeqCst)), (1, 0));
}

#[test]
fn an_unlisted_name_is_not_even_resolved() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let resolve = move |_: &str| {
        count.fetch_add(1, Ordering::SeqCst);
        Err(io::ErrorKind::NotFound.into())
    };
    let (_proxy, address) = serve(&["listed.example"], Box::new(resolve));
    let denied = ask(address, "CONNECT secret-in-a-name.evil.example:443 HTTP/1.1\r\n\r\n");
    assert!(denied.starts_with("HTTP/1.1 403 "), "{denied}");
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    let control = ask(address, "GET http://listed.example/ HTTP/1.1\r\n\r\n");
    assert!(control.starts_with("HTTP/1.1 502 Name Not Resolved"), "{control}");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[test]
fn either_side_may_finish_first() {
    let upstream = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    let port = upstream.local_addr().expect("an address").port();
    let (_proxy, address) = serve(&[&format!("127.0.0.1:{port}")], Box::new(|_| Ok(Vec::new())));
    for client_first in [true, false] {
        let mut client = TcpStream::connect(address).expect("the proxy accepts");
        client.write_all(format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n").as_bytes()).expect("the proxy reads");
        let mut head = [0; 39];
        client.read_exact(&mut head).expect("the proxy answers");
        assert!(head.starts_with(b"HTTP/1.1 200 "), "{}", head.escape_ascii());
        let (mut server, _) = upstream.accept().expect("the proxy connects");
        let (first, second) = if client_first { (&mut client, &mut server) } else { (&mut server, &mut client) };
        first.write_all(b"question").and_then(|()| first.shutdown(Shutdown::Write)).expect("one side finishes");
        let (mut question, mut answer) = (Vec::new(), Vec::new());
        second.read_to_end(&mut question).expect("the end is passed on");
        // More than the buffers on the way hold, while the other way is already closed.
        let long = vec![7; 8 << 20];
        std::thread::scope(|scope| {
            scope.spawn(|| second.write_all(&long).and_then(|()| second.shutdown(Shutdown::Write)));
            first.read_to_end(&mut answer).expect("the other way goes on");
        });
        assert_eq!((question.as_slice(), answer.len()), (&b"question"[..], long.len()));
    }
}

#[test]
fn dropping_the_proxy_hangs_up_on_everyone() {
    let upstream = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    let port = upstream.local_addr().expect("an address").port();
    let (proxy, address) = serve(&[&format!("127.0.0.1:{port}")], Box::new(|_| Ok(Vec::new())));
    let mut client = TcpStream::connect(address).expect("the proxy accepts");
    client.write_all(format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\nhello").as_bytes()).expect("the proxy reads");
    let (mut server, _) = upstream.accept().expect("the proxy connects");
    let mut hello = [0; 5];
    server.read_exact(&mut hello).expect("the tunnel works");
    drop(proxy);
    let mut rest = Vec::new();
    server.read_to_end(&mut rest).expect("the tunnel ends");
    client.read_to_end(&mut rest).expect("the client is hung up on");
    // The listener goes with its thread; until then the backlog may still take a connection that nobody answers.
    while TcpStream::connect(address).is_ok() {
        std::thread::yield_now();
    }
}
