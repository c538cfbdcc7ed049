//! Building a cell's tree from the plan's steps, by descriptor and before the old root is let go.
//!
//! Runs once per cell, in the process that owns the cell's new mount namespace. Every target is
//! resolved without following links and every root was opened literally, so that a rename or a
//! planted link makes the cell fail, never point elsewhere.

use super::fault::{At, Result};
use super::proc::fresh_proc;
use crate::path::{CellPath, HostPath};
use crate::plan::cell::{Absent, CellPlan, Executable, MaskHolds, Origin, Step, Writable};
use crate::sys::mount::{self, Depth, Resolve};
use crate::sys::{Errno, process};
use crate::wire::Stage;
use nix::fcntl::{AT_FDCWD, OFlag, openat};
use nix::sys::stat::{Mode, SFlag, fstat, mkdirat};
use nix::unistd::{UnlinkatFlags, symlinkat, unlinkat};
use std::collections::HashMap;
use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

/// Device and inode of a root directory.
pub type RootId = (u64, u64);

/// Roots that the launcher had to open itself, because only real root may map their ids.
pub type Detached = HashMap<HostPath, OwnedFd>;

/// Builds the tree, makes it the root and forgets the old one. Returns what tells the new root from any other.
pub fn enter_new_root(plan: &CellPlan, detached: &Detached) -> Result<RootId> {
    mount::make_all_private().at(Stage::NewRoot, "/")?;
    let here = mount::open_handle(AT_FDCWD, c"/", Resolve::NoSymlinks).at(Stage::NewRoot, "/")?;
    let (bytes, inodes) = (plan.scratch.bytes.to_string(), plan.scratch.inodes.max(1).to_string());
    let scratch = tmpfs(&bytes, &inodes, "755").at(Stage::NewRoot, "scratch tmpfs")?;
    let root = tmpfs("4m", "4096", "755").at(Stage::NewRoot, "tmpfs")?;
    // Where the old root's `/proc` is, so that one umount, which waits for RCU, takes both away; its directories stay
    // where they are bound.
    let aside = mount::open_handle(AT_FDCWD, c"/proc", Resolve::NoSymlinks).at(Stage::NewRoot, "/proc")?;
    mount::move_mount(scratch.as_fd(), aside.as_fd()).at(Stage::NewRoot, "/proc")?;
    mount::move_mount(root.as_fd(), here.as_fd()).at(Stage::NewRoot, "/")?;
    let builder = Builder { root: root.as_fd(), scratch: scratch.as_fd(), detached };
    builder.open_workshop()?;
    for step in &plan.steps {
        builder.carry_out(step)?;
    }
    for step in &plan.steps {
        if let Step::Mask { at, holds: MaskHolds::Grants | MaskHolds::Rebuilt, .. } = step {
            builder.seal_veil(at)?;
        }
    }
    nix::unistd::fchdir(&root).at(Stage::Pivot, "/")?;
    mount::pivot_root_here().at(Stage::Pivot, "/")?;
    mount::detach(c".").at(Stage::Pivot, "/")?;
    process::chdir(c"/").at(Stage::Pivot, "/")?;
    let found = fstat(&root).at(Stage::Pivot, "/")?;
    Ok((found.st_dev, found.st_ino))
}

/// A detached copy of the tree at a root, with its flags set. Also used by the launcher when it is root.
pub fn detach_root(from: &HostPath, origin: Origin) -> std::result::Result<OwnedFd, Errno> {
    let resolve = if origin == Origin::Root { Resolve::NoSymlinks } else { Resolve::Follow };
    let source = mount::open_handle(AT_FDCWD, &from.to_c(), resolve)?;
    mount::open_tree(source.as_fd(), Depth::Recursive)
}

/// The flags a bind gets: set-user-id and devices never work, except that a device node is a device.
pub fn attributes(origin: Origin, writable: Writable, executable: Executable) -> u64 {
    let mut flags = mount::ATTR_NOSUID;
    if origin != Origin::Device {
        flags |= mount::ATTR_NODEV;
    }
    if writable == Writable::No {
        flags |= mount::ATTR_RDONLY;
    }
    if executable == Executable::No {
        flags |= mount::ATTR_NOEXEC;
    }
    flags
}

struct Builder<'a> {
    root: BorrowedFd<'a>,
    scratch: BorrowedFd<'a>,
    detached: &'a Detached,
}

impl Builder<'_> {
    fn carry_out(&self, step: &Step) -> Result<()> {
        match step {
            Step::Directory { at, mode } => self.directory(at, *mode).map(drop),
            Step::Link { at, to } => self.link(at, to),
            Step::Placeholders { within, names } => self.placeholders(within, names),
            Step::File { at, text } => self.file(at, text.as_bytes()),
            Step::Copy { from, at } => self.file(at, &std::fs::read(from.as_path()).at(Stage::Source, from)?),
            Step::Bind { from, at, origin, writable, executable } => {
                self.bind(from, at, *origin, attributes(*origin, *writable, *executable))
            }
            Step::Scratch { at, name, mode, executable } => self.scratch(at, name, *mode, *executable),
            Step::Terminals { at } => self.terminals(at),
            Step::EmptyProc { at } => {
                let proc = fresh_proc().at(Stage::MountProc, at)?;
                self.attach(proc.as_fd(), &self.directory(at, 0o555)?, at)
            }
            Step::Mask { at, holds: MaskHolds::Nothing, absent } => self.mask(at, *absent),
            Step::Mask { at, holds: MaskHolds::Grants, .. } => self.veil(at, "111"),
            Step::Mask { at, holds: MaskHolds::Rebuilt, .. } => self.veil(at, "755"),
            Step::SealSkeleton => self.seal_skeleton(),
        }
    }

    /// The two things that masks are copies of: a file and a directory nobody may open.
    fn open_workshop(&self) -> Result<()> {
        self.directory(&CellPath::new(".masks"), 0o755)?;
        self.directory(&CellPath::new(".masks/directory"), 0)?;
        let file = relative(&CellPath::new(".masks/file"));
        openat(self.root, file.as_c_str(), OFlag::O_CREAT | OFlag::O_CLOEXEC, Mode::empty())
            .map(drop)
            .at(Stage::MountPoint, "mask")
    }

    /// Makes a directory and all above it; one that is there is left as it is. Returns a handle to it.
    ///
    /// Never through a link, so that nothing is made anywhere else.
    fn directory(&self, at: &CellPath, mode: u32) -> Result<OwnedFd> {
        match self.handle(at) {
            Err(fault) if fault.errno == libc::ENOENT => {}
            found => return found,
        }
        let (parent, name) = self.place(at)?;
        mkdirat(&parent, name.as_c_str(), Mode::from_bits_truncate(mode)).at(Stage::MountPoint, at)?;
        mount::open_handle(parent.as_fd(), &name, Resolve::NoSymlinks).at(Stage::MountPoint, at)
    }

    fn handle(&self, at: &CellPath) -> Result<OwnedFd> {
        mount::open_handle(self.root, &relative(at), Resolve::InRootNoSymlinks).at(Stage::MountPoint, at)
    }

    /// The directory something is to be made in, and its name there.
    fn place(&self, at: &CellPath) -> Result<(OwnedFd, CString)> {
        let parent = at.as_path().parent().unwrap_or(Path::new("/"));
        let name = names(at).last().unwrap_or_default();
        Ok((self.directory(&CellPath::new(parent), 0o755)?, name))
    }

    fn link(&self, at: &CellPath, to: &str) -> Result<()> {
        let (parent, name) = self.place(at)?;
        symlinkat(to, &parent, name.as_c_str()).at(Stage::MountPoint, at)
    }

    fn placeholders(&self, within: &CellPath, names: &[String]) -> Result<()> {
        let directory = self.handle(within)?;
        for name in names {
            let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
            openat(&directory, name.as_str(), flags, Mode::empty()).at(Stage::MountPoint, name)?;
        }
        Ok(())
    }

    fn file(&self, at: &CellPath, bytes: &[u8]) -> Result<()> {
        let (parent, name) = self.place(at)?;
        let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
        let file =
            openat(&parent, name.as_c_str(), flags, Mode::from_bits_truncate(0o644)).at(Stage::MountPoint, at)?;
        std::io::Write::write_all(&mut std::fs::File::from(file), bytes).at(Stage::MountPoint, at)
    }

    fn bind(&self, from: &HostPath, at: &CellPath, origin: Origin, attributes: u64) -> Result<()> {
        let made;
        let source = if let Some(source) = self.detached.get(from) {
            source
        } else {
            made = match detach_root(from, origin) {
                Err(Errno::ENOENT) if origin == Origin::System => return Ok(()),
                made => made.at(Stage::Source, from)?,
            };
            mount::set_attributes(made.as_fd(), attributes, 0, Depth::Recursive).at(Stage::Source, from)?;
            &made
        };
        let target = self.mount_point(source, at)?;
        self.attach(source.as_fd(), &target, at)
    }

    /// A place of the same kind (file or directory) as what is to be mounted there.
    fn mount_point(&self, source: &OwnedFd, at: &CellPath) -> Result<OwnedFd> {
        let kind = fstat(source).at(Stage::MountPoint, at)?.st_mode & SFlag::S_IFMT.bits();
        if kind == SFlag::S_IFDIR.bits() {
            return self.directory(at, 0o755);
        }
        match self.handle(at) {
            Err(fault) if fault.errno == libc::ENOENT => {}
            found => return found,
        }
        let (parent, name) = self.place(at)?;
        let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
        openat(&parent, name.as_c_str(), flags, Mode::from_bits_truncate(0o444)).at(Stage::MountPoint, at)?;
        self.handle(at)
    }

    fn attach(&self, mount: BorrowedFd<'_>, target: &OwnedFd, at: &CellPath) -> Result<()> {
        mount::move_mount(mount, target.as_fd()).at(Stage::Attach, at)
    }

    fn scratch(&self, at: &CellPath, name: &str, mode: u32, executable: Executable) -> Result<()> {
        let name = CellPath::new(name).to_c();
        mkdirat(self.scratch, name.as_c_str(), Mode::from_bits_truncate(mode)).at(Stage::MountPoint, at)?;
        let made = openat(self.scratch, name.as_c_str(), OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())
            .at(Stage::MountPoint, at)?;
        // mkdir honours the umask; the mode asked for is meant.
        nix::sys::stat::fchmod(&made, Mode::from_bits_truncate(mode)).at(Stage::MountPoint, at)?;
        let source = mount::open_tree(made.as_fd(), Depth::Single).at(Stage::Source, at)?;
        let flags = attributes(Origin::Root, Writable::Yes, executable);
        mount::set_attributes(source.as_fd(), flags, 0, Depth::Single).at(Stage::Source, at)?;
        let target = self.directory(at, 0o755)?;
        self.attach(source.as_fd(), &target, at)
    }

    fn terminals(&self, at: &CellPath) -> Result<()> {
        let make = || {
            let fs = mount::fsopen(c"devpts")?;
            mount::fsconfig_flag(fs.as_fd(), c"newinstance")?;
            mount::fsconfig_string(fs.as_fd(), c"ptmxmode", c"0666")?;
            mount::fsconfig_string(fs.as_fd(), c"mode", c"0620")?;
            mount::fsconfig_create(fs.as_fd())?;
            mount::fsmount(fs.as_fd(), mount::ATTR_NOSUID | mount::ATTR_NOEXEC)
        };
        let devpts = make().at(Stage::Source, at)?;
        let target = self.directory(at, 0o755)?;
        self.attach(devpts.as_fd(), &target, at)
    }

    fn mask(&self, at: &CellPath, absent: Absent) -> Result<()> {
        let target = match self.handle(at) {
            Err(fault) if fault.errno == libc::ENOENT && absent == Absent::Skipped => return Ok(()),
            target => target?,
        };
        let found = fstat(&target).at(Stage::MountPoint, at)?;
        let kind = found.st_mode & SFlag::S_IFMT.bits();
        let source = if kind == SFlag::S_IFDIR.bits() { ".masks/directory" } else { ".masks/file" };
        let source = self.handle(&CellPath::new(source))?;
        let mask = fstat(&source).at(Stage::MountPoint, at)?;
        if (found.st_dev, found.st_ino) == (mask.st_dev, mask.st_ino) {
            // Two rules cover it. A mask over a mask would hold the mask's own name fast.
            return Ok(());
        }
        let source = mount::open_tree(source.as_fd(), Depth::Single).at(Stage::Source, at)?;
        let flags = attributes(Origin::System, Writable::No, Executable::No);
        mount::set_attributes(source.as_fd(), flags, 0, Depth::Single).at(Stage::Source, at)?;
        self.attach(source.as_fd(), &target, at)
    }

    /// A masked directory that something is put back into.
    fn veil(&self, at: &CellPath, mode: &str) -> Result<()> {
        let target = self.handle(at)?;
        let veil = tmpfs("1m", "8192", mode).at(Stage::Source, at)?;
        self.attach(veil.as_fd(), &target, at)
    }

    /// Once everything is put back, nothing can be added: neither a file nor a program.
    fn seal_veil(&self, at: &CellPath) -> Result<()> {
        let flags = attributes(Origin::System, Writable::No, Executable::No);
        mount::set_attributes(self.handle(at)?.as_fd(), flags, 0, Depth::Single).at(Stage::Attach, at)
    }

    fn seal_skeleton(&self) -> Result<()> {
        let at = CellPath::new("/");
        for name in [".masks/file", ".masks/directory", ".masks"] {
            let flags = if name == ".masks/file" { UnlinkatFlags::NoRemoveDir } else { UnlinkatFlags::RemoveDir };
            unlinkat(self.root, name, flags).at(Stage::MountPoint, name)?;
        }
        let flags = attributes(Origin::System, Writable::No, Executable::No);
        mount::set_attributes(self.root, flags, 0, Depth::Single).at(Stage::NewRoot, &at)
    }
}

/// The components of a path below the root, as the kernel takes them.
fn names(at: &CellPath) -> impl Iterator<Item = CString> {
    at.as_path().components().filter_map(|part| match part {
        Component::Normal(name) => Some(CellPath::new(name).to_c()),
        _ => None,
    })
}

fn relative(at: &CellPath) -> CString {
    let text = at.as_path().strip_prefix("/").unwrap_or(at.as_path());
    let text = if text.as_os_str().is_empty() { Path::new(".") } else { text };
    CellPath::new(text).to_c()
}

fn tmpfs(size: &str, inodes: &str, mode: &str) -> std::result::Result<OwnedFd, Errno> {
    let c = |text: &str| CString::new(text).unwrap_or_default();
    let fs = mount::fsopen(c"tmpfs")?;
    mount::fsconfig_string(fs.as_fd(), c"size", &c(size))?;
    mount::fsconfig_string(fs.as_fd(), c"nr_inodes", &c(inodes))?;
    mount::fsconfig_string(fs.as_fd(), c"mode", &c(mode))?;
    mount::fsconfig_create(fs.as_fd())?;
    mount::fsmount(fs.as_fd(), mount::ATTR_NOSUID | mount::ATTR_NODEV)
}
