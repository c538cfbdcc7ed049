//! Frames on the control socket: a kind, a length of four bytes (little endian), then so many bytes.

use std::io::{self, Read};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The most in one frame, either way.
pub const MAX_FRAME: usize = 64 << 10;

const HEAD: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// From the process.
    Output = 1,
    /// Bytes that nobody kept, as a number of eight bytes.
    Skipped = 2,
    /// The last one: a [`super::message::End`].
    End = 3,
    /// Something to tell the operator.
    Notice = 4,
    /// To the process.
    Input = 5,
    /// Rows and columns of whoever looks, two bytes each.
    View = 6,
}

const KINDS: [Kind; 6] = [Kind::Output, Kind::Skipped, Kind::End, Kind::Notice, Kind::Input, Kind::View];

/// One frame; what is longer than [`MAX_FRAME`] is the caller's mistake and cut.
pub fn encode(kind: Kind, bytes: &[u8]) -> Vec<u8> {
    let bytes = &bytes[..bytes.len().min(MAX_FRAME)];
    let mut frame = Vec::with_capacity(HEAD + bytes.len());
    frame.push(kind as u8);
    frame.extend((bytes.len() as u32).to_le_bytes());
    frame.extend(bytes);
    frame
}

fn decode_head(head: [u8; HEAD]) -> io::Result<(Kind, usize)> {
    let [kind, length @ ..] = head;
    let length = u32::from_le_bytes(length) as usize;
    match KINDS.into_iter().find(|known| *known as u8 == kind) {
        Some(kind) if length <= MAX_FRAME => Ok((kind, length)),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, format!("a frame of kind {kind} with {length} bytes"))),
    }
}

/// The next frame; an error of kind `UnexpectedEof` at the end.
pub async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<(Kind, Vec<u8>)> {
    let mut head = [0; HEAD];
    from.read_exact(&mut head).await?;
    let (kind, length) = decode_head(head)?;
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes).await?;
    Ok((kind, bytes))
}

/// The same for a client that may wait.
pub fn read_waiting(from: &mut impl Read) -> io::Result<(Kind, Vec<u8>)> {
    let mut head = [0; HEAD];
    from.read_exact(&mut head)?;
    let (kind, length) = decode_head(head)?;
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes)?;
    Ok((kind, bytes))
}
