//! Ignore files, as `rg` reads them: `.rgignore` before `.ignore` before `.gitignore` before
//! `.git/info/exclude`, nearer directories first, those above the search included.
//!
//! `.gitignore` and `exclude` count only inside a repository and not beyond its root. The files are opened
//! here and not by the `ignore` crate, because an agent can make one of them a FIFO, or endless.
//! Left out: the user's global ignore file (a cell's home has none) and `exclude` of a linked worktree.

use super::globs;
use super::ground::Budget;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{Mode, fstatat};
use std::fs::File;
use std::io::Read;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// In order of weight. The first two count everywhere, the others in a repository.
const FILES: [&str; 4] = [".rgignore", ".ignore", ".gitignore", ".git/info/exclude"];
const EVERYWHERE: usize = 2;
/// A longer ignore file is not applied: compiling it would hold the search up.
const FILE_BYTES: u64 = 64 << 10;
/// Ignore files in force at one time; the compiled form takes many times their size.
const TOTAL_BYTES: usize = 512 << 10;

/// The ignore files of one directory, and those above it.
#[derive(Debug)]
pub struct Rules {
    parent: Option<Arc<Rules>>,
    /// Where a path below this directory begins in an absolute path.
    base: usize,
    files: [Option<Gitignore>; 4],
    is_repository: bool,
    in_repository: bool,
    bytes: usize,
    budget: Arc<Budget>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Silent,
    Ignored,
    Kept,
}

/// Which of the names that matter a directory has.
#[derive(Debug, Clone, Copy, Default)]
pub struct Present {
    pub ignore_file: bool,
    pub repository: bool,
}

impl Present {
    pub fn note(&mut self, name: &[u8]) {
        self.ignore_file |= matches!(name, b".gitignore" | b".ignore" | b".rgignore");
        self.repository |= matches!(name, b".git" | b".jj");
    }
}

impl Rules {
    /// The rules of the directories above `root`, an absolute path.
    pub fn above(root: &Path, budget: &Arc<Budget>, problem: &mut dyn FnMut(String)) -> Option<Arc<Rules>> {
        let mut ancestors: Vec<&Path> = root.ancestors().skip(1).collect();
        ancestors.reverse();
        let mut rules = None;
        for path in ancestors {
            let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
            let Ok(directory) = nix::fcntl::open(path, flags, Mode::empty()) else {
                continue;
            };
            use std::os::fd::AsFd;
            let is_there = |name: &str| fstatat(&directory, name, AtFlags::empty()).is_ok();
            let present = Present { ignore_file: true, repository: is_there(".git") || is_there(".jj") };
            let base = base_of(path.as_os_str().as_encoded_bytes());
            rules = Rules::of(rules, directory.as_fd(), base, present, budget, problem);
        }
        rules
    }

    /// The rules that hold in a directory, given those above it.
    pub fn of(
        parent: Option<Arc<Rules>>,
        directory: BorrowedFd<'_>,
        base: usize,
        present: Present,
        budget: &Arc<Budget>,
        problem: &mut dyn FnMut(String),
    ) -> Option<Arc<Rules>> {
        if !present.ignore_file && !present.repository {
            return parent;
        }
        let mut bytes = 0;
        let mut load = |name: &str| match read(directory, name, budget) {
            Ok(None) => None,
            Ok(Some(text)) => {
                bytes += text.len();
                compile(&text, name, problem)
            }
            Err(rule) => {
                problem(format!("`{name}` {rule}; it is not applied"));
                None
            }
        };
        let files = FILES.map(&mut load);
        let is_repository = present.repository;
        if !is_repository && files.iter().all(Option::is_none) {
            budget.ignore_bytes.fetch_sub(bytes, Ordering::Relaxed);
            return parent;
        }
        let in_repository = is_repository || parent.as_ref().is_some_and(|rules| rules.in_repository);
        let budget = budget.clone();
        Some(Arc::new(Rules { parent, base, files, is_repository, in_repository, bytes, budget }))
    }

    /// What the rules say about an absolute path.
    pub fn verdict(&self, path: &[u8], is_directory: bool) -> Verdict {
        let mut verdicts = [Verdict::Silent; FILES.len()];
        let mut beyond_repository = false;
        let mut at = Some(self);
        while let Some(rules) = at {
            for (number, file) in rules.files.iter().enumerate() {
                let counts = number < EVERYWHERE || (self.in_repository && !beyond_repository);
                if let (Some(file), true, Verdict::Silent) = (file, counts, verdicts[number]) {
                    verdicts[number] = match file.matched(super::names::as_path(&path[rules.base..]), is_directory) {
                        Match::None => Verdict::Silent,
                        Match::Ignore(_) => Verdict::Ignored,
                        Match::Whitelist(_) => Verdict::Kept,
                    };
                }
            }
            beyond_repository |= rules.is_repository;
            at = rules.parent.as_deref();
        }
        verdicts.into_iter().find(|verdict| *verdict != Verdict::Silent).unwrap_or(Verdict::Silent)
    }
}

/// Chains are as long as trees are deep, so they are taken apart in a loop and not by recursion.
impl Drop for Rules {
    fn drop(&mut self) {
        self.budget.ignore_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        let mut parent = self.parent.take();
        while let Some(mut rules) = parent.and_then(Arc::into_inner) {
            parent = rules.parent.take();
        }
    }
}

/// The length of a directory's path with the slash after it.
pub fn base_of(directory: &[u8]) -> usize {
    directory.len() + usize::from(!directory.ends_with(b"/"))
}

/// The text of an ignore file, which is counted as in force from here on; none if there is no such file.
fn read(directory: BorrowedFd<'_>, name: &str, budget: &Budget) -> Result<Option<String>, String> {
    let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let Ok(descriptor) = openat(directory, name, flags, Mode::empty()) else {
        return Ok(None);
    };
    let file = File::from(descriptor);
    if !file.metadata().is_ok_and(|data| data.is_file()) {
        return Err("is not a regular file".into());
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > FILE_BYTES {
        return Err(format!("has more than {FILE_BYTES} bytes"));
    }
    let before = budget.ignore_bytes.fetch_add(bytes.len(), Ordering::Relaxed);
    if before + bytes.len() > TOTAL_BYTES {
        budget.ignore_bytes.fetch_sub(bytes.len(), Ordering::Relaxed);
        return Err(format!("would bring the ignore files in force beyond {TOTAL_BYTES} bytes"));
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

fn compile(text: &str, name: &str, problem: &mut dyn FnMut(String)) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new("");
    for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let added = globs::check(line).and_then(|()| match builder.add_line(None, line) {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("cannot be read: {error}")),
        });
        if let Err(rule) = added {
            problem(format!("line {} of `{name}` {rule}", number + 1));
        }
    }
    match builder.build() {
        Ok(matcher) if !matcher.is_empty() => Some(matcher),
        Ok(_) => None,
        Err(error) => {
            problem(format!("`{name}` cannot be compiled: {error}; it is not applied"));
            None
        }
    }
}
