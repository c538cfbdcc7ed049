//! Files: each operation is done by the worker inside the cell, so a tool and a shell get the same verdict on a path.

mod edit;
mod list;
mod place;
mod read;
mod write;

pub use edit::EditFile;
pub use list::{ListFiles, StatFile};
pub use place::{MakeDirectory, MoveFile, RestoreFile};
pub use read::ReadFiles;
pub use write::WriteFile;

use super::{Effect, Facts, Family, Feature};
use crate::broker::files::Kept;
use crate::mcp::clock::rfc3339;
use crate::worker::ask::Kind;
use std::time::{Duration, UNIX_EPOCH};

/// What all of them have in common.
const FACTS: Facts = Facts {
    name: "",
    family: Family::Files,
    action: "",
    feature: Feature::Files,
    effect: Effect::Reads,
    about: "",
    repl_only: &[],
};

/// A time before 1970 is shown as its first moment.
fn moment(millis: i64) -> String {
    let since = Duration::from_millis(u64::try_from(millis).unwrap_or(0));
    rfc3339(UNIX_EPOCH.checked_add(since).unwrap_or(UNIX_EPOCH))
}

/// As `chmod` takes it: three digits, four with setuid and the like.
fn octal(mode: &str) -> String {
    let digits = mode.trim_start_matches('0');
    format!("{digits:0>3}")
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::File => "file",
        Kind::Dir => "dir",
        Kind::Symlink => "symlink",
        Kind::Fifo => "fifo",
        Kind::Socket => "socket",
        Kind::Block => "block",
        Kind::Char => "char",
        Kind::Unknown => "unknown",
    }
}

/// `backup_id`, and what `backup` says when there should be one and is none.
fn backup(kept: Kept) -> (Option<String>, Option<String>) {
    match kept {
        Kept::Nothing => (None, None),
        Kept::As(id) => (Some(id), None),
        Kept::Not(why) => (None, Some(format!("not kept: {why}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::{moment, octal};

    #[test]
    fn modes_and_times_are_shown_as_people_write_them_whatever_the_worker_says() {
        for (mode, shown) in [("0644", "644"), ("4755", "4755"), ("0000", "000"), ("0007", "007"), ("", "000")] {
            assert_eq!(octal(mode), shown);
        }
        assert_eq!(moment(951_782_399_999), "2000-02-28T23:59:59.999Z");
        for odd in [i64::MIN, -1] {
            assert_eq!(moment(odd), "1970-01-01T00:00:00.000Z");
        }
        assert!(moment(i64::MAX).ends_with('Z'));
    }
}
