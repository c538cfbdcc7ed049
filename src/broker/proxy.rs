//! Serves a cell's proxy: the socket listens on the cell's loopback, and the broker answers it on the host's network.
//!
//! One thread per connection, at most [`MAX_CONNECTIONS`]. What a request may do is decided in `plan::proxy`; bytes are
//! moved in [`super::relay`]. A name is resolved once, and what was judged is what is connected to. No thread outlives the
//! [`Proxy`] for longer than one resolution and one connection attempt take.

use super::relay::{self, Flow, Until};
use crate::plan::proxy::denial::Denial;
use crate::plan::proxy::request::{Kind, MAX_HEAD, end_of_head};
use crate::plan::proxy::{ProxyPlan, choose};
use crate::policy::hosts::{Destination, Host};
use nix::ifaddrs::getifaddrs;
use nix::poll::PollFlags;
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Twice what the greediest package manager opens, and no more threads than this.
const MAX_CONNECTIONS: usize = 64;

/// From the connection to the end of the head, however slowly its bytes come.
const HEAD_TIME: Duration = Duration::from_secs(10);

/// For all addresses of a name together.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// After an answer, how long the client may still send what nobody reads; closing earlier could destroy the answer.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// After a failed accept(2), most likely for want of descriptors.
const BREATHER: Duration = Duration::from_millis(100);

/// What a name means on this host.
type Resolve = dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync;

/// A proxy at work. Dropping it hangs up on everyone.
#[derive(Debug)]
pub struct Proxy {
    _stop: PipeWriter,
}

struct Service {
    plan: ProxyPlan,
    resolve: Box<Resolve>,
    /// Hangs up when the [`Proxy`] is dropped.
    stop: PipeReader,
}

/// A request as it came.
struct Said {
    head: Vec<u8>,
    early: Vec<u8>,
}

/// An exchange that was allowed and can begin.
struct Exchange {
    kind: Kind,
    /// What came behind the request's head.
    early: Vec<u8>,
    server: TcpStream,
}

impl Proxy {
    /// Serves a listening socket until dropped.
    pub fn serve(listener: OwnedFd, plan: ProxyPlan) -> io::Result<Proxy> {
        Self::serve_resolving(listener, plan, Box::new(resolve))
    }

    fn serve_resolving(listener: OwnedFd, plan: ProxyPlan, resolve: Box<Resolve>) -> io::Result<Proxy> {
        let listener = TcpListener::from(listener);
        listener.set_nonblocking(true)?;
        let (stop, ours) = io::pipe()?;
        let service = Arc::new(Service { plan, resolve, stop });
        thread::Builder::new().name("proxy".into()).spawn(move || accept(&listener, &service))?;
        Ok(Proxy { _stop: ours })
    }
}

fn resolve(name: &str) -> io::Result<Vec<IpAddr>> {
    Ok((name, 0).to_socket_addrs()?.map(|address| address.ip()).collect())
}

/// This host's addresses: a name for one of them leads to services that were never meant for the agent.
fn own_addresses() -> Vec<IpAddr> {
    let interfaces = getifaddrs().into_iter().flatten().filter_map(|interface| interface.address);
    let address = |storage: nix::sys::socket::SockaddrStorage| {
        let four = storage.as_sockaddr_in().map(|four| IpAddr::from(four.ip()));
        four.or_else(|| storage.as_sockaddr_in6().map(|six| IpAddr::from(six.ip())))
    };
    interfaces.filter_map(address).collect()
}

fn accept(listener: &TcpListener, service: &Arc<Service>) {
    let seats = Arc::new(());
    let stop = service.stop.as_fd();
    while relay::wait(stop, &[(listener.as_fd(), PollFlags::POLLIN)], None).is_ok() {
        let client = match listener.accept() {
            Ok((client, _)) => client,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionAborted) => continue,
            Err(_) => {
                let _ = relay::wait(stop, &[], Some(Instant::now() + BREATHER));
                continue;
            }
        };
        if client.set_nonblocking(true).is_err() {
            continue;
        }
        if Arc::strong_count(&seats) > MAX_CONNECTIONS {
            let _ = (&client).write(&Denial::Busy.to_bytes());
            continue;
        }
        let (seat, service) = (Arc::clone(&seats), Arc::clone(service));
        let _ = thread::Builder::new().name("proxied".into()).spawn(move || {
            service.attend(&client);
            drop(client);
            drop(seat);
        });
    }
}

impl Service {
    fn attend(&self, client: &TcpStream) {
        match self.open(client) {
            Ok(Some(exchange)) => self.exchange(client, exchange),
            Ok(None) => {}
            Err(denial) => self.refuse(client, &denial),
        }
    }

    /// `None` when the client left before it had said what it wants.
    fn open(&self, client: &TcpStream) -> Result<Option<Exchange>, Denial> {
        let Some(Said { head, early }) = self.read_head(client)? else { return Ok(None) };
        let request = self.plan.decide(&head)?;
        let server = self.connect(&request.destination)?;
        Ok(Some(Exchange { kind: request.kind, early, server }))
    }

    fn read_head(&self, mut client: &TcpStream) -> Result<Option<Said>, Denial> {
        let until = Instant::now() + HEAD_TIME;
        let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
        loop {
            match relay::wait(self.stop.as_fd(), &[(client.as_fd(), PollFlags::POLLIN)], Some(until)) {
                Err(relay::Interruption::Time) => return Err(Denial::TooSlow),
                Err(relay::Interruption::Stop) => return Ok(None),
                Ok(()) => {}
            }
            match client.read(&mut chunk) {
                Ok(0) => return Ok(None),
                Ok(got) => bytes.extend_from_slice(&chunk[..got]),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => continue,
                Err(_) => return Ok(None),
            }
            match end_of_head(&bytes) {
                Some(end) if end <= MAX_HEAD => {
                    let early = bytes.split_off(end);
                    return Ok(Some(Said { head: bytes, early }));
                }
                None if bytes.len() <= MAX_HEAD => {}
                _ => return Err(Denial::TooLong),
            }
        }
    }

    fn connect(&self, destination: &Destination) -> Result<TcpStream, Denial> {
        let found = match &destination.host {
            Host::Address(_) => Vec::new(),
            Host::Name(name) => (self.resolve)(name).unwrap_or_default(),
        };
        let chosen = choose(destination, &found, &own_addresses())?;
        let until = Instant::now() + CONNECT_TIME;
        let mut why = String::from("no time left");
        for (index, address) in chosen.iter().enumerate() {
            // An address that does not answer must not eat the time of the next.
            let share = until.saturating_duration_since(Instant::now()) / (chosen.len() - index) as u32;
            match TcpStream::connect_timeout(address, share.max(Duration::from_millis(1))) {
                Ok(server) => return Ok(server),
                Err(error) => why = error.to_string(),
            }
        }
        Err(Denial::Unreachable { destination: destination.clone(), why })
    }

    fn exchange(&self, client: &TcpStream, exchange: Exchange) {
        let Exchange { kind, mut early, server } = exchange;
        let server = &server;
        if server.set_nonblocking(true).is_err() {
            return;
        }
        // Both ends decide for themselves what goes together.
        let _ = server.set_nodelay(true).and_then(|()| client.set_nodelay(true));
        let (up, down, until) = match kind {
            Kind::Tunnel => {
                let established = b"HTTP/1.1 200 Connection established\r\n\r\n".to_vec();
                (Flow::new(client, server, early), Flow::new(server, client, established), Until::BothDone)
            }
            Kind::Fetch { mut head, body } => {
                early.truncate(usize::try_from(body).unwrap_or(usize::MAX));
                let rest = body - early.len() as u64;
                head.append(&mut early);
                (Flow::new(client, server, head).at_most(rest), Flow::new(server, client, Vec::new()), Until::Answered)
            }
        };
        relay::run(up, down, until, self.stop.as_fd());
    }

    fn refuse(&self, mut client: &TcpStream, denial: &Denial) {
        let until = Instant::now() + DRAIN_TIME;
        if client.write_all(&denial.to_bytes()).and_then(|()| client.shutdown(Shutdown::Write)).is_err() {
            return;
        }
        let mut ignored = [0; 4096];
        while relay::wait(self.stop.as_fd(), &[(client.as_fd(), PollFlags::POLLIN)], Some(until)).is_ok() {
            if client.read(&mut ignored).is_ok_and(|got| got > 0) {
                continue;
            }
            break;
        }
    }
}

#[cfg(test)]
#[path = "proxy_tests.rs"]
mod tests;
