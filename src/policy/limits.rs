//! `[limits]`, `[processes]`, `[retention]` and the sizes of `[filesystem]`: every number an agent could run into.
//!
//! The bounds here are not advice: below the smallest nothing useful starts, above the largest the
//! kernel refuses the number or it is a slip of the pen.

use std::time::Duration;

use super::error::Error;
use super::layers::{Given, Layers};
use super::units::{self, LONGEST, bytes, count, duration};
use super::written::{Amount, Count};
use super::{Bytes, Limits, Overrides, Processes, Retention};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const TIB: u64 = 1 << 40;
/// File sizes and offsets are signed in the kernel.
const MAX_FILE: u64 = 8 * 1024 * 1024 * TIB - 1;
pub(crate) const SHORTEST: Duration = Duration::from_millis(1);
/// Less than a page of output is not worth keeping, less than a few lines not worth sending.
pub(crate) const LEAST_OUTPUT: u64 = KIB;
pub(crate) const LEAST_INLINE: u64 = 256;

pub(super) fn limits(layers: &Layers, overrides: &Overrides) -> Result<Limits, Error> {
    let max_wall_time = duration(&layers.pick(|file| &file.limits.max_wall_time), SHORTEST..=LONGEST)?;
    let cpu_time = layers.optional(|file| &file.limits.cpu_time);
    Ok(Limits {
        memory: bytes(
            &typed("--memory", &overrides.memory, || layers.pick(|file| &file.limits.memory)),
            MIB..=4096 * TIB,
        )?,
        cpus: cpus(layers, overrides)?,
        cpu_time: cpu_time.map(|given| duration(&given, Duration::from_secs(1)..=LONGEST)).transpose()?,
        processes: count(&processes_given(layers, overrides)?, 1..=65536)?,
        open_files: count(&layers.pick(|file| &file.limits.open_files), 16..=1_048_576)?,
        file_size: bytes(&layers.pick(|file| &file.limits.file_size), 0..=MAX_FILE)?,
        wall_time: wall_time(layers, overrides, max_wall_time)?,
        max_wall_time,
        idle_time: duration(&layers.pick(|file| &file.limits.idle_time), SHORTEST..=LONGEST)?,
        output_bytes: bytes(&layers.pick(|file| &file.limits.output_bytes), LEAST_OUTPUT..=TIB)?,
        output_overflow: layers.pick(|file| &file.limits.output_overflow).value,
        inline_bytes: bytes(&layers.pick(|file| &file.limits.inline_bytes), LEAST_INLINE..=16 * MIB)?,
    })
}

pub(super) fn processes(layers: &Layers) -> Result<Processes, Error> {
    let small = |given: &Given<'_, Count>| {
        let number = count(given, 1..=4096)?;
        u32::try_from(number).map_err(|_| given.error("out of bounds"))
    };
    Ok(Processes {
        per_session: small(&layers.pick(|file| &file.processes.per_session))?,
        total: small(&layers.pick(|file| &file.processes.total))?,
        keep_finished: duration(&layers.pick(|file| &file.processes.keep_finished), Duration::ZERO..=LONGEST)?,
    })
}

pub(super) fn retention(layers: &Layers) -> Result<Retention, Error> {
    Ok(Retention {
        artifacts: duration(&layers.pick(|file| &file.retention.artifacts), Duration::ZERO..=LONGEST)?,
        max_bytes: bytes(&layers.pick(|file| &file.retention.max_bytes), LEAST_OUTPUT..=4096 * TIB)?,
    })
}

/// `tmp_size`, `tmp_inodes` and `max_file_bytes`.
pub(super) fn private(layers: &Layers) -> Result<(Bytes, u64, Bytes), Error> {
    let size = bytes(&layers.pick(|file| &file.filesystem.tmp_size), 64 * KIB..=TIB)?;
    let inodes = match layers.optional(|file| &file.filesystem.tmp_inodes) {
        Some(given) => count(&given, 16..=1 << 32)?,
        None => (size.0 / (4 * KIB)).max(16),
    };
    let largest = bytes(&layers.pick(|file| &file.filesystem.max_file_bytes), 1..=1024 * MIB)?;
    Ok((size, inodes, largest))
}

fn typed<'a>(flag: &str, value: &Option<String>, otherwise: impl FnOnce() -> Given<'a, Amount>) -> Given<'a, Amount> {
    match value {
        Some(text) => Given::flag(flag, text, Amount::Text(text.clone())),
        None => otherwise(),
    }
}

fn cpus(layers: &Layers, overrides: &Overrides) -> Result<f64, Error> {
    let given = match &overrides.cpus {
        Some(text) => {
            let number = text
                .parse::<f64>()
                .map_err(|_| Given::flag("--cpus", text, ()).error("is not a number").hint("write `2` or `0.5`"))?;
            Given::flag("--cpus", text, number)
        }
        None => layers.pick(|file| &file.limits.cpus),
    };
    // The kernel's smallest quota is a hundredth of a CPU.
    if given.value.is_finite() && (0.01..=1024.0).contains(&given.value) {
        return Ok(given.value);
    }
    Err(given.error(format!("{} CPUs is out of bounds", given.value)).hint("accepted: 0.01 to 1024"))
}

fn processes_given<'a>(layers: &'a Layers, overrides: &Overrides) -> Result<Given<'a, Count>, Error> {
    let Some(text) = &overrides.processes else {
        return Ok(layers.pick(|file| &file.limits.processes));
    };
    let number = text.parse().map_err(|_| {
        Given::flag("--processes", text, ()).error("is not a whole number").hint("write digits only, such as `256`")
    })?;
    Ok(Given::flag("--processes", text, Count(number)))
}

fn wall_time(layers: &Layers, overrides: &Overrides, longest: Duration) -> Result<Duration, Error> {
    let given = typed("--timeout", &overrides.timeout, || layers.pick(|file| &file.limits.wall_time));
    let time = duration(&given, SHORTEST..=LONGEST)?;
    if time <= longest {
        return Ok(time);
    }
    // A child that only lowers the bound means the inherited default to follow it.
    let rank_of_bound = layers.ranked(|file| &file.limits.max_wall_time).map(|(rank, _)| rank);
    let rank = layers.ranked(|file| &file.limits.wall_time).map(|(rank, _)| rank);
    if overrides.timeout.is_none() && rank > rank_of_bound {
        return Ok(longest);
    }
    let message = format!("`{}` is longer than `max_wall_time`", given.value);
    Err(given.error(message).hint(format!(
        "`max_wall_time` is {}; ask for at most that, or raise it in the policy",
        units::show_duration(longest)
    )))
}
