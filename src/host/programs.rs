//! Which files on this disk a policy's command lists mean.
//!
//! A name means every file of that name in the system's program directories, followed through links to the
//! real file, with all its other names (hard links). With an explicit list, every other compiled program of the
//! system is found too, so that it can be covered: the dynamic loader runs whatever it can read.

use super::glob::matches;
use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// `PATH` inside a cell.
pub const PROGRAM_DIRECTORIES: &[&str] =
    &["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/games", "/usr/local/games"];

/// Where programs other than those on `PATH` may lie.
const SYSTEM_TREES: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32"];

/// Parts of the system that hold no libraries: with an explicit list they are mounted so that nothing in them can
/// be executed, by the loader neither, and need not be searched.
const DATA_TREES: &[&str] =
    &["/usr/share", "/usr/include", "/usr/src", "/usr/local/share", "/usr/local/include", "/usr/local/src"];

/// What the command lists mean here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Programs {
    /// Real files that may neither be run nor read.
    pub blocked: BTreeSet<PathBuf>,
    /// `None`: everything may run that is not blocked.
    pub listed: Option<Listed>,
}

/// The meaning of an explicit `allowed` list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listed {
    /// Real files.
    pub allowed: BTreeSet<PathBuf>,
    /// Directories of which everything is allowed.
    pub directories: BTreeSet<PathBuf>,
    /// Loaders and interpreters that allowed programs cannot start without.
    pub loaders: BTreeSet<PathBuf>,
    /// Directories of the system in which nothing is executable at all.
    pub data: Vec<PathBuf>,
    /// Directories of the system, with the compiled programs in them that the list does not cover.
    pub others: Vec<Unlisted>,
    /// Allowed scripts whose interpreter the list does not allow: `(script, interpreter)`.
    pub stranded: Vec<(PathBuf, PathBuf)>,
}

/// One system directory with programs outside the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unlisted {
    pub directory: PathBuf,
    /// Compiled programs to cover.
    pub programs: Vec<PathBuf>,
    /// Everything else in the directory, which stays.
    pub rest: Vec<Kept>,
}

/// Something that stays in a directory from which programs are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    File(PathBuf),
    /// Executable but not compiled: a script, which Landlock keeps from running.
    Script(PathBuf),
    Link {
        at: PathBuf,
        to: PathBuf,
        real: PathBuf,
    },
}

pub fn look(blocked: &[String], allowed: Option<&[String]>) -> Programs {
    let mut blocked: BTreeSet<PathBuf> = blocked.iter().flat_map(|pattern| find(pattern)).collect();
    let names: Vec<PathBuf> = blocked.iter().flat_map(|path| other_names(path)).collect();
    blocked.extend(names);
    let listed = allowed.map(|allowed| look_listed(allowed, &blocked));
    Programs { blocked, listed }
}

fn look_listed(allowed: &[String], blocked: &BTreeSet<PathBuf>) -> Listed {
    let mut listed = Listed::default();
    for pattern in allowed {
        match whole_directory(pattern) {
            Some(directory) => drop(listed.directories.insert(directory)),
            None => listed.allowed.extend(find(pattern)),
        }
    }
    listed.allowed.retain(|path| !blocked.contains(path));
    let covers = |path: &Path, listed: &Listed| {
        listed.allowed.contains(path) || listed.directories.iter().any(|known| path.starts_with(known))
    };
    // A pattern may catch a script by chance; who names one means it.
    let named: BTreeSet<PathBuf> =
        allowed.iter().filter(|pattern| !pattern.contains(['*', '?'])).flat_map(|pattern| find(pattern)).collect();
    for path in &listed.allowed.clone() {
        match start(path) {
            Start::Elf { loader } => listed.loaders.extend(loader),
            Start::Script { interpreter } if named.contains(path) && !covers(&interpreter, &listed) => {
                listed.stranded.push((path.clone(), interpreter));
            }
            Start::Script { .. } | Start::Other => {}
        }
    }
    for loader in fs::read_dir("/lib64").into_iter().flatten().flatten() {
        if matches("ld-linux*", &loader.file_name().to_string_lossy()) {
            listed.loaders.extend(loader.path().canonicalize());
        }
    }
    listed.data = DATA_TREES.iter().filter_map(|tree| Path::new(tree).canonicalize().ok()).collect();
    let mut seen: HashSet<PathBuf> = listed.data.iter().cloned().collect();
    for tree in SYSTEM_TREES.iter().filter_map(|tree| Path::new(tree).canonicalize().ok()) {
        unlisted(&tree, &listed.allowed, &listed.directories, &mut seen, &mut listed.others);
    }
    listed
}

/// `/usr/lib/gcc/**` allows a directory and all below it.
fn whole_directory(pattern: &str) -> Option<PathBuf> {
    let directory = pattern.strip_suffix("/**").or_else(|| pattern.strip_suffix("/*"))?;
    Path::new(directory).canonicalize().ok().filter(|path| path.is_dir() && !directory.contains('*'))
}

/// The real files that a name or a path pattern means.
fn find(pattern: &str) -> Vec<PathBuf> {
    let (directories, name) = match pattern.rsplit_once('/') {
        Some((directory, name)) => (vec![directory], name),
        None => (PROGRAM_DIRECTORIES.to_vec(), pattern),
    };
    let mut found = Vec::new();
    for directory in directories.iter().map(Path::new) {
        if name.contains(['*', '?']) {
            let entries = fs::read_dir(directory).into_iter().flatten().flatten();
            found.extend(entries.filter(|e| matches(name, &e.file_name().to_string_lossy())).map(|e| e.path()));
        } else {
            found.push(directory.join(name));
        }
    }
    // Most names are in one directory of eight: asking first is cheaper than resolving all.
    let there = found.iter().filter(|path| fs::metadata(path).is_ok_and(|file| file.is_file()));
    there.filter_map(|path| path.canonicalize().ok()).collect()
}

/// All names of a file in the system: those in the program directories and, where the link count says that there
/// are more, wherever they are.
fn other_names(path: &Path) -> Vec<PathBuf> {
    let Ok(file) = fs::metadata(path) else { return Vec::new() };
    if file.nlink() < 2 {
        return Vec::new();
    }
    let same = |entry: &fs::DirEntry| {
        entry.metadata().is_ok_and(|other| other.ino() == file.ino() && other.dev() == file.dev())
    };
    let directories = PROGRAM_DIRECTORIES.iter().map(Path::new).chain(path.parent());
    let entries = directories.filter_map(|directory| fs::read_dir(directory).ok()).flatten().flatten();
    let mut names: BTreeSet<PathBuf> =
        entries.filter(same).filter_map(|entry| entry.path().canonicalize().ok()).collect();
    let trees: BTreeSet<PathBuf> = SYSTEM_TREES.iter().filter_map(|tree| Path::new(tree).canonicalize().ok()).collect();
    let mut pending: Vec<PathBuf> = trees.into_iter().collect();
    while (names.len() as u64) < file.nlink() {
        let Some(directory) = pending.pop() else { break };
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => pending.push(entry.path()),
                Ok(kind) if kind.is_file() && same(&entry) => drop(names.insert(entry.path())),
                _ => {}
            }
        }
    }
    names.into_iter().collect()
}

fn unlisted(
    directory: &Path,
    allowed: &BTreeSet<PathBuf>,
    directories: &BTreeSet<PathBuf>,
    seen: &mut HashSet<PathBuf>,
    others: &mut Vec<Unlisted>,
) {
    if directories.contains(directory) || !seen.insert(directory.into()) {
        return;
    }
    let (mut programs, mut rest, mut below) = (Vec::new(), Vec::new(), Vec::new());
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            below.push(path.clone());
        }
        if kind.is_symlink() {
            let (to, real) = (fs::read_link(&path).unwrap_or_default(), path.canonicalize().unwrap_or_default());
            rest.push(Kept::Link { at: path, to, real });
            continue;
        }
        match if kind.is_file() && !allowed.contains(&path) { nature(&entry) } else { Nature::Data } {
            Nature::Program => programs.push(path),
            Nature::Script => rest.push(Kept::Script(path)),
            Nature::Data => rest.push(Kept::File(path)),
        }
    }
    if !programs.is_empty() {
        others.push(Unlisted { directory: directory.into(), programs, rest });
    }
    for directory in below {
        unlisted(&directory, allowed, directories, seen, others);
    }
}

enum Nature {
    /// Compiled, executable, and not a library: what the dynamic loader could be asked to run.
    Program,
    Script,
    Data,
}

fn nature(entry: &fs::DirEntry) -> Nature {
    let name = entry.file_name();
    let library = name.to_string_lossy().split('.').any(|part| part == "so");
    if library || !entry.metadata().is_ok_and(|file| file.permissions().mode() & 0o111 != 0) {
        return Nature::Data;
    }
    match start(&entry.path()) {
        Start::Elf { .. } => Nature::Program,
        Start::Script { .. } | Start::Other => Nature::Script,
    }
}

/// How the kernel would start a file.
enum Start {
    Elf { loader: Option<PathBuf> },
    Script { interpreter: PathBuf },
    Other,
}

fn start(path: &Path) -> Start {
    let mut head = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(1024).read_to_end(&mut head));
    if read.is_err() {
        return Start::Other;
    }
    if head.starts_with(b"\x7fELF") {
        return Start::Elf { loader: loader(&head) };
    }
    let Some(line) = head.strip_prefix(b"#!").and_then(|rest| rest.split(|byte| *byte == b'\n').next()) else {
        return Start::Other;
    };
    let line = String::from_utf8_lossy(line);
    let interpreter = line.split_whitespace().next().unwrap_or_default();
    Start::Script { interpreter: Path::new(interpreter).canonicalize().unwrap_or_else(|_| interpreter.into()) }
}

/// The PT_INTERP string: a path that ends in a NUL somewhere in the first KiB of every ordinary program.
fn loader(head: &[u8]) -> Option<PathBuf> {
    let at = head.windows(4).position(|window| window == b"/lib")?;
    let text = head[at..].split(|byte| *byte == 0).next()?;
    Path::new(std::str::from_utf8(text).ok()?).canonicalize().ok()
}
