//! Attempts on the proxy: whatever a client can be made to say, byte by byte.

use super::{Attempt, told};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::time::Duration;

/// Longer than any time-out of the proxy that a test waits for.
const PATIENCE: Duration = Duration::from_secs(30);

pub fn attempt(words: &[&str]) -> Option<Attempt> {
    Some(match words {
        // Says what is on stdin and prints the answer, while so many others have begun to speak and never end.
        ["proxy-talk", port, held, end] => talk(port.parse().ok()?, held.parse().ok()?, end),
        _ => return None,
    })
}

fn talk(port: u16, held: usize, end: &str) -> Attempt {
    let connect = || {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(PATIENCE)).map(|()| stream)
    };
    let conversation = || {
        let mut others = Vec::new();
        for _ in 0..held {
            let mut other = connect()?;
            // One that was turned away may be closed already.
            let _ = other.write_all(b"GET http://slow");
            others.push(other);
        }
        let mut request = Vec::new();
        std::io::stdin().read_to_end(&mut request)?;
        let mut stream = connect()?;
        let _ = stream.write_all(&request);
        if end == "half" {
            stream.shutdown(Shutdown::Write)?;
        }
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        std::io::stdout().write_all(&answer)?;
        let turned_away = others.iter().filter(|other| is_turned_away(other)).count();
        eprintln!("turned away: {turned_away}");
        Ok(())
    };
    told(conversation())
}

fn is_turned_away(mut stream: &TcpStream) -> bool {
    let mut status = [0; 12];
    stream.set_nonblocking(true).is_ok() && stream.read(&mut status).is_ok() && &status == b"HTTP/1.1 503"
}
