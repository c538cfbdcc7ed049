//! A directory being searched: its entries that count, in order, and how to open what is in it.
//!
//! Entries are opened relative to a held descriptor, without following links, so that neither a rename nor
//! a link swapped in changes what a name means, and no tree is too deep for a path. The names of one
//! directory lie in one block of memory.

use super::ground::{Budget, Ground, Start, is_pseudo};
use super::listing::{Listing, kind_of, open_in_pieces};
use super::names;
use super::page::EntryKind;
use super::rules::{self, Present, Rules};
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, openat};
use nix::sys::stat::{Mode, fstat, fstatat};
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Directories of one search held open; deeper ones are reached through the nearest held above them.
const DESCRIPTORS: usize = 64;
/// Names of the open part of the tree, all directories together.
const LISTED_BYTES: usize = 64 << 20;
/// Deeper is a mistake or an attack; a path of that length could not be given to any tool.
const DEPTH_MAX: u32 = 4096;
/// How many entries are read between two looks at whether the search still wants them.
const PATIENCE: usize = 1024;

#[derive(Debug)]
pub struct Directory {
    parent: Option<Arc<Directory>>,
    name: CString,
    depth: u32,
    descriptor: Option<OwnedFd>,
    device: u64,
    rules: Option<Arc<Rules>>,
    listing: Listing,
    /// What of `listing` the budget counts.
    counted: usize,
    budget: Arc<Budget>,
}

/// Why a directory was not searched.
#[derive(Debug)]
pub enum Unlisted {
    Errno(Errno),
    /// A rule of ours, to be told in these words.
    Pseudo,
    TooDeep,
    TooWide,
    Halted,
}

impl From<Errno> for Unlisted {
    fn from(errno: Errno) -> Self {
        Unlisted::Errno(errno)
    }
}

/// What reading a directory needs besides the directory.
pub struct Reading<'a> {
    pub ground: &'a Ground,
    pub is_halted: &'a dyn Fn() -> bool,
    pub problem: &'a mut dyn FnMut(String),
    /// Entries held against a pattern for names.
    pub looked_at: u64,
}

impl Directory {
    /// Stands above where a search begins: its one entry is the directory or file that a request named.
    pub fn stand_in(start: &Start, reading: &mut Reading<'_>) -> Directory {
        let mut directory = Directory::bare(&reading.ground.budget);
        directory.listing.add(&start.path, start.kind);
        if start.kind == EntryKind::File {
            directory.listing.entries[0].is_wanted = reading.ground.wants(start.path.as_bytes());
            reading.looked_at += u64::from(reading.ground.is_names());
        }
        directory
    }

    /// Opens and lists the directory that is entry `index` of this one.
    pub fn enter(self: &Arc<Self>, index: u32, reading: &mut Reading<'_>) -> Result<Directory, Unlisted> {
        if self.depth >= DEPTH_MAX {
            return Err(Unlisted::TooDeep);
        }
        let name = self.entry_name(index);
        let descriptor = self.open(name, OFlag::O_RDONLY | OFlag::O_DIRECTORY | self.no_follow())?;
        let device = fstat(&descriptor)?.st_dev;
        if device != self.device && is_pseudo(&descriptor) {
            return Err(Unlisted::Pseudo);
        }
        let mut directory = Directory::bare(&self.budget);
        directory.device = device;
        if self.is_stand_in() {
            let absolute = names::as_path(&reading.ground.absolute);
            directory.rules = Rules::above(absolute, &self.budget, reading.problem);
        } else {
            directory.parent = Some(self.clone());
            directory.name = name.to_owned();
            directory.depth = self.depth + 1;
            directory.rules = self.rules.clone();
        }
        directory.hold(&descriptor)?;
        directory.list(descriptor, reading)?;
        Ok(directory)
    }

    fn bare(budget: &Arc<Budget>) -> Directory {
        Directory {
            parent: None,
            name: CString::default(),
            depth: 0,
            descriptor: None,
            device: 0,
            rules: None,
            listing: Listing::default(),
            counted: 0,
            budget: budget.clone(),
        }
    }

    pub fn len(&self) -> u32 {
        self.listing.entries.len() as u32
    }

    pub fn kind(&self, index: u32) -> EntryKind {
        self.listing.entries[index as usize].kind
    }

    /// Whether a search for names wants this entry.
    pub fn is_wanted(&self, index: u32) -> bool {
        self.listing.entries[index as usize].is_wanted
    }

    /// Whether this only stands above what a request named.
    pub fn is_stand_in(&self) -> bool {
        self.parent.is_none() && self.descriptor.is_none()
    }

    /// Opens a regular file for reading. Anything else that has taken its name by now is an error, and
    /// opening it does not wait.
    pub fn open_file(&self, index: u32) -> Result<OwnedFd, Errno> {
        let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | self.no_follow();
        let descriptor = self.open(self.entry_name(index), flags)?;
        match kind_of(&fstat(&descriptor)?) {
            EntryKind::File => Ok(descriptor),
            EntryKind::Directory => Err(Errno::EISDIR),
            EntryKind::Symlink | EntryKind::Other => Err(Errno::EINVAL),
        }
    }

    /// What an entry is now, and its size.
    pub fn stat(&self, index: u32) -> Result<(EntryKind, u64), Errno> {
        let descriptor = self.open(self.entry_name(index), OFlag::O_PATH | self.no_follow())?;
        let stat = fstat(descriptor)?;
        Ok((kind_of(&stat), stat.st_size.unsigned_abs()))
    }

    /// The path of an entry, relative to where the search began.
    pub fn path(&self, index: u32) -> Vec<u8> {
        if self.is_stand_in() {
            return Vec::new();
        }
        names::join(&self.relative(), self.entry_name(index).to_bytes())
    }

    /// A link is followed only where the request itself named it.
    fn no_follow(&self) -> OFlag {
        if self.is_stand_in() { OFlag::empty() } else { OFlag::O_NOFOLLOW }
    }

    fn entry_name(&self, index: u32) -> &CStr {
        self.listing.name(&self.listing.entries[index as usize])
    }

    fn relative(&self) -> Vec<u8> {
        let mut parts = Vec::new();
        let mut at = self;
        while let Some(parent) = &at.parent {
            parts.push(at.name.to_bytes());
            at = parent;
        }
        parts.reverse();
        parts.join(&b'/')
    }

    fn open(&self, name: &CStr, flags: OFlag) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlag::O_CLOEXEC;
        if let Some(descriptor) = &self.descriptor {
            return openat(descriptor, name, flags, Mode::empty());
        }
        let mut parts = vec![name];
        let mut at = self;
        let base = loop {
            match (&at.descriptor, &at.parent) {
                (Some(descriptor), _) => break descriptor.as_fd(),
                (None, None) => break AT_FDCWD,
                (None, Some(parent)) => {
                    parts.push(&at.name);
                    at = parent;
                }
            }
        };
        open_in_pieces(base, parts.iter().rev(), flags)
    }

    /// Keeps the descriptor, as long as there are few. The root keeps its own in any case: all else is reached through it.
    fn hold(&mut self, descriptor: &OwnedFd) -> Result<(), Errno> {
        let held = self.budget.descriptors.fetch_add(1, Ordering::Relaxed);
        if held < DESCRIPTORS || self.parent.is_none() {
            self.descriptor = descriptor.try_clone().ok();
        }
        if self.descriptor.is_none() {
            self.budget.descriptors.fetch_sub(1, Ordering::Relaxed);
            if self.parent.is_none() {
                return Err(Errno::EMFILE);
            }
        }
        Ok(())
    }

    fn list(&mut self, descriptor: OwnedFd, reading: &mut Reading<'_>) -> Result<(), Unlisted> {
        let mut stream = Dir::from_fd(descriptor)?;
        let mut present = Present::default();
        let room = LISTED_BYTES.saturating_sub(self.budget.listed_bytes.load(Ordering::Relaxed));
        let mut unknown = Vec::new();
        for entry in stream.iter() {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            present.note(name.to_bytes());
            if entry.file_type().is_none() {
                unknown.push(self.listing.entries.len());
            }
            self.listing.add(name, entry.file_type().map_or(EntryKind::Other, EntryKind::from));
            if self.listing.bytes() > room {
                return Err(Unlisted::TooWide);
            }
            if self.listing.entries.len().is_multiple_of(PATIENCE) && (reading.is_halted)() {
                return Err(Unlisted::Halted);
            }
        }
        for number in unknown {
            let name = self.listing.name(&self.listing.entries[number]);
            if let Ok(stat) = fstatat(&stream, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
                self.listing.entries[number].kind = kind_of(&stat);
            }
        }
        self.select(stream.as_fd(), present, reading)?;
        self.listing.sort();
        self.counted = self.listing.bytes();
        self.budget.listed_bytes.fetch_add(self.counted, Ordering::Relaxed);
        Ok(())
    }

    /// Keeps the entries that count.
    fn select(&mut self, at: BorrowedFd<'_>, present: Present, reading: &mut Reading<'_>) -> Result<(), Unlisted> {
        let ground = reading.ground;
        let mut path = names::join(&ground.absolute, &self.relative());
        let base = rules::base_of(&path);
        self.rules = Rules::of(self.rules.take(), at, base, present, &self.budget, reading.problem);
        path.resize(base, b'/');
        let relative = rules::base_of(&ground.absolute);
        let rules = self.rules.as_deref();
        let needs_path = ground.needs_path(rules);
        let is_names = ground.is_names();
        let Listing { names, entries } = &mut self.listing;
        let mut seen = 0;
        entries.retain_mut(|entry| {
            seen += 1;
            // What is left over after a halt is never looked at.
            if seen % PATIENCE == 0 && (reading.is_halted)() {
                return false;
            }
            let name = &names[entry.start as usize..][..entry.length as usize];
            let is_directory = entry.kind == EntryKind::Directory;
            if !is_directory && !is_names && entry.kind != EntryKind::File {
                return false;
            }
            if !needs_path {
                return !ground.hides(name);
            }
            path.truncate(base);
            path.extend_from_slice(name);
            if ground.leaves_out(&path, relative, rules, is_directory) {
                return false;
            }
            reading.looked_at += u64::from(is_names);
            entry.is_wanted = ground.wants(&path[relative..]);
            is_directory || !is_names || entry.is_wanted
        });
        if (reading.is_halted)() { Err(Unlisted::Halted) } else { Ok(()) }
    }
}

/// Trees can be deep, so a chain of them is taken apart in a loop and not by recursion.
impl Drop for Directory {
    fn drop(&mut self) {
        if self.descriptor.is_some() {
            self.budget.descriptors.fetch_sub(1, Ordering::Relaxed);
        }
        self.budget.listed_bytes.fetch_sub(self.counted, Ordering::Relaxed);
        let mut parent = self.parent.take();
        while let Some(mut directory) = parent.and_then(Arc::into_inner) {
            parent = directory.parent.take();
        }
    }
}
