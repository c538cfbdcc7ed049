//! Reading a policy file that nobody else could have written.
//!
//! A policy is only as trustworthy as whoever can write its file, so the file is opened once,
//! without following a link or waiting on a pipe, and everything is asked of the descriptor that
//! is then read.

use std::fs::{self, File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;

use super::Operator;
use super::error::Error;
use super::source::Source;

/// Far more than a policy needs; a larger file is a mistake or an attack on our memory.
const MAX_BYTES: u64 = 256 * 1024;

const OTHERS_WRITE: u32 = 0o002;
const GROUP_WRITES: u32 = 0o020;
const STICKY: u32 = 0o1000;

pub(super) fn read(operator: &Operator, path: &Path) -> Result<Source, Error> {
    let shown = path.display().to_string();
    let file_name = path.file_name().ok_or_else(|| Error::file(&shown, "names no file"))?;
    let beside = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let beside = operator.cwd.join(beside);
    let directory = beside.canonicalize().map_err(|error| unreadable(path, &error))?;
    let opened = File::open(&directory).map_err(|error| unreadable(path, &error))?;
    let metadata = opened.metadata().map_err(|error| unreadable(path, &error))?;
    trust_directory(operator, path, &directory, &metadata)?;

    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC | OFlag::O_NOCTTY;
    let file = openat(&opened, file_name, flags, Mode::empty()).map_err(|errno| match errno {
        Errno::ELOOP => Error::file(&shown, "is a symbolic link, which others could point elsewhere")
            .hint("name the file it points to"),
        errno => unreadable(path, &errno.into()),
    })?;
    let file = File::from(file);
    let metadata = file.metadata().map_err(|error| unreadable(path, &error))?;
    trust_file(operator, path, &metadata)?;
    Ok(Source { name: shown, path: Some(directory.join(file_name)), text: text(path, file)? })
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    let at = Error::file(path.display(), format!("cannot be read: {error}"));
    if error.kind() != std::io::ErrorKind::NotFound {
        return at;
    }
    at.hint("`stockade policy list` names the shipped ones, `stockade policy init FILE` writes a new one")
}

fn trust_file(operator: &Operator, path: &Path, metadata: &Metadata) -> Result<(), Error> {
    let shown = path.display().to_string();
    let error = |message: String| Error::file(&shown, message);
    if !metadata.is_file() {
        return Err(error("is not a regular file".to_owned()).hint("a policy is read once, from a plain file"));
    }
    if ![0, operator.uid].contains(&metadata.uid()) {
        let message = format!("belongs to uid {}, who could rewrite it", metadata.uid());
        return Err(error(message).hint(format!("make a copy that uid {} or root owns", operator.uid)));
    }
    if metadata.mode() & (OTHERS_WRITE | GROUP_WRITES) != 0 {
        return Err(error("can be written by others".to_owned()).hint(format!("chmod go-w {shown}")));
    }
    Ok(())
}

/// Whoever can rename in a directory can swap the file; the sticky bit leaves that to the owner.
fn trust_directory(operator: &Operator, path: &Path, directory: &Path, metadata: &Metadata) -> Result<(), Error> {
    let error = |place: &Path, message: &str| {
        Error::file(path.display(), format!("its directory `{}` {message}", place.display()))
    };
    let writable = |metadata: &Metadata, bits| metadata.mode() & bits != 0 && metadata.mode() & STICKY == 0;
    let hint = |place: &Path| format!("chmod go-w {}, or keep the policy elsewhere", place.display());
    if ![0, operator.uid].contains(&metadata.uid()) {
        return Err(error(directory, "belongs to another user").hint("keep the policy in a directory of your own"));
    }
    if writable(metadata, OTHERS_WRITE | GROUP_WRITES) {
        return Err(error(directory, "can be written by others").hint(hint(directory)));
    }
    for above in directory.ancestors().skip(1) {
        if fs::metadata(above).is_ok_and(|metadata| writable(&metadata, OTHERS_WRITE)) {
            return Err(error(above, "can be written by others").hint(hint(above)));
        }
    }
    Ok(())
}

fn text(path: &Path, file: File) -> Result<String, Error> {
    let mut bytes = Vec::new();
    // Not asked of the metadata: a file can grow between that and reading it.
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| unreadable(path, &error))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Error::file(path.display(), format!("is more than the {MAX_BYTES} bytes a policy may have")));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let line =
            error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
        Error::file(path.display(), format!("line {line} is not UTF-8")).hint("save the file as UTF-8")
    })?;
    // Editors on other systems begin a file with a byte order mark; it means nothing in UTF-8.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}
