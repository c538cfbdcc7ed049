//! `fs_list`: a walk in path order (names compared as bytes, a directory before what it holds), symlinks not followed.
//!
//! A cursor is the last path seen, so a page goes on where the one before ended, whatever changed in between. At most
//! one name more than the page needs is held, over all levels: a directory of millions costs time, not memory.

use super::open::{self, QUIET};
use super::stat::octal;
use super::text::price_of;
use crate::sys::Errno;
use crate::worker::ask::{Entry, Kind, List, Listing, Terms};
use crate::worker::failure::{Code, Failure, Result};
use crate::worker::names::Named;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use nix::dir::{Dir, Type};
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, openat};
use nix::sys::stat::{Mode, fstatat};
use std::collections::{BinaryHeap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

const DEFAULT_LIMIT: u32 = 1000;
const MOST: u32 = 10_000;

/// Each level holds a descriptor.
const DEEPEST: u32 = 128;

/// Names looked at in one call: some seconds of `getdents`.
const SCANNED: u64 = 4_000_000;

/// The fields of an entry beside its path, as JSON.
const ENTRY_PRICE: usize = 160;

/// A directory that is being walked.
struct Level {
    dir: Dir,
    relative: PathBuf,
    /// The smallest names that come next, in order.
    names: VecDeque<(OsString, Kind)>,
    /// Names beyond those were left out.
    cut: bool,
    /// Where the page before ended, as names from here down.
    resume: VecDeque<OsString>,
}

struct Walk<'a> {
    path: &'a Named<'a>,
    limit: usize,
    depth: usize,
    room: usize,
    scanned: u64,
    entries: Vec<Entry>,
    /// The last path that was looked at.
    last: PathBuf,
}

pub fn list(terms: &Terms, ask: &List) -> Result<Listing> {
    let path = Named::parse(&ask.path, terms)?;
    let depth = within("depth", ask.depth.unwrap_or(1), DEEPEST)?;
    let limit = within("limit", ask.limit.unwrap_or(DEFAULT_LIMIT), MOST)?;
    let last = ask.cursor.as_deref().map(cursor).transpose()?.unwrap_or_default();
    let room = usize::try_from(terms.reply_bytes).unwrap_or(usize::MAX);
    let resume = last.iter().map(OsStr::to_owned).collect();
    let mut walk = Walk { path: &path, limit, depth, room, scanned: 0, entries: Vec::new(), last };
    let fd = openat(AT_FDCWD, path.path(), OFlag::O_RDONLY | OFlag::O_DIRECTORY | QUIET, Mode::empty());
    let root = fd.and_then(Dir::from_fd).map_err(|errno| not_listed(errno, &path))?;
    let truncated = walk.run(root, resume)?;
    let next_cursor = truncated.then(|| URL_SAFE_NO_PAD.encode(walk.last.as_os_str().as_bytes()));
    Ok(Listing { entries: walk.entries, truncated, next_cursor })
}

fn within(name: &str, value: u32, most: u32) -> Result<usize> {
    if (1..=most).contains(&value) {
        return Ok(value as usize);
    }
    Err(Failure::invalid(format!("`{name}` is {value}; 1 to {most} are accepted")))
}

fn cursor(text: &str) -> Result<PathBuf> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok().filter(|bytes| !bytes.is_empty());
    let bytes = bytes.ok_or_else(|| Failure::invalid("`cursor` is not one that `fs_list` gave as `next_cursor`"))?;
    Ok(OsString::from_vec(bytes).into())
}

fn not_listed(errno: Errno, path: &Named) -> Failure {
    let is_there = fstatat(AT_FDCWD, path.path(), AtFlags::empty()).is_ok();
    if errno == Errno::ENOTDIR && is_there {
        return Failure::invalid(format!(
            "`{path}` is not a directory; `fs_stat` tells what it is, `fs_read` reads a file"
        ));
    }
    Failure::errno(errno, path)
}

impl Walk<'_> {
    /// Whether entries were left for another page.
    fn run(&mut self, root: Dir, resume: VecDeque<OsString>) -> Result<bool> {
        let mut levels = vec![self.level(root, PathBuf::new(), resume)?];
        loop {
            let Some(level) = levels.last_mut() else {
                return Ok(false);
            };
            let Some((name, kind)) = level.names.pop_front() else {
                if level.cut {
                    return Ok(true);
                }
                levels.pop();
                continue;
            };
            let relative = level.relative.join(&name);
            let mut resume = VecDeque::new();
            let known = level.resume.front() == Some(&name);
            if known {
                resume = std::mem::take(&mut level.resume);
                resume.pop_front();
            }
            if !known && self.entries.len() >= self.limit {
                return Ok(true);
            }
            let looked = look(&level.dir, &name, kind);
            let Some(entry) = looked.map(|entry| self.named(entry, &name, &relative)) else {
                continue;
            };
            let is_dir = entry.kind == Kind::Dir;
            if !known && !self.admit(entry) {
                return Ok(true);
            }
            if !known {
                self.last.clone_from(&relative);
            }
            if is_dir && levels.len() < self.depth {
                self.descend(&mut levels, &name, relative, resume)?;
            }
        }
    }

    /// Takes an entry if the reply has room; the first always has.
    fn admit(&mut self, entry: Entry) -> bool {
        let price = price_of(&entry.path) + ENTRY_PRICE;
        if price > self.room && !self.entries.is_empty() {
            return false;
        }
        self.room = self.room.saturating_sub(price);
        self.entries.push(entry);
        true
    }

    fn named(&self, entry: Entry, name: &OsStr, relative: &Path) -> Entry {
        let name_bytes = name.to_str().is_none().then(|| STANDARD.encode(name.as_bytes()));
        Entry { path: self.path.below(relative), name_bytes, ..entry }
    }

    fn descend(
        &mut self,
        levels: &mut Vec<Level>,
        name: &OsStr,
        relative: PathBuf,
        resume: VecDeque<OsString>,
    ) -> Result<()> {
        let Some(parent) = levels.last() else {
            return Ok(());
        };
        let how = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | QUIET;
        match openat(&parent.dir, name, how, Mode::empty()).and_then(Dir::from_fd) {
            Ok(dir) => {
                let level = self.level(dir, relative, resume)?;
                self.trim(levels, level.names.len());
                levels.push(level);
            }
            // Replaced since it was looked at.
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => {}
            Err(errno) => {
                let child = self.path.child(&relative);
                // An entry of the page before has said so there.
                if let Some(entry) = self.entries.last_mut().filter(|entry| entry.path == child.asked()) {
                    entry.error = Some(Failure::errno(errno, &child));
                }
            }
        }
        Ok(())
    }

    /// What is deeper comes first, so the levels above need hold only what is left of the page.
    fn trim(&self, levels: &mut [Level], deeper: usize) {
        let mut allowed = self.capacity().saturating_sub(deeper);
        for level in levels.iter_mut().rev() {
            level.cut |= level.names.len() > allowed;
            level.names.truncate(allowed);
            allowed -= level.names.len();
        }
    }

    /// Names worth holding: the rest of the page, the one that shows there is more, and one already known.
    fn capacity(&self) -> usize {
        self.limit - self.entries.len().min(self.limit) + 2
    }

    fn level(&mut self, mut dir: Dir, relative: PathBuf, resume: VecDeque<OsString>) -> Result<Level> {
        let capacity = self.capacity();
        let mut smallest: BinaryHeap<(OsString, Kind)> = BinaryHeap::new();
        let mut cut = false;
        for entry in dir.iter() {
            let entry = entry.map_err(|errno| Failure::errno(errno, self.path))?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            self.scanned += 1;
            if self.scanned > SCANNED {
                return Err(self.too_many());
            }
            if name == "." || name == ".." || resume.front().is_some_and(|first| name < first) {
                continue;
            }
            smallest.push((name.to_owned(), guess(entry.file_type())));
            if smallest.len() > capacity {
                smallest.pop();
                cut = true;
            }
        }
        let names = smallest.into_sorted_vec().into();
        Ok(Level { dir, relative, names, cut, resume })
    }

    fn too_many(&self) -> Failure {
        let message =
            format!("`{}` holds more than {SCANNED} entries; list a part of it, or `run` a command", self.path);
        Failure::new(Code::LimitExceeded, message)
    }
}

/// `None`: gone since the directory was read.
fn look(dir: impl AsFd, name: &OsStr, guess: Kind) -> Option<Entry> {
    let bare = Entry {
        path: String::new(),
        name_bytes: None,
        kind: guess,
        mode: None,
        size: None,
        mtime_ms: None,
        error: None,
    };
    match fstatat(dir, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(stat) => Some(Entry {
            kind: open::kind(&stat),
            mode: Some(octal(stat.st_mode)),
            size: Some(open::size(&stat)),
            mtime_ms: Some(open::modified(&stat)),
            ..bare
        }),
        Err(Errno::ENOENT) => None,
        Err(_) => Some(bare),
    }
}

/// What the directory itself says, for an entry that may not be looked at.
fn guess(kind: Option<Type>) -> Kind {
    match kind {
        Some(Type::Fifo) => Kind::Fifo,
        Some(Type::CharacterDevice) => Kind::Char,
        Some(Type::Directory) => Kind::Dir,
        Some(Type::BlockDevice) => Kind::Block,
        Some(Type::File) => Kind::File,
        Some(Type::Symlink) => Kind::Symlink,
        Some(Type::Socket) => Kind::Socket,
        None => Kind::Unknown,
    }
}
