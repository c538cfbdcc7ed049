//! A configuration file of somebody else: read whole, replaced whole, never lost.
//!
//! The new text stands complete beside the old one before it takes its name (rename(2)), with its mode and owner; a
//! link stays a link. What was there before is kept in a backup.

use crate::cli::say::Complaint;
use nix::fcntl::OFlag;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// Nobody's configuration is larger, and a project's file may be of an agent's making.
const MAX_BYTES: u64 = 64 << 20;
/// No permission bit lets anybody write.
const ANY_WRITE: u32 = 0o222;

/// Who else is meant to read a file that is not there yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home<'a> {
    /// Nobody: clients keep keys in these files.
    Private,
    /// Whoever works on the project. A link out of it is refused: the project may be an agent's to write.
    Project(&'a Path),
}

/// A file as it was found.
#[derive(Debug)]
pub struct Target<'a> {
    /// As the client names it.
    named: PathBuf,
    home: Home<'a>,
    found: Option<Found>,
}

#[derive(Debug)]
struct Found {
    /// Behind every link.
    real: PathBuf,
    text: String,
    metadata: Metadata,
}

impl<'a> Target<'a> {
    pub fn read(named: &Path, home: Home<'a>) -> Result<Target<'a>, Complaint> {
        let at = |why: &dyn std::fmt::Display| Complaint::new(format!("`{}`: {why}", named.display()));
        let real = match named.canonicalize() {
            Ok(real) => Some(real),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(at(&error)),
        };
        if real.is_none() && named.symlink_metadata().is_ok() {
            return Err(at(&"is a link to nothing\nhint: create the file it names, or remove the link"));
        }
        stay_inside(named, home)?;
        let found = real.map(|real| Found::open(real).map_err(|error| at(&error))).transpose()?;
        Ok(Target { named: named.to_owned(), home, found })
    }

    /// What the file says; nothing when there is none.
    pub fn text(&self) -> &str {
        self.found.as_ref().map_or("", |found| &found.text)
    }

    /// Replaces the text. The path is that of the backup, if there was something to keep.
    pub fn replace(&self, text: &str) -> io::Result<Option<PathBuf>> {
        let Some(found) = &self.found else {
            self.create(text)?;
            return Ok(None);
        };
        if found.metadata.mode() & ANY_WRITE == 0 {
            return Err(io::Error::new(ErrorKind::PermissionDenied, "is read-only"));
        }
        let above = parent(&found.real)?;
        let fresh = Fresh::write(above, text, &|file| dress(file, &found.metadata))?;
        let backup = self.back_up()?;
        // A client that runs may write its file at any time; what it wrote meanwhile must not be lost.
        if Found::open(found.real.clone())?.text != found.text {
            backup.iter().for_each(|backup| drop(fs::remove_file(backup)));
            return Err(io::Error::other("was changed by somebody else meanwhile; try again"));
        }
        fresh.rename(&found.real)?;
        Ok(backup)
    }

    /// Keeps what was found beside the file, under a name that is still free.
    pub fn back_up(&self) -> io::Result<Option<PathBuf>> {
        let Some(found) = &self.found else { return Ok(None) };
        for number in 1.. {
            let mut name = self.named.clone().into_os_string();
            name.push(format!(".stockade-backup-{number}"));
            let path = PathBuf::from(name);
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(mut file) => {
                    file.write_all(found.text.as_bytes())?;
                    dress(&file, &found.metadata)?;
                    file.sync_all()?;
                    return Ok(Some(path));
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    fn create(&self, text: &str) -> io::Result<()> {
        let above = parent(&self.named)?;
        let (directory, file) = match self.home {
            Home::Private => (0o700, 0o600),
            Home::Project(_) => (0o777, 0o666),
        };
        fs::DirBuilder::new().recursive(true).mode(directory).create(above)?;
        // Made in place: another file of this name must not be replaced, and a half-written one is removed.
        let mut made = OpenOptions::new().write(true).create_new(true).mode(file).open(&self.named)?;
        let written = made.write_all(text.as_bytes()).and_then(|()| made.sync_all());
        written.inspect_err(|_| drop(fs::remove_file(&self.named)))?;
        File::open(above)?.sync_all()
    }
}

impl Found {
    fn open(real: PathBuf) -> io::Result<Found> {
        // A pipe or a device must neither be waited for nor read.
        let file = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(&real)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("is not a regular file"));
        }
        let mut text = String::new();
        file.take(MAX_BYTES + 1).read_to_string(&mut text)?;
        if text.len() as u64 > MAX_BYTES {
            return Err(io::Error::other(format!("is larger than {} MB", MAX_BYTES >> 20)));
        }
        Ok(Found { real, text, metadata })
    }
}

/// A new file beside the old one, gone again unless it takes its name.
struct Fresh {
    path: PathBuf,
    above: PathBuf,
}

impl Fresh {
    fn write(above: &Path, text: &str, dress: &dyn Fn(&File) -> io::Result<()>) -> io::Result<Fresh> {
        let path = above.join(format!(".stockade-setup-{}", std::process::id()));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let fresh = Fresh { path, above: above.to_owned() };
        file.write_all(text.as_bytes())?;
        dress(&file)?;
        file.sync_all()?;
        Ok(fresh)
    }

    fn rename(self, to: &Path) -> io::Result<()> {
        fs::rename(&self.path, to)?;
        File::open(&self.above)?.sync_all()
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // After a rename there is nothing of this name.
        drop(fs::remove_file(&self.path));
    }
}

/// The mode and owner of the file that is replaced. The owner first: chown(2) clears bits of the mode.
fn dress(file: &File, like: &Metadata) -> io::Result<()> {
    let now = file.metadata()?;
    if (now.uid(), now.gid()) != (like.uid(), like.gid()) {
        fchown(file, Some(like.uid()), Some(like.gid()))?;
    }
    file.set_permissions(fs::Permissions::from_mode(like.mode() & 0o7777))
}

fn parent(path: &Path) -> io::Result<&Path> {
    path.parent().ok_or_else(|| io::Error::other("has no directory"))
}

/// A project's configuration, behind every link, must lie in the project.
fn stay_inside(named: &Path, home: Home<'_>) -> Result<(), Complaint> {
    let Home::Project(project) = home else { return Ok(()) };
    let real = named.ancestors().find_map(|above| above.canonicalize().ok());
    if real.is_some_and(|real| real.starts_with(project)) {
        return Ok(());
    }
    Err(Complaint::new(format!(
        "`{}` leads out of the project by a link\nhint: replace the link, or use `--scope user`",
        named.display()
    )))
}
