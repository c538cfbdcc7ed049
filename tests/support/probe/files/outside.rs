//! Not attempts but circumstances, for use outside: run a program without Landlock, with groups, with open files.

use super::super::{Attempt, judge, told};
use super::widen;
use std::os::unix::process::CommandExt;
use std::process::Command;

pub fn attempt(words: &[&str]) -> Option<Attempt> {
    Some(match words {
        ["without-landlock", program, arguments @ ..] => {
            without_landlock().and_then(|()| become_it(program, arguments))
        }
        ["with-groups", groups, program, arguments @ ..] => {
            let groups: Vec<u32> = groups.split('+').map(|id| id.parse().expect("a group")).collect();
            // SAFETY: the kernel is told how many groups there are.
            judge(widen(|| unsafe { libc::setgroups(groups.len(), groups.as_ptr()) }))
                .and_then(|()| become_it(program, arguments))
        }
        ["with-open", directory, program, arguments @ ..] => {
            with_open(directory).and_then(|()| become_it(program, arguments))
        }
        ["with-umask", mask, program, arguments @ ..] => {
            // SAFETY: cannot fail.
            unsafe { libc::umask(u32::from_str_radix(mask, 8).expect("an octal mask")) };
            become_it(program, arguments)
        }
        _ => return None,
    })
}

fn become_it(program: &str, arguments: &[&str]) -> Attempt {
    Err(Command::new(program).args(arguments).exec().raw_os_error().unwrap_or(249))
}

/// `landlock_create_ruleset` answers ENOSYS from here on, as on a kernel that has none.
fn without_landlock() -> Attempt {
    let step = |code: u32, yes, no, k| libc::sock_filter { code: code as u16, jt: yes, jf: no, k };
    let filter = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, 444),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // SAFETY: the program and its instructions outlive the calls.
    unsafe {
        judge(i64::from(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)))?;
        judge(i64::from(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program)))
    }
}

/// Leaves the directory, an eventfd and a socket open across exec, at numbers a program may take over.
fn with_open(directory: &str) -> Attempt {
    let held = std::fs::File::open(directory);
    told(held.map(|file| {
        let number = std::os::fd::IntoRawFd::into_raw_fd(file);
        // SAFETY: only integers; the descriptors are meant to leak.
        unsafe {
            let event = libc::eventfd(0, 0);
            let socket = libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0);
            for (from, to) in [(number, 7), (event, 8), (socket, 9), (number, 200)] {
                libc::dup2(from, to);
            }
        }
    }))
}
