//! What the operator's machine has that a cell may show: system directories, `/etc` entries, hidden paths.
//!
//! Looks only at what the plan will need, once, before anything is decided; `plan` then works on these values.

use super::programs::{self, Programs};
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Looking for `**/name` below the roots ends here: a plan must not take minutes.
const MAX_WALK: usize = 200_000;

/// Each is a mount in every process.
const MAX_HIDDEN: usize = 1000;

/// A look at the system, for one policy.
#[derive(Debug, Clone)]
pub struct System {
    /// `/bin`, `/lib` and the like: links into `/usr` or directories of their own.
    pub top: Vec<Top>,
    pub etc: Vec<Etc>,
    /// Entries of `/proc` that are to be covered.
    pub proc: Vec<PathBuf>,
    /// Entries of `/proc` that only root can read.
    pub proc_of_root: Vec<PathBuf>,
    /// What the policy's `hidden` means on this disk, resolved.
    pub hidden: Vec<PathBuf>,
    /// `(uid, gid)` of each read-write root.
    pub owners: Vec<(u32, u32)>,
    pub programs: Programs,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Top {
    Link { at: PathBuf, to: PathBuf },
    Directory(PathBuf),
}

/// One entry of `/etc`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Etc {
    Copy(PathBuf),
    Link { at: PathBuf, to: PathBuf },
    Show(PathBuf),
}

/// World-readable in the kernel's `/proc`, and nobody's business in a cell.
const PROC_MASKS: &[&str] = &[
    "acpi",
    "asound",
    "config.gz",
    "interrupts",
    "iomem",
    "ioports",
    "kallsyms",
    "key-users",
    "keys",
    "latency_stats",
    "sched_debug",
    "scsi",
    "timer_stats",
];

/// Readable by root only, which a cell is just where the policy says so.
const ROOT_PROC_MASKS: &[&str] = &[
    "kcore",
    "kmsg",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "mtrr",
    "slabinfo",
    "sysrq-trigger",
    "timer_list",
    "vmallocinfo",
];

/// A small file of `/etc` is copied: a mount for each would be paid for at every start.
const MAX_COPY: u64 = 256 << 10;

/// Entries of `/etc` that programs need and that hold no secret. Files are copied, directories shown.
const ETC: &[&str] = &[
    "alternatives",
    "bash.bashrc",
    "crypto-policies",
    "debian_version",
    "inputrc",
    "java-11-openjdk",
    "java-17-openjdk",
    "java-21-openjdk",
    "ld.so.cache",
    "localtime",
    "lsb-release",
    "mime.types",
    "os-release",
    "pki",
    "profile",
    "protocols",
    "services",
    "shells",
    "ssl",
    "timezone",
];

/// A look that failed: somewhere in a root it cannot be told whether something is to be hidden.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsearchable {
    pub root: PathBuf,
    pub pattern: String,
    pub why: String,
}

/// What a policy needs to know about this machine's disk.
#[derive(Debug, Clone, Default)]
pub struct Question {
    pub roots: Vec<PathBuf>,
    pub writable_roots: Vec<PathBuf>,
    /// As written in the policy.
    pub hidden: Vec<String>,
    /// Program patterns of rules that block a program whatever its arguments.
    pub blocked: Vec<String>,
    /// Program patterns of an explicit list; `None` for `*`.
    pub allowed: Option<Vec<String>>,
}

impl System {
    pub fn look(question: &Question) -> Result<System, Unsearchable> {
        let owner = |root: &PathBuf| fs::metadata(root).map(|found| (found.uid(), found.gid())).unwrap_or((0, 0));
        Ok(System {
            top: ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"].iter().filter_map(|at| top(at)).collect(),
            etc: existing("/etc", ETC).into_iter().map(etc).collect(),
            proc: existing("/proc", PROC_MASKS),
            proc_of_root: existing("/proc", ROOT_PROC_MASKS),
            hidden: hidden(question)?,
            owners: question.writable_roots.iter().map(owner).collect(),
            programs: programs::look(&question.blocked, question.allowed.as_deref()),
        })
    }
}

fn top(at: &str) -> Option<Top> {
    let path = PathBuf::from(at);
    let found = fs::symlink_metadata(&path).ok()?;
    if found.is_symlink() {
        return Some(Top::Link { to: fs::read_link(&path).ok()?, at: path });
    }
    found.is_dir().then_some(Top::Directory(path))
}

fn etc(at: PathBuf) -> Etc {
    // A link into the system's own directories, which are there inside too.
    if let Ok(to) = fs::read_link(&at)
        && at.canonicalize().is_ok_and(|real| real.starts_with("/usr"))
    {
        return Etc::Link { at, to };
    }
    let small = fs::metadata(&at).is_ok_and(|found| found.is_file() && found.len() <= MAX_COPY);
    if small { Etc::Copy(at) } else { Etc::Show(at) }
}

fn existing(parent: &str, names: &[&str]) -> Vec<PathBuf> {
    let all = names.iter().map(|name| Path::new(parent).join(name));
    all.filter(|path| path.symlink_metadata().is_ok()).collect()
}

/// Existing files only: a name that is not there yet cannot be covered without leaving a file behind in the root.
/// What cannot be looked at is a refusal: an agent could otherwise put a secret where the search does not reach.
fn hidden(question: &Question) -> Result<Vec<PathBuf>, Unsearchable> {
    let mut found = BTreeSet::new();
    let roots = || question.roots.iter().map(PathBuf::as_path);
    for pattern in &question.hidden {
        if let Some(name) = pattern.strip_prefix("**/") {
            for root in roots() {
                walk(root, name.trim_end_matches('/'), &mut found).map_err(|why| Unsearchable {
                    root: root.into(),
                    pattern: pattern.clone(),
                    why,
                })?;
            }
            continue;
        }
        // An absolute entry replaces the root it is joined to.
        for (root, path) in roots().map(|root| (root, root.join(pattern))) {
            match path.canonicalize() {
                // A link is hidden by hiding what it points to, as long as that is below a root.
                Ok(real) => {
                    if roots().any(|root| real.starts_with(root) && real != root) {
                        found.insert(real);
                    }
                }
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
                Err(error) => {
                    let why = format!("`{}`: {error}", path.display());
                    return Err(Unsearchable { root: root.into(), pattern: pattern.clone(), why });
                }
            }
        }
    }
    Ok(found.into_iter().collect())
}

/// Every entry of the name, links left out: what a link points to has a name of its own.
fn walk(root: &Path, name: &str, found: &mut BTreeSet<PathBuf>) -> Result<(), String> {
    let mut left = vec![root.to_path_buf()];
    let mut seen = 0;
    while let Some(directory) = left.pop() {
        let unreadable = |error: std::io::Error| format!("`{}`: {error}", directory.display());
        for entry in fs::read_dir(&directory).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let kind = entry.file_type().map_err(unreadable)?;
            seen += 1;
            if seen > MAX_WALK || found.len() > MAX_HIDDEN {
                return Err(format!("more than {MAX_WALK} files, or {MAX_HIDDEN} to hide"));
            }
            if kind.is_symlink() {
                continue;
            }
            if super::glob::matches(name, &entry.file_name().to_string_lossy()) {
                found.insert(entry.path());
            } else if kind.is_dir() {
                left.push(entry.path());
            }
        }
    }
    Ok(())
}
