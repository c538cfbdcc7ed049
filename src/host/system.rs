//! What the operator's machine has that a cell may show: system directories, `/etc` entries, hidden paths.
//!
//! Looks only at what the plan will need, once, before anything is decided; `plan` then works on these values.

use super::programs::{self, Programs};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Looking for `**/name` below the roots ends here: a plan must not take minutes.
const MAX_WALK: usize = 200_000;

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

/// A look that failed: the walk for a `**` pattern met too many files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooMany {
    pub root: PathBuf,
    pub pattern: String,
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
    pub fn look(question: &Question) -> Result<System, TooMany> {
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
fn hidden(question: &Question) -> Result<Vec<PathBuf>, TooMany> {
    let mut found = Vec::new();
    let roots = || question.roots.iter().map(PathBuf::as_path);
    for pattern in &question.hidden {
        if let Some(name) = pattern.strip_prefix("**/") {
            for root in roots() {
                walk(root, name.trim_end_matches('/'), &mut found)
                    .ok_or_else(|| TooMany { root: root.into(), pattern: pattern.clone() })?;
            }
        } else if pattern.starts_with('/') {
            found.push(PathBuf::from(pattern));
        } else {
            found.extend(roots().map(|root| root.join(pattern)));
        }
    }
    // A link is hidden by hiding what it points to.
    let mut real: Vec<PathBuf> = found.iter().filter_map(|path| path.canonicalize().ok()).collect();
    real.retain(|path| roots().any(|root| path.starts_with(root)));
    real.sort();
    real.dedup();
    Ok(real)
}

fn walk(root: &Path, name: &str, found: &mut Vec<PathBuf>) -> Option<()> {
    let mut left = vec![root.to_path_buf()];
    let mut seen = 0;
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            seen += 1;
            if seen > MAX_WALK {
                return None;
            }
            if super::glob::matches(name, &entry.file_name().to_string_lossy()) {
                found.push(entry.path());
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                left.push(entry.path());
            }
        }
    }
    Some(())
}
