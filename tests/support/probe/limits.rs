//! Attempts on the limits and on the command lists: grow until refused, outlive, execute by a side door.
//!
//! What grows prints how far it came; the errno that stopped it is the exit code.
#![expect(clippy::undocumented_unsafe_blocks, reason = "each is one call, made to see what the kernel answers")]

use super::{Attempt, errno, judge, told};
use std::ffi::CString;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd};

/// No bound of any test is near it: a wall that is missing ends the attempt here, with success.
const ENOUGH: u64 = 20_000;

pub fn attempt(words: &[&str]) -> Option<Attempt> {
    Some(match words {
        ["allocate", mib] => touch(number(mib)),
        ["allocate-in", processes, mib] => each(number(processes), || touch(number(mib))),
        ["locked", mib] => locked(number(mib)),
        ["shared-memory", mib] => shared_memory(number(mib)),
        ["memory-file", mib] => fill(&memory_file(), number(mib) << 20),
        ["fork", _marker] => until_refused(fork_and_wait),
        ["fork-setsid", _marker] => until_refused(fork_away),
        ["threads", _marker] => until_refused(thread),
        ["open"] => until_refused(|| open_and_keep("/dev/null")),
        ["pipes"] => until_refused(pipe_and_keep),
        ["open-in", processes] => each(number(processes), || until_refused(|| open_and_keep("/dev/null"))),
        ["fill", path, mib] => {
            File::create(path).map_or_else(|error| told::<()>(Err(error)), |file| fill(&file, number(mib) << 20))
        }
        ["create-many", directory] => create_files(directory),
        ["in-flight"] => in_flight(),
        ["zombies", count] => zombies(number(count)),
        ["stop-everyone"] => stop_everyone(),
        ["deaf", _marker] => deaf(),
        ["nice"] => judge(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -5) }.into()),
        ["realtime"] => realtime(),
        ["raise-limit", resource] => raise(number(resource)),
        ["execve", path, rest @ ..] => execve(path, rest),
        ["execveat", path, rest @ ..] => execveat(path, rest),
        ["execute-copy-in-memory", path, rest @ ..] => execute_copy(path, rest),
        ["map-executable", path] => map_executable(path),
        _ => return None,
    })
}

fn number(word: &str) -> u64 {
    word.parse().expect("a number")
}

/// Takes memory and writes to every page of it.
fn touch(mib: u64) -> Attempt {
    let mut held = Vec::new();
    for _ in 0..mib {
        held.push(vec![1_u8; 1 << 20]);
    }
    std::hint::black_box(&held);
    println!("touched {mib}");
    Ok(())
}

/// The same attempt in many processes at once; the first failure is the answer.
fn each(processes: u64, attempt: impl Fn() -> Attempt) -> Attempt {
    let mut children = Vec::new();
    for _ in 0..processes {
        match unsafe { libc::fork() } {
            0 => std::process::exit(attempt().err().unwrap_or(0)),
            child if child < 0 => return Err(errno()),
            child => children.push(child),
        }
    }
    let mut worst = Ok(());
    for child in children {
        let mut status = 0;
        judge(unsafe { libc::waitpid(child, &raw mut status, 0) }.into())?;
        if libc::WEXITSTATUS(status) != 0 {
            worst = Err(libc::WEXITSTATUS(status));
        }
    }
    worst
}

fn until_refused(mut attempt: impl FnMut() -> Attempt) -> Attempt {
    for count in 0..ENOUGH {
        if let Err(errno) = attempt() {
            println!("count {count}");
            return Err(errno);
        }
    }
    println!("count {ENOUGH}");
    Ok(())
}

fn fork_and_wait() -> Attempt {
    match unsafe { libc::fork() } {
        0 => wait_forever(),
        child => judge(child.into()),
    }
}

/// Each generation leaves its session and its parent.
fn fork_away() -> Attempt {
    let mut pipe = [0; 2];
    judge(unsafe { libc::pipe2(pipe.as_mut_ptr(), libc::O_CLOEXEC) }.into())?;
    let child = unsafe { libc::fork() };
    if child == 0 {
        unsafe { libc::setsid() };
        let grandchild = unsafe { libc::fork() };
        if grandchild == 0 {
            wait_forever()
        }
        let failed = if grandchild < 0 { errno() as u8 } else { 0 };
        unsafe { libc::write(pipe[1], (&raw const failed).cast(), 1) };
        std::process::exit(0)
    }
    let mut failed = 0_u8;
    if child > 0 {
        unsafe { libc::read(pipe[0], (&raw mut failed).cast(), 1) };
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    }
    let forked = judge(child.into());
    close(pipe);
    forked.and(if failed == 0 { Ok(()) } else { Err(failed.into()) })
}

fn close(ends: [i32; 2]) {
    for end in ends {
        unsafe { libc::close(end) };
    }
}

fn wait_forever() -> ! {
    loop {
        unsafe { libc::pause() };
    }
}

fn thread() -> Attempt {
    let started = std::thread::Builder::new().stack_size(64 << 10).spawn(|| wait_forever());
    told(started)
}

fn open_and_keep(path: &str) -> Attempt {
    told(File::open(path).map(std::mem::forget))
}

/// A pipe with its buffer full: kernel memory.
fn pipe_and_keep() -> Attempt {
    let mut ends = [0; 2];
    judge(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_NONBLOCK) }.into())?;
    let page = [1_u8; 4096];
    while unsafe { libc::write(ends[1], page.as_ptr().cast(), page.len()) } > 0 {}
    Ok(())
}

fn fill(mut file: &File, bytes: u64) -> Attempt {
    // Else the limit on a file's size would be a signal (setrlimit(2)).
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let chunk = vec![1_u8; 64 << 10];
    let mut written = 0;
    while written < bytes {
        match file.write(&chunk) {
            Ok(count) => written += count as u64,
            Err(error) => {
                println!("bytes {written}");
                return told::<()>(Err(error));
            }
        }
    }
    println!("bytes {written}");
    Ok(())
}

fn create_files(directory: &str) -> Attempt {
    let mut number = 0;
    until_refused(|| {
        number += 1;
        told(File::create(format!("{directory}/{number}")))
    })
}

fn memory_file() -> File {
    let fd = unsafe { libc::memfd_create(c"probe".as_ptr(), 0) };
    if fd < 0 {
        std::process::exit(errno());
    }
    unsafe { File::from_raw_fd(fd) }
}

fn locked(mib: u64) -> Attempt {
    let bytes = vec![1_u8; (mib << 20) as usize];
    judge(unsafe { libc::mlock(bytes.as_ptr().cast(), bytes.len()) }.into())
}

fn shared_memory(mib: u64) -> Attempt {
    let size = (mib << 20) as usize;
    let id = unsafe { libc::shmget(libc::IPC_PRIVATE, size, 0o600) };
    judge(id.into())?;
    let at = unsafe { libc::shmat(id, std::ptr::null(), 0) };
    if at as isize == -1 {
        return Err(errno());
    }
    unsafe { at.cast::<u8>().write_bytes(1, size) };
    Ok(())
}

/// Descriptors inside messages that nobody receives.
fn in_flight() -> Attempt {
    let mut pair = [0; 2];
    judge(unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_DGRAM, 0, pair.as_mut_ptr()) }.into())?;
    until_refused(|| {
        let mut next = [0; 2];
        judge(unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_DGRAM, 0, next.as_mut_ptr()) }.into())?;
        let sent = send_descriptors(next[0], &pair);
        close(pair);
        pair = next;
        sent
    })
}

fn send_descriptors(socket: i32, descriptors: &[i32; 2]) -> Attempt {
    let mut space = [0_u64; 8];
    let mut byte = [0_u8];
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
    message.msg_control = space.as_mut_ptr().cast();
    message.msg_controllen = unsafe { libc::CMSG_SPACE(8) } as usize;
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(8) as usize;
        libc::CMSG_DATA(header).cast::<[i32; 2]>().write_unaligned(*descriptors);
        judge(libc::sendmsg(socket, &raw const message, libc::MSG_DONTWAIT) as i64)
    }
}

/// Orphans that die: PID 1 must reap each, else they fill the cell.
fn zombies(count: u64) -> Attempt {
    for _ in 0..count {
        let child = unsafe { libc::fork() };
        if child == 0 {
            let orphan = unsafe { libc::fork() };
            std::process::exit(if orphan < 0 { errno() } else { 0 })
        }
        judge(child.into())?;
        let mut status = 0;
        judge(unsafe { libc::waitpid(child, &raw mut status, 0) }.into())?;
        if libc::WEXITSTATUS(status) != 0 {
            return Err(libc::WEXITSTATUS(status));
        }
    }
    Ok(())
}

fn stop_everyone() -> Attempt {
    println!("ready");
    unsafe { libc::kill(-1, libc::SIGSTOP) };
    judge(unsafe { libc::kill(libc::getpid(), libc::SIGSTOP) }.into())
}

/// Hears no signal that can be ignored.
fn deaf() -> Attempt {
    for signal in 1..32 {
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    println!("ready");
    wait_forever()
}

fn realtime() -> Attempt {
    let parameter = libc::sched_param { sched_priority: 1 };
    judge(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) }.into())
}

fn raise(resource: u64) -> Attempt {
    let limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    judge(unsafe { libc::setrlimit(resource as u32, &raw const limit) }.into())
}

/// An argument list that lives until exec.
fn arguments(path: &str, rest: &[&str]) -> (Vec<CString>, Vec<*const libc::c_char>) {
    let words: Vec<CString> = [path].iter().chain(rest).map(|word| CString::new(*word).expect("no NUL")).collect();
    let pointers = words.iter().map(|word| word.as_ptr()).chain([std::ptr::null()]).collect();
    (words, pointers)
}

fn execve(path: &str, rest: &[&str]) -> Attempt {
    let (words, pointers) = arguments(path, rest);
    judge(unsafe { libc::execve(words[0].as_ptr(), pointers.as_ptr(), [std::ptr::null()].as_ptr()) }.into())
}

/// By descriptor: no name is looked up when it runs. O_PATH, so that reading it is not asked for.
fn execveat(path: &str, rest: &[&str]) -> Attempt {
    let (words, _) = arguments(path, rest);
    let fd = unsafe { libc::open(words[0].as_ptr(), libc::O_PATH) };
    judge(fd.into())?;
    execute_descriptor(fd, path, rest)
}

fn execute_descriptor(fd: i32, path: &str, rest: &[&str]) -> Attempt {
    let (_words, pointers) = arguments(path, rest);
    let environment = [std::ptr::null::<libc::c_char>()];
    let (arguments, environment) = (pointers.as_ptr(), environment.as_ptr());
    judge(unsafe { libc::syscall(libc::SYS_execveat, fd, c"".as_ptr(), arguments, environment, libc::AT_EMPTY_PATH) })
}

fn execute_copy(path: &str, rest: &[&str]) -> Attempt {
    let copy = memory_file();
    let bytes = std::fs::read(path).map_err(|error| error.raw_os_error().unwrap_or(249))?;
    told((&copy).write_all(&bytes))?;
    execute_descriptor(copy.as_raw_fd(), path, rest)
}

/// What the dynamic loader does with a program.
fn map_executable(path: &str) -> Attempt {
    let file = File::open(path).map_err(|error| error.raw_os_error().unwrap_or(249))?;
    let (protection, flags) = (libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE);
    let at = unsafe { libc::mmap(std::ptr::null_mut(), 4096, protection, flags, file.as_raw_fd(), 0) };
    if at == libc::MAP_FAILED { Err(errno()) } else { Ok(()) }
}
