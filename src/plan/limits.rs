//! rlimits: the second line behind the cgroup, and the only one for files and descriptors.

use super::cell::Rlimit;
use crate::policy::Limits;

/// Enough for any program that pins a few pages of keys; more would be memory the cgroup cannot take back.
const LOCKED_BYTES: u64 = 8 << 20;

/// The kernel's defaults on a small machine; a large one would allow more than the cell's memory is worth.
const QUEUE_BYTES: u64 = 819_200;
const PENDING_SIGNALS: u64 = 4096;

/// Room for the children that wait ready-sealed, two tasks each, and their like (see the launcher's pool).
const SPARE_TASKS: u64 = 64;

pub fn rlimits(limits: &Limits) -> Vec<Rlimit> {
    let mut all = vec![
        (libc::RLIMIT_CORE, 0),
        (libc::RLIMIT_NOFILE, limits.open_files),
        (libc::RLIMIT_FSIZE, limits.file_size.0),
        (libc::RLIMIT_NPROC, limits.processes + SPARE_TASKS),
        (libc::RLIMIT_MEMLOCK, LOCKED_BYTES),
        (libc::RLIMIT_MSGQUEUE, QUEUE_BYTES),
        (libc::RLIMIT_SIGPENDING, PENDING_SIGNALS),
        (libc::RLIMIT_RTPRIO, 0),
        (libc::RLIMIT_NICE, 0),
    ];
    if let Some(time) = limits.cpu_time {
        // Per process; the sum over all descendants is watched from outside.
        all.push((libc::RLIMIT_CPU, time.as_secs() + 1));
    }
    all.into_iter().map(|(resource, value)| Rlimit { resource, value }).collect()
}
