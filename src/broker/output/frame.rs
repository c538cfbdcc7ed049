//! How output lies in a segment file: a header of the file, then frames of one stream each.
//!
//! A frame's check is keyed, so that a process whose output imitates a header is not believed. The length stands outside the
//! check, because it grows in place; it is aligned, so that no write of it is ever half done.

use crate::broker::answer::Stream;

const MAGIC: &[u8; 8] = b"stkdout1";
pub(super) const FILE_HEADER: usize = 64;
pub(super) const HEADER: usize = 40;

/// Where in a frame its length stands.
pub(super) const LENGTH_AT: u64 = 4;

/// Frames begin at multiples of this.
const ALIGN: u64 = 8;

const STREAM_SHIFT: u32 = 56;

/// No count gets here; so sums of what a file claims cannot overflow.
const MOST: u64 = 1 << 62;

/// What the first bytes of a segment say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileHeader {
    /// That of the file's name; another one means that the file was renamed and not yet written.
    pub number: u64,
    pub key: u64,
    pub kept: u64,
    /// At most so many lines are shown; zero for no such bound.
    pub lines: u64,
}

impl FileHeader {
    pub(super) fn encode(&self) -> [u8; FILE_HEADER] {
        let mut bytes = [0; FILE_HEADER];
        bytes[..8].copy_from_slice(MAGIC);
        let words = [self.number, self.key, self.kept, self.lines, self.check()];
        for (index, word) in words.into_iter().enumerate() {
            bytes[8 + 8 * index..16 + 8 * index].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < FILE_HEADER || !bytes.starts_with(MAGIC) {
            return None;
        }
        let header =
            FileHeader { number: word(bytes, 8), key: word(bytes, 16), kept: word(bytes, 24), lines: word(bytes, 32) };
        (header.check() == word(bytes, 40)).then_some(header)
    }

    fn check(&self) -> u64 {
        mix(&[self.key, self.number, self.kept, self.lines])
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub len: u32,
    pub offset: u64,
    pub at: u64,
    pub line: u64,
    /// Bytes of stdout before it; the rest before it was stderr.
    pub stdout: u64,
    pub stream: Stream,
}

impl Header {
    pub(super) fn encode(&self, key: u64) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        let timed = self.timed();
        bytes[..4].copy_from_slice(&self.check(key, timed).to_le_bytes());
        bytes[4..8].copy_from_slice(&self.len.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.offset.to_le_bytes());
        bytes[16..24].copy_from_slice(&timed.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.line.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.stdout.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8], key: u64) -> Option<Self> {
        if bytes.len() < HEADER {
            return None;
        }
        let timed = word(bytes, 16);
        let stream = match timed >> STREAM_SHIFT {
            1 => Stream::Stdout,
            2 => Stream::Stderr,
            _ => return None,
        };
        let first = word(bytes, 0);
        let at = timed & ((1 << STREAM_SHIFT) - 1);
        let (line, stdout) = (word(bytes, 24), word(bytes, 32));
        let header = Header { len: (first >> 32) as u32, offset: word(bytes, 8), at, line, stdout, stream };
        let sound = header.check(key, timed) == first as u32
            && header.len > 0
            && header.len as usize <= super::ring::PIECE
            && header.offset.max(header.line) < MOST
            && header.stdout <= header.offset;
        sound.then_some(header)
    }

    pub(super) fn end(&self) -> u64 {
        self.offset + u64::from(self.len)
    }

    /// The time, with the stream in its highest byte.
    fn timed(&self) -> u64 {
        let stream = match self.stream {
            Stream::Stdout => 1,
            Stream::Stderr => 2,
        };
        (self.at & ((1 << STREAM_SHIFT) - 1)) | stream << STREAM_SHIFT
    }

    fn check(&self, key: u64, timed: u64) -> u32 {
        mix(&[key, self.offset, timed, self.line, self.stdout]) as u32
    }
}

/// Where the frame after one that ends here begins.
pub(super) fn aligned(position: u64) -> u64 {
    position.next_multiple_of(ALIGN)
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// Mixes words well enough that nobody who does not know the first can aim at a result.
fn mix(words: &[u64]) -> u64 {
    words.iter().fold(0x9e37_79b9_7f4a_7c15, |state: u64, word| {
        let mut mixed = (state ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^= mixed >> 29;
        mixed = mixed.wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back_as_written_and_only_with_the_key() {
        let header =
            Header { len: 7, offset: 1 << 40, at: 1_700_000_000_000_000, line: 99, stdout: 11, stream: Stream::Stderr };
        let bytes = header.encode(5);
        assert_eq!(Header::decode(&bytes, 5), Some(header));
        assert_eq!(Header::decode(&bytes, 6), None);
        let file = FileHeader { number: 3, key: 5, kept: 8, lines: 0 };
        assert_eq!(FileHeader::decode(&file.encode()), Some(file));
    }

    #[test]
    fn every_flipped_bit_of_a_header_is_noticed_except_in_its_length() {
        let header =
            Header { len: 7, offset: 4096, at: 1_700_000_000_000_000, line: 99, stdout: 11, stream: Stream::Stdout };
        for bit in 0..HEADER * 8 {
            let mut bytes = header.encode(5);
            bytes[bit / 8] ^= 1 << (bit % 8);
            let in_length = (4..8).contains(&(bit / 8));
            let read = Header::decode(&bytes, 5);
            assert!(read.is_none() || in_length && read.is_some_and(|read| read.len != header.len), "bit {bit}");
        }
    }
}
