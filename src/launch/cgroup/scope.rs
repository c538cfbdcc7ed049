//! Asks the user's systemd for a group of our own: a transient scope with `Delegate=yes`.
//!
//! One D-Bus method call, written by hand. The crate `rustbus` would do it, but with an old nix, a
//! macro crate and signature checking for every type of D-Bus; `zbus` brings an async runtime. What is
//! sent here is fixed but for a name and two numbers, and what comes back is "yes" or an error's
//! name. The manager's private socket speaks to it directly; the session bus wants a `Hello` first.
//!
//! See the D-Bus specification, "Message Protocol", and org.freedesktop.systemd1(5).

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// A reply of ours is a path or an error text; a peer that announces more is not talked to.
const LONGEST_REPLY: u32 = 64 << 10;

const METHOD_CALL: u8 = 1;
const METHOD_RETURN: u8 = 2;
const ERROR: u8 = 3;

/// Returns when the manager has accepted the scope; the move itself may still be under way.
pub(super) fn start(socket: &Path, unit: &str, pids: &[u32], patience: Duration) -> io::Result<()> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    let deadline = Instant::now() + patience;
    authenticate(&mut stream)?;
    if !socket.ends_with("systemd/private") {
        let hello =
            Call { serial: 1, destination: "org.freedesktop.DBus", path: "/org/freedesktop/DBus", member: "Hello" };
        stream.write_all(&hello.message("", &[]))?;
        await_reply(&mut stream, 1, deadline)?;
    }
    let call = Call {
        serial: 2,
        destination: "org.freedesktop.systemd1",
        path: "/org/freedesktop/systemd1",
        member: "StartTransientUnit",
    };
    stream.write_all(&call.message("ssa(sv)a(sa(sv))", &transient_scope(unit, pids)))?;
    await_reply(&mut stream, 2, deadline)
}

/// SASL EXTERNAL: the kernel tells the peer who we are, we only name our uid, in hex of its digits.
fn authenticate(stream: &mut UnixStream) -> io::Result<()> {
    let uid = nix::unistd::geteuid().to_string();
    let hex: String = uid.bytes().map(|digit| format!("{digit:02x}")).collect();
    stream.write_all(format!("\0AUTH EXTERNAL {hex}\r\n").as_bytes())?;
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        line.push(byte[0]);
        if line.len() > 256 {
            return Err(io::Error::other("the answer to AUTH does not end"));
        }
    }
    if !line.starts_with(b"OK ") {
        return Err(io::Error::other("AUTH EXTERNAL was refused"));
    }
    stream.write_all(b"BEGIN\r\n")
}

/// `name, mode, properties, auxiliary units`.
fn transient_scope(unit: &str, pids: &[u32]) -> Vec<u8> {
    let mut body = Writer::default();
    body.string(unit);
    body.string("fail");
    body.array(8, |properties| {
        properties.property("Description", "s", |value| value.string("stockade"));
        properties.property("Delegate", "b", |value| value.number(1));
        properties.property("CollectMode", "s", |value| value.string("inactive-or-failed"));
        properties.property("PIDs", "au", |value| value.array(4, |list| pids.iter().for_each(|&pid| list.number(pid))));
    });
    body.array(8, |_| {});
    body.0
}

/// Reads until our call is answered; signals and other traffic are passed over.
fn await_reply(stream: &mut UnixStream, serial: u32, deadline: Instant) -> io::Result<()> {
    while Instant::now() < deadline {
        let mut fixed = [0; 16];
        stream.read_exact(&mut fixed)?;
        let little = fixed[0] == b'l';
        let word = |at: usize| {
            let bytes = [fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]];
            if little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) }
        };
        let (body, fields) = (word(4), word(12));
        if body > LONGEST_REPLY || fields > LONGEST_REPLY {
            return Err(io::Error::other("a reply too long to be ours"));
        }
        let mut rest = vec![0; fields.next_multiple_of(8) as usize + body as usize];
        stream.read_exact(&mut rest)?;
        if !answers(&rest[..fields as usize], serial, little) {
            continue;
        }
        match fixed[1] {
            METHOD_RETURN => return Ok(()),
            ERROR => return Err(io::Error::other(printable(&rest))),
            _ => {}
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

/// Whether the header fields hold REPLY_SERIAL: code 5, signature `u`, our number. Fields start at
/// multiples of eight, and this one is eight bytes long.
fn answers(fields: &[u8], serial: u32, little: bool) -> bool {
    let number = if little { serial.to_le_bytes() } else { serial.to_be_bytes() };
    fields.chunks_exact(8).any(|field| field[..4] == [5, 1, b'u', 0] && field[4..] == number)
}

/// The words of an error reply, for a message; its exact layout does not matter here.
fn printable(reply: &[u8]) -> String {
    let words = reply.split(|byte| !(b' '..=b'~').contains(byte)).filter(|word| word.len() > 8);
    words.map(String::from_utf8_lossy).collect::<Vec<_>>().join(": ")
}

struct Call<'a> {
    serial: u32,
    destination: &'a str,
    path: &'a str,
    member: &'a str,
}

impl Call<'_> {
    fn message(&self, signature: &str, body: &[u8]) -> Vec<u8> {
        let interface =
            if self.member == "Hello" { "org.freedesktop.DBus" } else { "org.freedesktop.systemd1.Manager" };
        let mut out = Writer(vec![b'l', METHOD_CALL, 0, 1]);
        out.number(u32::try_from(body.len()).unwrap_or(u32::MAX));
        out.number(self.serial);
        out.array(8, |fields| {
            fields.field(1, "o", |value| value.string(self.path));
            fields.field(2, "s", |value| value.string(interface));
            fields.field(3, "s", |value| value.string(self.member));
            fields.field(6, "s", |value| value.string(self.destination));
            if !signature.is_empty() {
                fields.field(8, "g", |value| value.signature(signature));
            }
        });
        out.align(8);
        out.0.extend_from_slice(body);
        out.0
    }
}

/// Little-endian D-Bus values, each aligned to its size. A message's body starts at a multiple of
/// eight, so offsets within the body serve for alignment.
#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn align(&mut self, to: usize) {
        self.0.resize(self.0.len().next_multiple_of(to), 0);
    }

    fn number(&mut self, number: u32) {
        self.align(4);
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn string(&mut self, text: &str) {
        self.number(u32::try_from(text.len()).unwrap_or(u32::MAX));
        self.0.extend_from_slice(text.as_bytes());
        self.0.push(0);
    }

    fn signature(&mut self, text: &str) {
        self.0.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
        self.0.extend_from_slice(text.as_bytes());
        self.0.push(0);
    }

    /// The length counts the elements only, not the padding before the first.
    fn array(&mut self, alignment: usize, write: impl FnOnce(&mut Writer)) {
        self.number(0);
        let length_at = self.0.len() - 4;
        self.align(alignment);
        let start = self.0.len();
        write(self);
        let length = u32::try_from(self.0.len() - start).unwrap_or(u32::MAX);
        self.0[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
    }

    fn property(&mut self, name: &str, signature: &str, write: impl FnOnce(&mut Writer)) {
        self.align(8);
        self.string(name);
        self.signature(signature);
        write(self);
    }

    fn field(&mut self, code: u8, signature: &str, write: impl FnOnce(&mut Writer)) {
        self.align(8);
        self.0.push(code);
        self.signature(signature);
        write(self);
    }
}

#[cfg(test)]
#[path = "scope_tests.rs"]
mod tests;
