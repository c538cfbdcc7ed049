//! The files of one agent's log, and the only place that writes them.
//!
//! `audit.jsonl` is appended to; past its size it becomes `audit.<n>.jsonl` and a new one begins, linked to it.
//! All brokers of an agent write one chain: whoever appends holds `audit.lock` (flock(2)) and first looks whether
//! somebody else has appended. `audit.head` is replaced now and then and names the last line, so that lines cut off
//! the end are missed. Nothing that was written is ever taken back, but for a whole file that is too old.

use super::files::{CURRENT, hold, number, open_current, open_to_read, read_head, rotated, set_head_aside, write_head};
use super::line::{self, Link, Marker, Reading};
use serde::Serialize;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A file of this size is put away and the next begun.
pub const ROTATE_AT: u64 = 64 << 20;

/// Files put away; the oldest beyond them are deleted, and the chain says so. With the size above: 1 GiB.
const KEPT_FILES: usize = 15;

#[derive(Debug)]
pub struct Log {
    directory: PathBuf,
    rotate_at: u64,
    file: File,
    /// What the file looked like when this broker last wrote it.
    left: Shape,
    link: Link,
    /// What `audit.head` says.
    head: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    device: u64,
    inode: u64,
    length: u64,
}

impl Shape {
    fn of(file: &File) -> io::Result<Shape> {
        let facts = file.metadata()?;
        Ok(Shape { device: facts.dev(), inode: facts.ino(), length: facts.len() })
    }
}

impl Log {
    pub fn open(directory: &Path, rotate_at: u64) -> io::Result<Log> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let _held = hold(directory)?;
        let file = open_current(directory)?;
        let damage = read_head(directory).err().filter(|error| error.kind() == io::ErrorKind::InvalidData);
        if damage.is_some() {
            set_head_aside(directory)?;
        }
        let head = match read_head(directory)? {
            Some(head) => head,
            // Its absence would otherwise mean that somebody took it away.
            None => write_head(directory, &Link::start())?,
        };
        let mut log = Log {
            directory: directory.to_owned(),
            rotate_at,
            left: Shape { device: 0, inode: 0, length: 0 },
            file,
            link: Link::start(),
            head: head.seq,
        };
        log.catch_up()?;
        if let Some(error) = damage {
            let marker = Marker::Gap { time: line::now(), since: line::now(), why: error.to_string() };
            log.append_held(&[&marker])?;
        }
        Ok(log)
    }

    /// Appends one line for each content, or none at all.
    pub fn append(&mut self, contents: &[&dyn Content]) -> io::Result<()> {
        let _held = hold(&self.directory)?;
        self.append_held(contents)
    }

    fn append_held(&mut self, contents: &[&dyn Content]) -> io::Result<()> {
        self.catch_up()?;
        let (mut lines, mut link) = (Vec::new(), self.link.clone());
        for content in contents {
            content.write(&mut lines, &mut link)?;
        }
        if self.left.length > 0 && self.left.length + lines.len() as u64 > self.rotate_at {
            self.rotate()?;
            (lines, link) = (Vec::new(), self.link.clone());
            for content in contents {
                content.write(&mut lines, &mut link)?;
            }
        }
        self.write(&lines)?;
        self.link = link;
        Ok(())
    }

    /// Names the last line in `audit.head`, after it has reached the disk.
    pub fn seal_head(&mut self) -> io::Result<()> {
        let _held = hold(&self.directory)?;
        self.catch_up()?;
        if self.head == self.link.seq {
            return Ok(());
        }
        self.file.sync_data()?;
        self.head = write_head(&self.directory, &self.link)?.seq;
        Ok(())
    }

    pub fn has_stale_head(&self) -> bool {
        self.head != self.link.seq
    }

    /// Looks at what others have written, and closes a line that its writer did not live to end.
    fn catch_up(&mut self) -> io::Result<()> {
        let same = fs::symlink_metadata(self.directory.join(CURRENT))
            .is_ok_and(|facts| self.left == Shape { device: facts.dev(), inode: facts.ino(), length: facts.len() });
        if same {
            return Ok(());
        }
        self.file = open_current(&self.directory)?;
        self.left = Shape::of(&self.file)?;
        let tail = read_tail(&mut self.file)?;
        let last = match tail.last {
            Some(link) => Some(link),
            None => rotated(&self.directory)?.last().map(|path| last_link(path)).transpose()?.flatten(),
        };
        self.link = last.unwrap_or_else(Link::start);
        // Numbers that were once used are never used again, so that lines cut off the end leave a hole.
        if let Some(head) = read_head(&self.directory)? {
            self.head = head.seq;
            self.link.seq = self.link.seq.max(head.seq);
        }
        if tail.fragment.is_empty() { Ok(()) } else { self.close_off(&tail.fragment) }
    }

    fn close_off(&mut self, fragment: &[u8]) -> io::Result<()> {
        let (mut lines, mut link) = (vec![b'\n'], self.link.clone());
        match line::read(fragment) {
            // Nothing but the newline is missing.
            Reading::Sealed(sealed) => link = sealed.link,
            Reading::Changed(_) | Reading::Foreign => line::write(&mut lines, &mut link, &Marker::torn(fragment))?,
        }
        self.write(&lines)?;
        self.link = link;
        Ok(())
    }

    /// All of it or nothing: a file system that is full takes half a line gladly.
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        let before = self.left.length;
        let written = self.file.write_all(lines);
        if written.is_err() {
            // Held by the lock: these are this broker's own bytes. Should it fail, the rest is a torn line.
            drop(self.file.set_len(before));
        }
        self.left = Shape::of(&self.file)?;
        written
    }

    fn rotate(&mut self) -> io::Result<()> {
        let kept = rotated(&self.directory)?;
        let next = kept.last().and_then(|path| number(path)).unwrap_or(0) + 1;
        self.file.sync_data()?;
        fs::rename(self.directory.join(CURRENT), self.directory.join(format!("audit.{next:06}.jsonl")))?;
        self.file = open_current(&self.directory)?;
        self.left = Shape::of(&self.file)?;
        let beyond = (kept.len() + 1).saturating_sub(KEPT_FILES);
        for path in &kept[..beyond.min(kept.len())] {
            self.remove(path)?;
        }
        Ok(())
    }

    /// The chain vouches for what it lets go of, before it goes.
    fn remove(&mut self, path: &Path) -> io::Result<()> {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let last = last_link(path)?.unwrap_or_else(Link::start);
        let (mut lines, mut link) = (Vec::new(), self.link.clone());
        line::write(&mut lines, &mut link, &Marker::Removed { time: line::now(), file, last })?;
        self.write(&lines)?;
        self.link = link;
        fs::remove_file(path)
    }
}

/// What can become a line.
pub trait Content {
    fn write(&self, lines: &mut Vec<u8>, link: &mut Link) -> io::Result<()>;
}

impl<T: Serialize> Content for T {
    fn write(&self, lines: &mut Vec<u8>, link: &mut Link) -> io::Result<()> {
        line::write(lines, link, self).map_err(io::Error::from)
    }
}

struct Tail {
    last: Option<Link>,
    /// What follows the last newline.
    fragment: Vec<u8>,
}

fn last_link(path: &Path) -> io::Result<Option<Link>> {
    Ok(read_tail(&mut open_to_read(path)?)?.last)
}

/// The last line that is whole and true. Reads backwards in growing steps; lines are short.
fn read_tail(file: &mut File) -> io::Result<Tail> {
    let length = file.metadata()?.len();
    let mut reach = 64 << 10;
    loop {
        let from = length.saturating_sub(reach);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        Read::by_ref(file).take(length - from).read_to_end(&mut bytes)?;
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let last = bytes[..end].split(|byte| *byte == b'\n').rev().find_map(|line| match line::read(line) {
            Reading::Sealed(sealed) => Some(sealed.link),
            Reading::Changed(_) | Reading::Foreign => None,
        });
        if last.is_some() || from == 0 {
            return Ok(Tail { last, fragment: bytes[end..].to_vec() });
        }
        reach *= 8;
    }
}
