//! How much of an output is kept, and what is told about it.

pub use crate::policy::Overflow;

/// In memory per process: what waits for the disk, and as much of what came last as fits.
pub(super) const RING: usize = 512 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes per process.
    pub kept: u64,
    /// At most so many lines are shown: the newest.
    pub lines: Option<u64>,
    pub overflow: Overflow,
}

impl Bounds {
    /// How far back from the end anything is shown.
    pub(super) fn window(&self) -> u64 {
        match self.overflow {
            Overflow::DropOldest => self.kept,
            Overflow::Kill => self.kept.saturating_add(RING as u64),
            Overflow::Pause => u64::MAX,
        }
    }
}

/// What `append` says about the bytes to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Room {
    /// So many bytes may follow at once.
    Left(usize),
    /// Wait for `has_room`.
    Full,
    /// More than `kept`, and the bounds say that it is killed for that.
    Exceeded,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    pub total_bytes: u64,
    pub stdout_bytes: u64,
    pub stderr_bytes: u64,
    /// A last line without a newline counts.
    pub total_lines: u64,
    /// Bytes that no read can find any more.
    pub dropped_bytes: u64,
    /// No more will come.
    pub closed: bool,
}
