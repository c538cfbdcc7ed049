//! What a search covers: where it begins, which entries count, and what it may hold at one time.

use super::failure::{Code, Failure};
use super::globs;
use super::listing::kind_of;
use super::names::{self, Shown};
use super::page::EntryKind;
use super::pattern::Pattern;
use super::request::{Kind, Request};
use super::rules::{Rules, Verdict};
use crate::worker::names::spell;
use ignore::overrides::Override;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::{Mode, fstat};
use nix::sys::statfs::{FsType, PROC_SUPER_MAGIC, SYSFS_MAGIC, fstatfs};
use std::ffi::CString;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// What the open part of a tree takes; the bounds stand where it grows.
#[derive(Debug, Default)]
pub struct Budget {
    pub descriptors: AtomicUsize,
    pub listed_bytes: AtomicUsize,
    pub ignore_bytes: AtomicUsize,
}

#[derive(Debug)]
pub struct Ground {
    overrides: Override,
    include_hidden: bool,
    /// For a search of names, what they are held against.
    names: Option<Pattern>,
    /// The absolute path the search begins at, without links; ignore files speak about it.
    pub absolute: Vec<u8>,
    /// What stands before each path in a result.
    shown: Vec<u8>,
    pub budget: Arc<Budget>,
}

/// Where a search begins.
#[derive(Debug)]
pub struct Start {
    pub path: CString,
    /// A directory or a file.
    pub kind: EntryKind,
}

impl Ground {
    pub fn survey(request: &Request, pattern: &Pattern) -> Result<(Ground, Start), Failure> {
        let overrides = globs::compile(&request.globs)?;
        let target = request.target();
        let shown = spell(&target);
        let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let descriptor = open(&target, flags, Mode::empty()).map_err(|errno| Failure::opening(&shown, errno))?;
        let stat = fstat(&descriptor).map_err(|errno| Failure::opening(&shown, errno))?;
        if is_pseudo(&descriptor) {
            let message = format!("`{shown}` holds what the kernel tells, not files; name a directory of files");
            return Err(Failure::invalid(message));
        }
        let kind = kind_of(&stat);
        if !matches!(kind, EntryKind::Directory | EntryKind::File) {
            let message = format!("`{shown}` is neither a directory nor a regular file; only these are searched");
            return Err(Failure::invalid(message));
        }
        let start = Start { path: c_string(target.as_os_str().as_bytes())?, kind };
        let absolute = std::fs::canonicalize(&target)
            .map_err(|error| Failure::new(Code::IoError, format!("`{shown}` cannot be resolved: {error}")))?;
        let ground = Ground {
            overrides,
            include_hidden: request.include_hidden,
            names: (request.kind == Kind::Files).then(|| pattern.clone()),
            absolute: absolute.into_os_string().into_encoded_bytes(),
            shown: request.shown_root().into_os_string().into_encoded_bytes(),
            budget: Arc::default(),
        };
        Ok((ground, start))
    }

    /// A path, relative to where the search began, as a client sees it. Empty stands for the beginning itself.
    pub fn show(&self, relative: &[u8]) -> Shown {
        match names::join(&self.shown, relative) {
            path if path.is_empty() => Shown { text: ".".into() },
            path => Shown::new(&path, || names::join(&self.absolute, relative)),
        }
    }

    /// Whether names are what is searched for.
    pub fn is_names(&self) -> bool {
        self.names.is_some()
    }

    /// Whether deciding about an entry takes its whole path; most often its name is enough.
    pub fn needs_path(&self, rules: Option<&Rules>) -> bool {
        rules.is_some() || self.names.is_some() || !self.overrides.is_empty()
    }

    /// Whether an entry is hidden from the search; `path` is absolute, `relative` where the search's part begins.
    pub fn leaves_out(&self, path: &[u8], relative: usize, rules: Option<&Rules>, is_directory: bool) -> bool {
        let asked = self.overrides.matched(names::as_path(&path[relative..]), is_directory);
        if !asked.is_none() {
            return asked.is_ignore();
        }
        match rules.map_or(Verdict::Silent, |rules| rules.verdict(path, is_directory)) {
            Verdict::Ignored => true,
            Verdict::Kept => false,
            Verdict::Silent => {
                let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
                self.hides(name)
            }
        }
    }

    /// Whether a name alone keeps an entry out.
    pub fn hides(&self, name: &[u8]) -> bool {
        !self.include_hidden && name.starts_with(b".")
    }

    /// Whether a search for names wants this path.
    pub fn wants(&self, relative: &[u8]) -> bool {
        self.names.as_ref().is_some_and(|pattern| pattern.matches_name(relative))
    }
}

/// File systems whose files have no end, block, or change by being read.
pub fn is_pseudo(descriptor: &impl AsFd) -> bool {
    let kind = fstatfs(descriptor).map_or(FsType(0), |data| data.filesystem_type());
    kind == PROC_SUPER_MAGIC || kind == SYSFS_MAGIC
}

fn c_string(path: &[u8]) -> Result<CString, Failure> {
    CString::new(path).map_err(|_| Failure::invalid("`workspace` holds a NUL byte, which no path can"))
}
