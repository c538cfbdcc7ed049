//! Attempts on files.

use super::{Attempt, told};

pub fn attempt(words: &[&str]) -> Option<Attempt> {
    Some(match words {
        ["read", path] => told(std::fs::read(path)),
        ["write", path] => told(std::fs::File::options().write(true).create(true).truncate(false).open(path)),
        ["list", path] => told(std::fs::read_dir(path)),
        ["stat", path] => told(std::fs::symlink_metadata(path)),
        ["mkdir", path] => told(std::fs::create_dir(path)),
        ["remove", path] => told(std::fs::remove_file(path)),
        ["rename", from, to] => told(std::fs::rename(from, to)),
        ["link", from, to] => told(std::fs::hard_link(from, to)),
        _ => return None,
    })
}
