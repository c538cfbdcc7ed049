//! A directory of its own for each test, and short ways to ask for things in it.

use crate::path::CellPath;
use crate::worker::ask::{
    Ask, Change, Edit, Edited, Entry, List, Listing, Move, Moved, Read, ReadFile, Stat, Terms, Told, Write, Written,
};
use crate::worker::failure::{Code, Failure, Result};
use crate::worker::files::draft::Existing;
use crate::worker::perform;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

pub struct Room {
    pub dir: PathBuf,
    pub terms: Terms,
}

impl Room {
    pub fn new() -> Room {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Room::at(std::env::temp_dir().join(format!("stockade-worker-{}-{number}", std::process::id())))
    }

    pub fn at(dir: PathBuf) -> Room {
        fs::create_dir_all(&dir).expect("a directory for the test");
        let workspace = CellPath::new(&dir);
        let terms = Terms {
            workspace,
            roots: Vec::new(),
            max_file_bytes: 1 << 20,
            reply_bytes: 1 << 20,
            backup_bytes: 1 << 20,
            hidden: Vec::new(),
        };
        Room { dir, terms }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).expect(name);
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect(name)
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).expect("text")
    }

    pub fn names(&self) -> Vec<String> {
        names(&self.dir)
    }

    pub fn read(&self, ask: Read) -> Result<Vec<ReadFile>> {
        match perform(&self.terms, &Ask::Read(ask))? {
            Told::Read(files) => Ok(files),
            other => panic!("an answer to something else: {other:?}"),
        }
    }

    pub fn page(&self, path: &str, ask: Read) -> ReadFile {
        let mut files = self.read(Read { path: Some(path.into()), ..ask }).expect(path);
        files.remove(0)
    }

    pub fn list(&self, path: &str, ask: &List) -> Result<Listing> {
        match perform(&self.terms, &Ask::List(List { path: path.into(), ..ask.clone() }))? {
            Told::List(listing) => Ok(listing),
            other => panic!("an answer to something else: {other:?}"),
        }
    }

    pub fn entries(&self, path: &str, depth: u32) -> Vec<Entry> {
        let ask = List { path: String::new(), depth: Some(depth), limit: None, cursor: None };
        self.list(path, &ask).expect(path).entries
    }

    pub fn stat(&self, path: &str) -> Result<Told> {
        perform(&self.terms, &Ask::Stat(Stat { path: path.into() }))
    }

    pub fn write(&self, path: &str, content: impl Into<Vec<u8>>, ask: Write) -> Result<Written> {
        match perform(&self.terms, &Ask::Write(Write { path: path.into(), content: content.into(), ..ask }))? {
            Told::Write(written) => Ok(written),
            other => panic!("an answer to something else: {other:?}"),
        }
    }

    pub fn edit(&self, path: &str, edits: &[Change]) -> Result<Edited> {
        self.edit_as(Edit { path: path.into(), edits: edits.to_vec(), dry_run: false, if_sha256: None })
    }

    pub fn edit_as(&self, ask: Edit) -> Result<Edited> {
        match perform(&self.terms, &Ask::Edit(ask))? {
            Told::Edit(edited) => Ok(edited),
            other => panic!("an answer to something else: {other:?}"),
        }
    }

    pub fn relocate(&self, from: &str, to: &str, existing: Existing) -> Result<Moved> {
        let overwrite = existing == Existing::Replace;
        match perform(&self.terms, &Ask::Move(Move { from: from.into(), to: to.into(), overwrite }))? {
            Told::Move(moved) => Ok(moved),
            other => panic!("an answer to something else: {other:?}"),
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.dir);
    }
}

pub fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("the directory");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

pub fn code<T: std::fmt::Debug>(result: Result<T>) -> Code {
    refused(result).code
}

pub fn refused<T: std::fmt::Debug>(result: Result<T>) -> Failure {
    result.expect_err("it should have been refused")
}

pub fn text(old: &str, new: &str) -> Change {
    Change { old_text: Some(old.into()), new_text: Some(new.into()), ..Change::default() }
}

pub fn lines(start: u64, end: u64, new: &str) -> Change {
    Change { start_line: Some(start), end_line: Some(end), new_text: Some(new.into()), ..Change::default() }
}

pub fn anchor(anchor: &str, offset: i64, new: &str) -> Change {
    Change { anchor: Some(anchor.into()), offset: Some(offset), new_text: Some(new.into()), ..Change::default() }
}

/// Does something with the file rights of nobody: in a thread of its own, because they belong to one (setfsuid(2)).
pub fn as_nobody<T: Send>(room: &Room, work: impl FnOnce() -> T + Send) -> Option<T> {
    use nix::unistd::{Gid, Uid, chown, geteuid, setfsgid, setfsuid};
    if !geteuid().is_root() {
        println!("skipped: only root can take the rights of another user");
        return None;
    }
    let (uid, gid) = (Uid::from_raw(65534), Gid::from_raw(65534));
    chown(&room.dir, Some(uid), Some(gid)).expect("the directory changes hands");
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            setfsgid(gid);
            setfsuid(uid);
            work()
        });
        Some(thread.join().expect("the thread ends well"))
    })
}

/// Does something in a thread with mounts of its own, a small tmpfs on the room's directory among them.
pub fn on_small_disk<T: Send>(room: &Room, options: &str, work: impl FnOnce() -> T + Send) -> Option<T> {
    use nix::mount::{MsFlags, mount};
    use nix::sched::{CloneFlags, unshare};
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: only root can mount a small disk");
        return None;
    }
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            unshare(CloneFlags::CLONE_NEWNS).expect("a mount namespace");
            mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)
                .expect("private");
            mount(Some("tmpfs"), &room.dir, Some("tmpfs"), MsFlags::empty(), Some(options)).expect("a tmpfs");
            work()
        });
        Some(thread.join().expect("the thread ends well"))
    })
}

/// The variable that tells a test it is the other process of itself.
const ROLE: &str = "STOCKADE_TEST_DIRECTORY";

/// This test once more, as a process that may be killed or limited.
pub fn other_self(test: &str, dir: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(ROLE, dir);
    command
}

/// The directory to work in, in the other process.
pub fn other_selfs_directory() -> Option<PathBuf> {
    std::env::var_os(ROLE).map(PathBuf::from)
}

/// A small generator: the same numbers on every run, and the seed in every message.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end.max(1)
    }

    pub fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        &from[self.below(from.len())]
    }
}
