//! A directory as it is, to be compared with what it is later.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Path → what would tell that it was touched.
pub type Snapshot = BTreeMap<PathBuf, (u64, u32, u32, u32, i64, i64)>;

/// Everything below a directory, itself included.
pub fn tree(top: &Path) -> Snapshot {
    let mut found = Snapshot::new();
    let mut left = vec![top.to_path_buf()];
    while let Some(path) = left.pop() {
        found.insert(path.clone(), look(&path));
        if path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            left.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        }
    }
    found
}

/// Directories themselves and what is in them, not deeper.
pub fn shallow(tops: &[&str]) -> Snapshot {
    let mut found = Snapshot::new();
    for top in tops {
        found.insert(PathBuf::from(top), look(Path::new(top)));
        for entry in fs::read_dir(top).into_iter().flatten().flatten() {
            // Directories that programs write to all the time say nothing by their times.
            let (inode, mode, uid, gid, ..) = look(&entry.path());
            found.insert(entry.path(), (inode, mode, uid, gid, 0, 0));
        }
    }
    found
}

fn look(path: &Path) -> (u64, u32, u32, u32, i64, i64) {
    path.symlink_metadata()
        .map(|m| (m.ino(), m.mode(), m.uid(), m.gid(), m.mtime_nsec(), m.ctime_nsec()))
        .unwrap_or_default()
}
