//! Attempts on the kernel wall: any system call, by name, with arguments as words.

mod fuzz;
mod names;

use super::{Attempt, judge, told};
use std::ffi::CString;
use std::os::fd::IntoRawFd;
use std::os::unix::process::CommandExt;

/// The attempt could not even be prepared; no errno is this high.
pub const UNPREPARED: i32 = 248;

pub fn attempt(words: &[&str]) -> Option<Attempt> {
    Some(match words {
        ["call", name, arguments @ ..] => named_call(name, arguments),
        ["within", rest @ ..] => within(rest),
        ["clone", flags] => clone(number(flags)),
        ["clone3", flags] => clone3(number(flags)),
        ["int80", call, first] => int80(number(call) as u32, number(first) as u32),
        ["join-all"] => join_all(),
        ["answers", from, to] => answers(number(from), number(to)),
        ["threads"] => threads(),
        ["weaker-filter", rest @ ..] => weaker_filter(0).and_then(|()| again(rest)),
        ["listener"] => weaker_filter(libc::SECCOMP_FILTER_FLAG_NEW_LISTENER),
        ["fuzz", milliseconds, seed] => fuzz::run(number(milliseconds), number(seed)),
        _ => return None,
    })
}

/// One raw system call.
pub fn call(number: i64, arguments: [u64; 6]) -> i64 {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: what pointers there are come from `argument`, which never frees them; beyond that, a probe wants to know
    // what the kernel does with anything at all.
    unsafe { libc::syscall(number, a, b, c, d, e, f) }
}

fn named_call(name: &str, words: &[&str]) -> Attempt {
    let mut arguments = [0; 6];
    for (slot, word) in arguments.iter_mut().zip(words) {
        *slot = argument(word)?;
    }
    judge(call(names::number(name).unwrap_or_else(|| number(name) as i64), arguments))
}

/// `:text` is a string, `<path` an opened file, `@N` a buffer of N zeros, `@N=hex` one that begins so, else a number.
fn argument(word: &str) -> Result<u64, i32> {
    if let Some(text) = word.strip_prefix(':') {
        return Ok(CString::new(text).map_err(|_| UNPREPARED)?.into_raw() as u64);
    }
    if let Some(path) = word.strip_prefix('<') {
        return Ok(std::fs::File::open(path).map_err(|_| UNPREPARED)?.into_raw_fd() as u64);
    }
    if let Some(buffer) = word.strip_prefix('@') {
        let (size, start) = buffer.split_once('=').unwrap_or((buffer, ""));
        let mut bytes = hex(start);
        bytes.resize(number(size) as usize, 0);
        return Ok(bytes.leak().as_mut_ptr() as u64);
    }
    Ok(number(word))
}

/// Bytes from hexadecimal digits, in pairs.
pub fn hex(digits: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("two hexadecimal digits");
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// Decimal, `0x` hexadecimal or negative.
pub fn number(word: &str) -> u64 {
    let parsed = match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse::<u64>().ok().or_else(|| word.parse::<i64>().ok().map(|number| number as u64)),
    };
    parsed.unwrap_or_else(|| panic!("`{word}` is neither a number nor a call this probe knows"))
}

/// This program once more, with other words.
fn again(words: &[&str]) -> Attempt {
    told::<()>(Err(std::process::Command::new("/proc/self/exe").args(words).exec()))
}

/// Root of namespaces of its own, where an ordinary user may do what only root may do elsewhere.
fn within(words: &[&str]) -> Attempt {
    // SAFETY: these only ask.
    let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    let flags = libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWNET | libc::CLONE_NEWUTS | libc::CLONE_NEWIPC;
    let prepare = || {
        judge(call(libc::SYS_unshare, [flags as u64, 0, 0, 0, 0, 0]))?;
        told(std::fs::write("/proc/self/setgroups", "deny"))?;
        told(std::fs::write("/proc/self/uid_map", format!("0 {uid} 1")))?;
        told(std::fs::write("/proc/self/gid_map", format!("0 {gid} 1")))
    };
    prepare().map_err(|_| UNPREPARED)?;
    again(words)
}

/// Forks in the way given; the child ends at once.
fn clone(flags: u64) -> Attempt {
    let pid = call(libc::SYS_clone, [flags | libc::SIGCHLD as u64, 0, 0, 0, 0, 0]);
    end_child(pid)
}

fn clone3(flags: u64) -> Attempt {
    let arguments = [flags, 0, 0, 0, libc::SIGCHLD as u64, 0, 0, 0];
    end_child(call(libc::SYS_clone3, [arguments.as_ptr() as u64, 64, 0, 0, 0, 0]))
}

fn end_child(pid: i64) -> Attempt {
    if pid == 0 {
        // SAFETY: leaves at once and runs nothing that the parent registered.
        unsafe { libc::_exit(0) }
    }
    let answer = judge(pid);
    if pid > 0 {
        // SAFETY: a null status is allowed.
        unsafe { libc::waitpid(pid as i32, std::ptr::null_mut(), 0) };
    }
    answer
}

/// The i386 way into the kernel.
#[cfg(target_arch = "x86_64")]
fn int80(number: u32, first: u32) -> Attempt {
    let answer: i32;
    // SAFETY: the kernel changes the registers named here; a child, if one is made, shares nothing that matters.
    unsafe {
        std::arch::asm!(
            "push rbx", "mov ebx, {first:e}", "xor ecx, ecx", "int 0x80", "pop rbx",
            first = in(reg) first, inlateout("eax") number as i32 => answer,
            out("ecx") _, out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    if answer < 0 { Err(-answer) } else { Ok(()) }
}

#[cfg(not(target_arch = "x86_64"))]
fn int80(_number: u32, _first: u32) -> Attempt {
    Err(libc::ENOSYS)
}

/// Tries to join every namespace that `/proc` shows, and prints the path and the errno of each.
fn join_all() -> Attempt {
    let mut joined = Ok(());
    for process in std::fs::read_dir("/proc").expect("/proc").flatten() {
        let Ok(namespaces) = std::fs::read_dir(process.path().join("ns")) else { continue };
        for namespace in namespaces.flatten() {
            let answer = match std::fs::File::open(namespace.path()) {
                Err(error) => error.raw_os_error().unwrap_or(UNPREPARED),
                Ok(file) => judge(call(libc::SYS_setns, [file.into_raw_fd() as u64, 0, 0, 0, 0, 0])).err().unwrap_or(0),
            };
            println!("{} {answer}", namespace.path().display());
            if answer == 0 {
                joined = Err(UNPREPARED);
            }
        }
    }
    joined
}

/// Prints the errno of every call number in a range, made without arguments.
fn answers(from: u64, to: u64) -> Attempt {
    for number in from..=to {
        println!("{number} {}", judge(call(number as i64, [0; 6])).err().unwrap_or(0));
    }
    Ok(())
}

/// Prints what the kernel says about each of five threads.
fn threads() -> Attempt {
    let barrier = std::sync::Arc::new(std::sync::Barrier::new(5));
    let wait = |barrier: std::sync::Arc<std::sync::Barrier>| {
        move || {
            barrier.wait();
        }
    };
    let others: Vec<_> = (0..4).map(|_| std::thread::spawn(wait(barrier.clone()))).collect();
    for task in told_dir("/proc/self/task") {
        println!("{}", std::fs::read_to_string(task.join("status")).map_err(|_| UNPREPARED)?);
    }
    barrier.wait();
    others.into_iter().for_each(|thread| drop(thread.join()));
    Ok(())
}

fn told_dir(path: &str) -> Vec<std::path::PathBuf> {
    std::fs::read_dir(path).expect("a directory").flatten().map(|entry| entry.path()).collect()
}

/// Installs a filter that allows everything.
fn weaker_filter(flags: u64) -> Attempt {
    let mut allow_all = libc::sock_filter { code: 6, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW };
    let program = libc::sock_fprog { len: 1, filter: &raw mut allow_all };
    call(libc::SYS_prctl, [libc::PR_SET_NO_NEW_PRIVS as u64, 1, 0, 0, 0, 0]);
    let mode = u64::from(libc::SECCOMP_SET_MODE_FILTER);
    judge(call(libc::SYS_seccomp, [mode, flags, &raw const program as u64, 0, 0, 0]))
}
