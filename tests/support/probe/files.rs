//! Attempts on files, on `/proc` and on descriptors; [`identity`] has those on who the process is.
//!
//! `each` makes many attempts in one cell: `each read /a , write /b` prints one errno a line, and every
//! attempt has a process of its own, so that none changes what the next one sees.

mod identity;
mod outside;

use super::{Attempt, judge, told};
use nix::unistd::AccessFlags;
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};

pub fn attempt(words: &[&str]) -> Option<Attempt> {
    by_name(words)
        .or_else(|| with_mode(words))
        .or_else(|| by_number(words))
        .or_else(|| descriptors(words))
        .or_else(|| identity::attempt(words))
        .or_else(|| outside::attempt(words))
}

fn by_name(words: &[&str]) -> Option<Attempt> {
    Some(match words {
        ["each", words @ ..] => each(words),
        ["read", path] => told(fs::read(path)),
        ["write", path] => told(File::options().write(true).create(true).truncate(false).open(path)),
        ["append", path] => told(File::options().append(true).open(path).and_then(|mut file| file.write_all(b"+"))),
        // A descriptor for reading, opened once more for writing.
        ["append-held", path] => told(File::open(path).and_then(|held| {
            File::options().append(true).open(format!("/proc/self/fd/{}", held.as_raw_fd())).map(drop)
        })),
        ["create", path] => told(File::create_new(path)),
        ["truncate", path] => answered(nix::unistd::truncate(*path, 0)),
        ["list", path] => told(fs::read_dir(path)),
        ["stat", path] => told(fs::symlink_metadata(path)),
        ["handle", path] => told(File::options().read(true).custom_flags(libc::O_PATH).open(path)),
        ["access", path] => answered(nix::unistd::access(*path, AccessFlags::F_OK)),
        ["enter", path] => told(std::env::set_current_dir(path)),
        ["readlink", path] => told(fs::read_link(path)),
        ["mkdir", path] => told(fs::create_dir(path)),
        ["rmdir", path] => told(fs::remove_dir(path)),
        ["remove", path] => told(fs::remove_file(path)),
        ["rename", from, to] => told(fs::rename(from, to)),
        ["exchange", from, to] => rename(from, to, libc::RENAME_EXCHANGE),
        ["whiteout", from, to] => rename(from, to, libc::RENAME_WHITEOUT),
        ["link", from, to] => told(fs::hard_link(from, to)),
        ["symlink", to, at] => told(std::os::unix::fs::symlink(to, at)),
        ["exec", path] => exec(path),
        // Empty counts as nothing to see, with the errno of "no data".
        ["read-something", path] => match fs::read(path) {
            Ok(bytes) if bytes.is_empty() => Err(libc::ENODATA),
            read => told(read),
        },
        ["list-something", path] => match fs::read_dir(path).map(Iterator::count) {
            Ok(0) => Err(libc::ENODATA),
            read => told(read),
        },
        ["watch", path] => watch(path),
        ["walk-out", from, to, up] => walk_out(from, to, up),
        _ => return None,
    })
}

fn with_mode(words: &[&str]) -> Option<Attempt> {
    let mode = |text: &str| u32::from_str_radix(text, 8).expect("an octal mode");
    let number = |text: &str| text.parse::<u32>().expect("a number");
    Some(match words {
        ["chmod", path, bits] => told(fs::set_permissions(path, fs::Permissions::from_mode(mode(bits)))),
        ["fchmod", path, bits] => {
            told(File::open(path).and_then(|file| file.set_permissions(fs::Permissions::from_mode(mode(bits)))))
        }
        ["fchmodat2", path, bits] => {
            judge(syscall(452, [libc::AT_FDCWD as i64, c(path).as_ptr() as i64, i64::from(mode(bits)), 0]))
        }
        ["create-as", path, bits] => told(OpenOptions::new().write(true).create_new(true).mode(mode(bits)).open(path)),
        ["creat-as", path, bits] => {
            judge(syscall(libc::SYS_creat, [c(path).as_ptr() as i64, i64::from(mode(bits)), 0, 0]))
        }
        ["openat2-as", path, bits] => {
            let how = [(libc::O_CREAT | libc::O_WRONLY) as u64, u64::from(mode(bits)), 0];
            judge(syscall(
                libc::SYS_openat2,
                [libc::AT_FDCWD as i64, c(path).as_ptr() as i64, how.as_ptr() as i64, size_of_val(&how) as i64],
            ))
        }
        ["temporary-as", directory, bits] => told(temporary(directory, mode(bits))),
        ["temporary-link", directory, to] => temporary_link(directory, to),
        ["node", path, kind, major, minor] => {
            let kind = match *kind {
                "c" => libc::S_IFCHR,
                "b" => libc::S_IFBLK,
                "p" => libc::S_IFIFO,
                "s" => libc::S_IFSOCK,
                bits => libc::S_IFREG | mode(bits),
            };
            let device = libc::makedev(number(major), number(minor));
            judge(syscall(libc::SYS_mknod, [c(path).as_ptr() as i64, i64::from(kind | 0o600), device as i64, 0]))
        }
        ["chown", path, uid, gid] => told(std::os::unix::fs::lchown(path, Some(number(uid)), Some(number(gid)))),
        ["touch", path] => told(File::open(path).and_then(|file| file.set_modified(std::time::UNIX_EPOCH))),
        ["attribute", path, name] => attribute(path, name),
        ["immutable", path] => immutable(path),
        _ => return None,
    })
}

/// Past the names: handles, whole filesystems, mounts.
fn by_number(words: &[&str]) -> Option<Attempt> {
    Some(match words {
        ["shocker", directory] => shocker(directory),
        ["by-handle", path] => by_handle(path),
        // FAN_REPORT_FID: the kind that an ordinary user may have.
        ["watch-all"] => judge(syscall(libc::SYS_fanotify_init, [0x200, 0, 0, 0])),
        ["uncover", path] => answered(nix::mount::umount2(*path, nix::mount::MntFlags::MNT_DETACH)),
        ["mount-proc", path] => mount_proc(path),
        ["new-proc", path] => new_proc(path),
        ["landlock-layers"] => landlock_layers().map(|layers| println!("layers {layers}")),
        _ => return None,
    })
}

fn descriptors(words: &[&str]) -> Option<Attempt> {
    Some(match words {
        ["descriptors"] => told(print_descriptors()),
        ["write-output-owner", pid] => {
            judge(syscall(libc::SYS_fcntl, [1, i64::from(libc::F_SETOWN), pid.parse().expect("a pid"), 0]))
        }
        ["read-output-back"] => read_output_back(),
        ["nonblocking-output", bytes] => nonblocking_output(bytes.parse().expect("a number")),
        _ => return None,
    })
}

/// The errno of each attempt, one a line; the same for every attempt whether it is alone or not.
fn each(words: &[&str]) -> Attempt {
    for words in words.split(|word| *word == ",") {
        // SAFETY: the probe has one thread, so the child may do whatever its parent could.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let code = match attempt(words) {
                Some(Ok(())) => 0,
                Some(Err(errno)) => errno,
                None => 250,
            };
            std::process::exit(code);
        }
        let mut status = 0;
        // SAFETY: `status` outlives the call.
        unsafe { libc::waitpid(pid, &mut status, 0) };
        let code = if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 248 };
        println!("{code}");
    }
    Ok(())
}

/// Turns nix's answer into an attempt.
fn answered<T>(result: nix::Result<T>) -> Attempt {
    result.map(drop).map_err(|errno| errno as i32)
}

fn c(text: &str) -> CString {
    CString::new(text).expect("no NUL byte")
}

/// Widens what a call of libc returned.
fn widen(call: impl FnOnce() -> libc::c_int) -> i64 {
    i64::from(call())
}

fn syscall(number: libc::c_long, [a, b, c, d]: [i64; 4]) -> i64 {
    // SAFETY: the callers pass integers and pointers to values that outlive the call.
    unsafe { libc::syscall(number, a, b, c, d) }
}

fn rename(from: &str, to: &str, flags: libc::c_uint) -> Attempt {
    let (from, to) = (c(from), c(to));
    // SAFETY: both strings outlive the call.
    judge(i64::from(unsafe { libc::renameat2(libc::AT_FDCWD, from.as_ptr(), libc::AT_FDCWD, to.as_ptr(), flags) }))
}

fn exec(path: &str) -> Attempt {
    use std::os::unix::process::CommandExt;
    Err(std::process::Command::new(path).exec().raw_os_error().unwrap_or(249))
}

fn watch(path: &str) -> Attempt {
    // SAFETY: only integers, and a string that outlives the call.
    judge(widen(|| unsafe { libc::inotify_add_watch(libc::inotify_init(), c(path).as_ptr(), libc::IN_CREATE) }))
}

/// FS-08: a directory held open, moved elsewhere, and then walked upwards from.
fn walk_out(from: &str, to: &str, up: &str) -> Attempt {
    let held = File::open(from).map_err(|error| error.raw_os_error().unwrap_or(249))?;
    let moved = told(fs::rename(from, to));
    println!("moved {}", moved.err().unwrap_or(0));
    // SAFETY: the descriptor and the string outlive the call.
    judge(widen(|| unsafe { libc::openat(held.as_raw_fd(), c(up).as_ptr(), libc::O_RDONLY) }))
}

fn temporary(directory: &str, mode: u32) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_TMPFILE).mode(mode).open(directory)
}

fn temporary_link(directory: &str, to: &str) -> Attempt {
    let file = temporary(directory, 0o600).map_err(|error| error.raw_os_error().unwrap_or(249))?;
    let (from, to) = (c(&format!("/proc/self/fd/{}", file.as_raw_fd())), c(to));
    // SAFETY: both strings outlive the call.
    judge(widen(|| unsafe {
        libc::linkat(libc::AT_FDCWD, from.as_ptr(), libc::AT_FDCWD, to.as_ptr(), libc::AT_SYMLINK_FOLLOW)
    }))
}

fn attribute(path: &str, name: &str) -> Attempt {
    // Version 2 of `vfs_cap_data`: cap_sys_admin+ep. Any bytes do for other names.
    let value: [u32; 5] = [0x0200_0001, 1 << 21, 1 << 21, 0, 0];
    // SAFETY: strings and value outlive the call, and the size is the value's.
    judge(widen(|| unsafe {
        libc::setxattr(c(path).as_ptr(), c(name).as_ptr(), value.as_ptr().cast(), size_of_val(&value), 0)
    }))
}

fn immutable(path: &str) -> Attempt {
    const FS_IOC_SETFLAGS: libc::c_ulong = 0x4008_6602;
    const FS_IMMUTABLE_FL: libc::c_int = 0x10;
    let file = File::open(path).map_err(|error| error.raw_os_error().unwrap_or(249))?;
    // SAFETY: the flags outlive the call.
    judge(widen(|| unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_SETFLAGS, &FS_IMMUTABLE_FL) }))
}

#[repr(C)]
struct Handle {
    bytes: u32,
    kind: i32,
    data: [u32; 32],
}

/// FS-09: guesses the handle of a filesystem's first directory, as the "shocker" exploit did.
fn shocker(directory: &str) -> Attempt {
    let at = File::open(directory).map_err(|error| error.raw_os_error().unwrap_or(249))?;
    let mut handle = Handle { bytes: 8, kind: 1, data: [0; 32] };
    handle.data[0] = 2;
    open_by_handle(&at, &handle)
}

fn by_handle(path: &str) -> Attempt {
    let at = File::open(path).map_err(|error| error.raw_os_error().unwrap_or(249))?;
    let mut handle = Handle { bytes: 128, kind: 0, data: [0; 32] };
    let mut mount = 0;
    // SAFETY: the handle has room for as many bytes as it says.
    judge(unsafe {
        libc::syscall(libc::SYS_name_to_handle_at, libc::AT_FDCWD, c(path).as_ptr(), &mut handle, &mut mount, 0)
    })?;
    open_by_handle(&at, &handle)
}

fn open_by_handle(at: &File, handle: &Handle) -> Attempt {
    // SAFETY: the handle outlives the call.
    judge(unsafe { libc::syscall(libc::SYS_open_by_handle_at, at.as_raw_fd(), handle, libc::O_RDONLY) })
}

fn mount_proc(path: &str) -> Attempt {
    let path = c(path);
    // SAFETY: the strings outlive the call; proc takes no data.
    judge(widen(|| unsafe { libc::mount(c"proc".as_ptr(), path.as_ptr(), c"proc".as_ptr(), 0, std::ptr::null()) }))
}

/// How many rulesets the kernel still takes from this process; it takes 16 in all.
fn landlock_layers() -> Result<u32, i32> {
    const EXECUTE: u64 = 1;
    let handled: [u64; 1] = [EXECUTE];
    answered(nix::sys::prctl::set_no_new_privs())?;
    let ruleset = syscall(444, [handled.as_ptr() as i64, size_of_val(&handled) as i64, 0, 0]);
    judge(ruleset)?;
    Ok((0..64).take_while(|_| syscall(446, [ruleset, 0, 0, 0]) == 0).count() as u32)
}

/// PR-11: a `/proc` without masks, by way of namespaces of one's own.
fn new_proc(path: &str) -> Attempt {
    // SAFETY: only integers; the probe has one thread.
    judge(widen(|| unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWPID) }))?;
    // SAFETY: as in `each`.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        std::process::exit(mount_proc(path).err().unwrap_or(0));
    }
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    unsafe { libc::waitpid(pid, &mut status, 0) };
    if libc::WEXITSTATUS(status) == 0 { Ok(()) } else { Err(libc::WEXITSTATUS(status)) }
}

/// Number and meaning of every open descriptor but the one that lists them.
fn print_descriptors() -> std::io::Result<()> {
    for number in 0..1024 {
        // SAFETY: asking for flags changes nothing.
        if unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0 {
            println!("{number} {}", fs::read_link(format!("/proc/self/fd/{number}"))?.display());
        }
    }
    Ok(())
}

/// FD-04: what a reader of this command's own output finds there; ENODATA when nothing.
fn read_output_back() -> Attempt {
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/proc/self/fd/1")
        .map_err(|error| error.raw_os_error().unwrap_or(249))?;
    let mut found = [0; 4096];
    told(std::io::Read::read(&mut file, &mut found))
}

/// FD-06: makes the output non-blocking and then writes it all, waiting where it must.
fn nonblocking_output(bytes: usize) -> Attempt {
    // SAFETY: only integers are passed.
    judge(widen(|| unsafe { libc::fcntl(1, libc::F_SETFL, libc::O_NONBLOCK) }))?;
    let (mut left, mut refused) = (bytes, 0);
    while left > 0 {
        let chunk = [b'x'; 4096];
        // SAFETY: the chunk is as long as it says at most.
        let wrote = unsafe { libc::write(1, chunk.as_ptr().cast(), left.min(chunk.len())) };
        match (wrote, super::errno()) {
            (wrote @ 0.., _) => left -= wrote as usize,
            (_, libc::EAGAIN) => {
                refused += 1;
                let mut ready = libc::pollfd { fd: 1, events: libc::POLLOUT, revents: 0 };
                // SAFETY: one pollfd that outlives the call.
                unsafe { libc::poll(&mut ready, 1, -1) };
            }
            (_, errno) => return Err(errno),
        }
    }
    eprintln!("refused {refused}");
    Ok(())
}
