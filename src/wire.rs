//! What broker and launcher say to each other, and what a waiting child is told.
//!
//! Frames of JSON with a length in front, over a stream socket; descriptors ride with the frame's
//! first byte. The launcher hears opaque cell numbers, never an agent's name. The child's own
//! request ([`Command`]) is not JSON: it is laid out so that the child can use it without allocating.

use crate::plan::cell::CellPlan;
use crate::plan::command::Task;
use crate::sys::{Errno, descriptor, socket};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// A plan with thousands of masks is well below this; more than this is a fault.
const MAX_FRAME: usize = 16 << 20;

#[derive(Debug, Serialize, Deserialize)]
pub enum ToLauncher {
    MakeCell {
        cell: u32,
        plan: Box<CellPlan>,
    },
    /// Make one process, sealed, waiting for its command.
    Prepare {
        cell: u32,
    },
    /// Everything in the cell dies and every trace of it goes.
    DropCell {
        cell: u32,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub enum FromLauncher {
    /// With the cgroup directories to remove should the launcher be killed, and the socket that the plan's proxy
    /// listens on as a descriptor.
    CellMade {
        cell: u32,
        groups: Vec<std::path::PathBuf>,
    },
    CellFailed {
        cell: u32,
        fault: Fault,
    },
    /// Descriptors: door, leash, pidfd, then the gauges.
    Ready {
        cell: u32,
        pid: i32,
        gauges: Option<serde_json::Value>,
    },
    PrepareFailed {
        cell: u32,
        fault: Fault,
    },
    CellDropped {
        cell: u32,
    },
}

/// What went wrong while walls were being made. Not the agent's doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    pub step: Stage,
    pub errno: i32,
    /// The path or limit it happened at.
    pub at: String,
}

/// The steps from a clone to exec, in their order. A failure is `{stage, errno}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u32)]
pub enum Stage {
    Clone = 1,
    MapIdentity,
    Source,
    Idmap,
    NewRoot,
    MountPoint,
    Attach,
    Pivot,
    Loopback,
    Proxy,
    Hostname,
    LandlockRule,
    Namespaces,
    EnterGroup,
    JoinCell,
    MountProc,
    MaskProc,
    CoverHidden,
    Rlimit,
    Identity,
    Capabilities,
    NoNewPrivileges,
    Landlock,
    Descriptors,
    Seccomp,
    Fork,
    Receive,
    Terminal,
    Stdio,
    WorkingDirectory,
    Exec,
    Group,
    /// Not a step: the answer to an attempt, 0 when it worked.
    Attempt,
}

impl Stage {
    const ALL: [Stage; 33] = [
        Stage::Clone,
        Stage::MapIdentity,
        Stage::Source,
        Stage::Idmap,
        Stage::NewRoot,
        Stage::MountPoint,
        Stage::Attach,
        Stage::Pivot,
        Stage::Loopback,
        Stage::Proxy,
        Stage::Hostname,
        Stage::LandlockRule,
        Stage::Namespaces,
        Stage::EnterGroup,
        Stage::JoinCell,
        Stage::MountProc,
        Stage::MaskProc,
        Stage::CoverHidden,
        Stage::Rlimit,
        Stage::Identity,
        Stage::Capabilities,
        Stage::NoNewPrivileges,
        Stage::Landlock,
        Stage::Descriptors,
        Stage::Seccomp,
        Stage::Fork,
        Stage::Receive,
        Stage::Terminal,
        Stage::Stdio,
        Stage::WorkingDirectory,
        Stage::Exec,
        Stage::Group,
        Stage::Attempt,
    ];

    pub fn from_number(number: u32) -> Option<Stage> {
        Stage::ALL.into_iter().find(|stage| *stage as u32 == number)
    }
}

/// A failure as a child can report it: two numbers. Zero for the stage means success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    pub stage: u32,
    pub errno: i32,
}

impl Report {
    pub const BYTES: usize = 8;

    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&self.stage.to_ne_bytes());
        bytes[4..].copy_from_slice(&self.errno.to_ne_bytes());
        bytes
    }

    pub fn from_bytes(bytes: &[u8]) -> Option<Report> {
        let (stage, errno) = bytes.split_first_chunk::<4>()?;
        let errno = errno.first_chunk::<4>()?;
        Some(Report { stage: u32::from_ne_bytes(*stage), errno: i32::from_ne_bytes(*errno) })
    }
}

/// What PID 1 says on the leash, as fixed-size messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FromInit {
    /// Sealed; the child behind the door waits.
    Ready,
    Failed(Report),
    Exited {
        status: i32,
        cpu_micros: u64,
        max_rss_kib: u64,
        left: Left,
    },
}

/// Who is left in a process when its command has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// Only PID 1, which ends now.
    Nobody,
    /// Some that the command started; they end with PID 1.
    Others,
}

impl FromInit {
    pub const BYTES: usize = 32;

    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let words: [u64; 4] = match self {
            FromInit::Ready => [1, 0, 0, 0],
            FromInit::Failed(report) => [2, u64::from(report.stage), report.errno as u64, 0],
            FromInit::Exited { status, cpu_micros, max_rss_kib, left } => {
                let kind = match left {
                    Left::Others => 3,
                    Left::Nobody => 4,
                };
                [kind, status as u64, cpu_micros, max_rss_kib]
            }
        };
        let mut bytes = [0; Self::BYTES];
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(words) {
            chunk.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    pub fn from_bytes(bytes: &[u8]) -> Option<FromInit> {
        let word =
            |index: usize| bytes.get(index * 8..index * 8 + 8).and_then(|b| b.try_into().ok()).map(u64::from_ne_bytes);
        Some(match word(0)? {
            1 => FromInit::Ready,
            2 => FromInit::Failed(Report { stage: word(1)? as u32, errno: word(2)? as i32 }),
            kind @ (3 | 4) => {
                let left = if kind == 4 { Left::Nobody } else { Left::Others };
                FromInit::Exited { status: word(1)? as i32, cpu_micros: word(2)?, max_rss_kib: word(3)?, left }
            }
            _ => return None,
        })
    }
}

/// The fixed part in front of a [`Command`]'s strings.
#[derive(Debug, Default, Clone, Copy)]
pub struct CommandHeader {
    /// Bytes of strings that follow.
    pub bytes: u32,
    /// Paths to try in turn, as execvp(3) does.
    pub candidates: u32,
    pub arguments: u32,
    pub variables: u32,
    /// 0 rows: stdio is three descriptors; otherwise a terminal of this size is made inside the cell.
    pub rows: u16,
    pub cols: u16,
    pub task: Task,
}

impl CommandHeader {
    pub const BYTES: usize = 24;

    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        for (chunk, word) in
            bytes.chunks_exact_mut(4).zip([self.bytes, self.candidates, self.arguments, self.variables])
        {
            chunk.copy_from_slice(&word.to_ne_bytes());
        }
        bytes[16..18].copy_from_slice(&self.rows.to_ne_bytes());
        bytes[18..20].copy_from_slice(&self.cols.to_ne_bytes());
        bytes[20] = match self.task {
            Task::Execute => 0,
            Task::Attempt => 1,
            Task::Work => 2,
        };
        bytes
    }

    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let half = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        CommandHeader {
            bytes: word(0),
            candidates: word(4),
            arguments: word(8),
            variables: word(12),
            rows: half(16),
            cols: half(18),
            task: match bytes[20] {
                0 => Task::Execute,
                1 => Task::Attempt,
                _ => Task::Work,
            },
        }
    }
}

/// One end of the conversation between broker and launcher.
#[derive(Debug)]
pub struct Channel(OwnedFd);

impl Channel {
    pub fn new(socket: OwnedFd) -> Self {
        Channel(socket)
    }

    pub fn descriptor(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.0.as_fd()
    }

    pub fn send(&self, message: &impl Serialize, descriptors: &[RawFd]) -> io::Result<()> {
        let mut frame = vec![0; 4];
        serde_json::to_writer(&mut frame, message)?;
        let length = u32::try_from(frame.len() - 4).map_err(io::Error::other)?;
        frame[..4].copy_from_slice(&length.to_ne_bytes());
        let mut sent = socket::send(self.0.as_raw_fd(), &frame, descriptors)?;
        while sent < frame.len() {
            sent += socket::send(self.0.as_raw_fd(), &frame[sent..], &[])?;
        }
        Ok(())
    }

    /// The next message; `None` when the other side is gone.
    pub fn receive<T: DeserializeOwned>(&self) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
        let mut length = [0; 4];
        let mut descriptors = [-1; 16];
        let (got, count) = match socket::receive(self.0.as_raw_fd(), &mut length, &mut descriptors) {
            Ok(got) => got,
            Err(Errno::ECONNRESET) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        let descriptors: Vec<OwnedFd> = descriptors[..count].iter().map(|fd| descriptor::adopt(*fd)).collect();
        if got == 0 || !self.fill(&mut length[got..])? {
            return Ok(None);
        }
        let length = u32::from_ne_bytes(length) as usize;
        if length > MAX_FRAME {
            return Err(io::Error::other("a frame larger than any plan"));
        }
        let mut frame = vec![0; length];
        if !self.fill(&mut frame)? {
            return Ok(None);
        }
        Ok(Some((serde_json::from_slice(&frame)?, descriptors)))
    }

    fn fill(&self, mut buffer: &mut [u8]) -> io::Result<bool> {
        while !buffer.is_empty() {
            match descriptor::read(self.0.as_raw_fd(), buffer) {
                Ok(0) | Err(Errno::ECONNRESET) => return Ok(false),
                Ok(got) => buffer = &mut buffer[got..],
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(true)
    }
}
