//! The first bytes of each stream, kept apart: a reply shows how a flood began, long after the store has dropped it.

use super::answer::{Excerpt, Stream};
use super::output::Output;
use super::request::Filter;
use std::sync::{Mutex, PoisonError};

#[derive(Debug)]
pub struct Beginning {
    /// Of each stream.
    limit: usize,
    kept: Mutex<[Vec<u8>; 2]>,
}

impl Beginning {
    pub fn new(limit: usize) -> Self {
        Beginning { limit, kept: Mutex::default() }
    }

    pub fn feed(&self, stream: Stream, bytes: &[u8]) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = &mut kept[stream as usize];
        let room = self.limit.saturating_sub(kept.len()).min(bytes.len());
        kept.extend_from_slice(&bytes[..room]);
    }

    /// All of a stream if that is at most `limit` bytes, otherwise its head and its tail.
    pub fn excerpt(&self, output: &Output, stream: Stream, limit: usize) -> Excerpt {
        let totals = output.totals();
        let (total, filter) = match stream {
            Stream::Stdout => (totals.stdout_bytes, Filter::Stdout),
            Stream::Stderr => (totals.stderr_bytes, Filter::Stderr),
        };
        if total <= limit as u64 && totals.dropped_bytes == 0 {
            return Excerpt { head: output.bytes(0, limit, filter).0, tail: Vec::new(), omitted: 0, total };
        }
        let head = {
            let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            let kept = &kept[stream as usize];
            kept[..kept.len().min(limit / 2)].to_vec()
        };
        let room = (limit - head.len()).min((total as usize).saturating_sub(head.len()));
        let tail = last(output, totals.total_bytes, room, filter);
        let omitted = total - (head.len() + tail.len()) as u64;
        Excerpt { head, tail, omitted, total }
    }
}

/// The last bytes of a stream. The other stream's may lie between, so the search reaches further back as needed.
fn last(output: &Output, total: u64, wanted: usize, filter: Filter) -> Vec<u8> {
    let mut reach = wanted as u64;
    loop {
        let from = total.saturating_sub(reach);
        let (bytes, _) = output.bytes(from, usize::MAX, filter);
        if bytes.len() >= wanted || from == 0 {
            return bytes[bytes.len().saturating_sub(wanted)..].to_vec();
        }
        reach = reach.saturating_mul(4).max(4096);
    }
}
