//! Sizes, durations and counts: text with a unit becomes a number with a type.
//!
//! Sizes are binary (`1K` = 1024 bytes) and exact; nothing is rounded, nothing wraps. Both
//! directions are here, so that what `show` writes is what a file may say.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::Bytes;
use super::error::Error;
use super::layers::Given;
use super::written::{Amount, Count};

const SIZES: [(&str, u64); 4] = [("T", 1 << 40), ("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)];
const TIMES_MS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// A thousand days: longer than any process lives, and far from overflowing a deadline.
pub(crate) const LONGEST: Duration = Duration::from_secs(1000 * 86_400);

/// `"512M"`, `"1GiB"`, `"16KB"`, or a plain integer.
pub(super) fn bytes(given: &Given<'_, Amount>, bounds: RangeInclusive<u64>) -> Result<Bytes, Error> {
    let text = given.value.to_string();
    let (digits, unit) = split(&text);
    let factor = match unit.strip_suffix("iB").or_else(|| unit.strip_suffix('B')).unwrap_or(unit) {
        "" if !unit.ends_with("iB") => Some(1),
        letter => SIZES.iter().find(|(name, _)| *name == letter).map(|(_, factor)| *factor),
    };
    let Some(factor) = factor.filter(|_| !digits.is_empty()) else {
        return Err(given.error(format!("`{text}` is not a size")).hint(size_hint(digits, unit)));
    };
    let size = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    let size = size.ok_or_else(|| {
        given.error(format!("`{text}` is more bytes than 64 bits can count")).hint("write a size such as `512M`")
    })?;
    within(size, &bounds).then_some(Bytes(size)).ok_or_else(|| {
        given.error(format!("`{text}` is out of bounds")).hint(format!(
            "accepted: {} to {}",
            show_bytes(Bytes(*bounds.start())),
            show_bytes(Bytes(*bounds.end()))
        ))
    })
}

/// `"500ms"`, `"10s"`, `"5m"`, `"1h"`, `"1d"`.
pub(super) fn duration(given: &Given<'_, Amount>, bounds: RangeInclusive<Duration>) -> Result<Duration, Error> {
    let text = given.value.to_string();
    let (digits, unit) = split(&text);
    let factor = TIMES_MS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    let Some(factor) = factor.filter(|_| !digits.is_empty()) else {
        return Err(given.error(format!("`{text}` is not a duration")).hint(duration_hint(digits, unit)));
    };
    let time = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor)).map(Duration::from_millis);
    time.filter(|time| bounds.contains(time)).ok_or_else(|| {
        let accepted = format!("accepted: {} to {}", show_duration(*bounds.start()), show_duration(*bounds.end()));
        given.error(format!("`{text}` is out of bounds")).hint(accepted)
    })
}

pub(super) fn count(given: &Given<'_, Count>, bounds: RangeInclusive<u64>) -> Result<u64, Error> {
    let Count(number) = given.value;
    u64::try_from(number).ok().filter(|number| within(*number, &bounds)).ok_or_else(|| {
        given.error(format!("{number} is out of bounds")).hint(format!(
            "accepted: {} to {}",
            bounds.start(),
            bounds.end()
        ))
    })
}

/// As [`bytes`], of a text that no file holds; `key` is its name in the error.
pub(crate) fn read_bytes(key: &str, text: &str, bounds: RangeInclusive<u64>) -> Result<Bytes, Error> {
    bytes(&Given::flag(key, text, Amount::Text(text.to_owned())), bounds)
}

/// As [`duration`], of a text that no file holds.
pub(crate) fn read_duration(key: &str, text: &str, bounds: RangeInclusive<Duration>) -> Result<Duration, Error> {
    duration(&Given::flag(key, text, Amount::Text(text.to_owned())), bounds)
}

/// The largest unit that needs no fraction: `1536M`.
pub(crate) fn show_bytes(Bytes(size): Bytes) -> String {
    let unit = SIZES.iter().find(|(_, factor)| size > 0 && size.is_multiple_of(*factor));
    unit.map_or_else(|| size.to_string(), |(name, factor)| format!("{}{name}", size / factor))
}

pub(crate) fn show_duration(time: Duration) -> String {
    let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let (name, factor) =
        TIMES_MS.iter().find(|(_, factor)| ms > 0 && ms.is_multiple_of(*factor)).unwrap_or(&("s", 1000));
    format!("{}{name}", ms / factor)
}

fn within(number: u64, bounds: &RangeInclusive<u64>) -> bool {
    bounds.contains(&number)
}

fn split(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

fn size_hint(digits: &str, unit: &str) -> String {
    let upper = unit.to_ascii_uppercase();
    match SIZES.iter().find(|(name, _)| upper.starts_with(name)) {
        Some((name, _)) if !digits.is_empty() => {
            format!("write `{digits}{name}`; units are K, M, G and T, capital and binary")
        }
        _ if unit.starts_with('-') => "a size cannot be negative; write such as `512M`".to_owned(),
        _ if unit.starts_with('.') => "write a whole number of a smaller unit, such as `1536M`".to_owned(),
        _ => "write a size as `16K`, `512M` or `2G`; units are K, M, G and T, binary".to_owned(),
    }
}

fn duration_hint(digits: &str, unit: &str) -> String {
    let lower = unit.to_ascii_lowercase();
    if digits.is_empty() {
        return "write a duration as `500ms`, `10s`, `5m`, `1h` or `1d`".to_owned();
    }
    match TIMES_MS.iter().rev().find(|(name, _)| lower.starts_with(name)) {
        Some((name, _)) => format!("write `{digits}{name}`; units are ms, s, m, h and d"),
        None if unit.is_empty() => {
            format!("give it a unit: `{digits}s` is seconds; units are ms, s, m, h and d")
        }
        None if unit.starts_with('.') => "write a whole number of a smaller unit, such as `90m`".to_owned(),
        None => "units are ms, s, m, h and d".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(text: &str) -> Result<u64, String> {
        let given = Given::flag("--memory", text, Amount::Text(text.to_owned()));
        bytes(&given, 0..=u64::MAX).map(|bytes| bytes.0).map_err(|error| error.hint.unwrap_or_default())
    }

    fn time(text: &str) -> Result<u128, String> {
        let given = Given::flag("--timeout", text, Amount::Text(text.to_owned()));
        duration(&given, Duration::ZERO..=LONGEST)
            .map(|time| time.as_millis())
            .map_err(|error| error.hint.unwrap_or_default())
    }

    #[test]
    fn a_size_is_exact_and_binary() {
        let cases = [
            ("0", 0),
            ("4096", 4096),
            ("16K", 16384),
            ("512M", 512 << 20),
            ("1G", 1 << 30),
            ("1GiB", 1 << 30),
            ("1GB", 1 << 30),
            ("2T", 2 << 40),
            ("10B", 10),
            ("18446744073709551615", u64::MAX),
        ];
        for (text, expected) in cases {
            assert_eq!(size(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_size_that_is_not_one_is_refused_with_a_hint() {
        let cases = [
            ("12x", "write a size as"),
            ("", "write a size as"),
            ("M", "write a size as"),
            ("-1", "cannot be negative"),
            ("1.5G", "smaller unit"),
            ("10gb", "write `10G`"),
            ("10g", "write `10G`"),
            ("5iB", "write a size as"),
            ("1GBB", "write `1G`"),
            (" 1G", "write a size as"),
            ("1 G", "write a size as"),
            ("18446744073709551616", "write a size such as"),
            ("16777216T", "write a size such as"),
            ("١٢", "write a size as"),
        ];
        for (text, hint) in cases {
            let found = size(text).expect_err(text);
            assert!(found.contains(hint), "{text}: {found}");
        }
    }

    #[test]
    fn a_duration_needs_a_known_unit() {
        let cases = [
            ("500ms", 500),
            ("10s", 10_000),
            ("5m", 300_000),
            ("1h", 3_600_000),
            ("24h", 86_400_000),
            ("1d", 86_400_000),
            ("0s", 0),
        ];
        for (text, expected) in cases {
            assert_eq!(time(text), Ok(expected), "{text}");
        }
        let refused = [
            ("10", "`10s` is seconds"),
            ("10min", "write `10m`"),
            ("10S", "write `10s`"),
            ("1.5h", "`90m`"),
            ("-1s", "write a duration"),
            ("10y", "units are"),
            ("1001d", "accepted: 0s to 1000d"),
            ("18446744073709551616s", "accepted:"),
        ];
        for (text, hint) in refused {
            let found = time(text).expect_err(text);
            assert!(found.contains(hint), "{text}: {found}");
        }
    }

    #[test]
    fn what_is_shown_reads_back_as_the_same_number() {
        for number in [0, 1, 1023, 1024, 1536 << 20, 1 << 40, u64::MAX] {
            assert_eq!(size(&show_bytes(Bytes(number))), Ok(number));
        }
        for ms in [0, 1, 999, 1000, 90_000, 3_600_000, 86_400_000] {
            assert_eq!(time(&show_duration(Duration::from_millis(ms))), Ok(u128::from(ms)));
        }
    }
}
