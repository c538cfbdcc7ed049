//! The entries of one directory in one block of memory, and the small questions asked of the kernel about them.

use super::names;
use super::page::EntryKind;
use nix::dir::Type;
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{FileStat, Mode, SFlag};
use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What one system call takes as a path, with room for one more name.
const PATH_PIECE: usize = 3800;

#[derive(Debug, Default)]
pub struct Listing {
    /// Each name with the NUL that ends it.
    pub names: Vec<u8>,
    pub entries: Vec<Entry>,
}

#[derive(Debug, Clone, Copy)]
pub struct Entry {
    pub start: u32,
    pub length: u16,
    pub kind: EntryKind,
    pub is_wanted: bool,
}

impl Listing {
    pub fn add(&mut self, name: &CStr, kind: EntryKind) {
        let start = self.names.len() as u32;
        let length = name.count_bytes() as u16;
        self.names.extend_from_slice(name.to_bytes_with_nul());
        self.entries.push(Entry { start, length, kind, is_wanted: false });
    }

    pub fn name(&self, entry: &Entry) -> &CStr {
        let bytes = &self.names[entry.start as usize..][..usize::from(entry.length) + 1];
        CStr::from_bytes_with_nul(bytes).expect("a name was stored with the NUL that ends it and no other")
    }

    /// By the bytes of the names, which is what makes the order of results the same everywhere.
    pub fn sort(&mut self) {
        let Listing { names, entries } = self;
        let key = |entry: &Entry| &names[entry.start as usize..][..usize::from(entry.length)];
        entries.sort_unstable_by(|a, b| key(a).cmp(key(b)));
    }

    pub fn bytes(&self) -> usize {
        self.names.len() + self.entries.len() * size_of::<Entry>()
    }
}

impl From<Type> for EntryKind {
    fn from(kind: Type) -> Self {
        match kind {
            Type::File => EntryKind::File,
            Type::Directory => EntryKind::Directory,
            Type::Symlink => EntryKind::Symlink,
            Type::Fifo | Type::CharacterDevice | Type::BlockDevice | Type::Socket => EntryKind::Other,
        }
    }
}

pub fn kind_of(stat: &FileStat) -> EntryKind {
    match SFlag::from_bits_truncate(stat.st_mode & libc::S_IFMT) {
        SFlag::S_IFREG => EntryKind::File,
        SFlag::S_IFDIR => EntryKind::Directory,
        SFlag::S_IFLNK => EntryKind::Symlink,
        _ => EntryKind::Other,
    }
}

/// Opens a path that may be longer than one system call takes, part by part.
pub fn open_in_pieces<'a>(
    base: BorrowedFd<'_>,
    parts: impl Iterator<Item = &'a &'a CStr>,
    flags: OFlag,
) -> Result<OwnedFd, Errno> {
    let on_the_way = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mut reached: Option<OwnedFd> = None;
    let mut piece = Vec::new();
    for part in parts {
        if piece.len() > PATH_PIECE {
            let from = reached.as_ref().map_or(base, AsFd::as_fd);
            reached = Some(openat(from, names::as_path(&piece), on_the_way, Mode::empty())?);
            piece.clear();
        }
        piece = names::join(&piece, part.to_bytes());
    }
    let from = reached.as_ref().map_or(base, AsFd::as_fd);
    openat(from, names::as_path(&piece), flags, Mode::empty())
}
