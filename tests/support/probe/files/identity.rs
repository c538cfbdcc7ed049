//! Attempts to become somebody else, to rise, and to leave a trace when dying.

use super::super::{Attempt, judge};
use super::{answered, widen};

pub fn attempt(words: &[&str]) -> Option<Attempt> {
    let number = |text: &str| text.parse::<u32>().expect("a number");
    Some(match words {
        ["who"] => print_ids(),
        ["set-user", id] => answered(nix::unistd::setuid(number(id).into())),
        ["set-users", id] => {
            let id = number(id).into();
            answered(nix::unistd::setresuid(id, id, id))
        }
        ["set-group", id] => answered(nix::unistd::setgid(number(id).into())),
        ["set-groups", id] => answered(nix::unistd::setgroups(&[number(id).into()])),
        ["ambient"] => {
            const CAP_SYS_ADMIN: libc::c_ulong = 21;
            // SAFETY: only integers are passed.
            judge(widen(|| unsafe {
                libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0)
            }))
        }
        ["capabilities", bits] => capabilities(number(bits)),
        ["real-time"] => {
            let priority = libc::sched_param { sched_priority: 1 };
            // SAFETY: the parameter outlives the call.
            judge(widen(|| unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &priority) }))
        }
        ["nice", by] => {
            let by = by.parse().expect("a number");
            // SAFETY: only integers are passed.
            judge(widen(|| unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, by) }))
        }
        ["io-class", class] => {
            const WHO_PROCESS: i32 = 1;
            // SAFETY: only integers are passed.
            judge(unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, number(class) << 13) })
        }
        ["limits"] => print_limits(),
        ["core-limit", bytes] => core_limit(bytes.parse().expect("a number")),
        ["crash"] => crash(),
        _ => return None,
    })
}

fn print_ids() -> Attempt {
    // SAFETY: these calls cannot fail and touch no memory.
    let (real, effective, group) = unsafe { (libc::getuid(), libc::geteuid(), libc::getegid()) };
    let mut groups = [0; 64];
    // SAFETY: the kernel is told how many groups there is room for.
    let count = unsafe { libc::getgroups(64, groups.as_mut_ptr()) };
    println!("{real} {effective} {group} {:?}", &groups[..usize::try_from(count).unwrap_or(0)]);
    Ok(())
}

/// capset(2) with these effective and permitted bits of the first word.
fn capabilities(bits: u32) -> Attempt {
    let header: [u32; 2] = [0x2008_0522, 0];
    let data: [u32; 6] = [bits, bits, 0, 0, 0, 0];
    // SAFETY: version 3 of the header takes two of three words each, which is what is there.
    judge(unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), data.as_ptr()) })
}

/// Every hard limit by its kernel number; `-` for none.
fn print_limits() -> Attempt {
    for resource in 0..16 {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `limit` outlives the call.
        judge(widen(|| unsafe { libc::getrlimit(resource, &mut limit) }))?;
        match limit.rlim_max {
            libc::RLIM_INFINITY => println!("{resource} -"),
            hard => println!("{resource} {hard}"),
        }
    }
    Ok(())
}

fn core_limit(bytes: u64) -> Attempt {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: `limit` outlives the call.
    judge(widen(|| unsafe { libc::setrlimit(libc::RLIMIT_CORE, &limit) }))
}

/// Dies of SIGSEGV with as large a core file as it may leave.
fn crash() -> Attempt {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` outlives both calls; the signal's default action ends the process.
    unsafe {
        libc::getrlimit(libc::RLIMIT_CORE, &mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_CORE, &limit);
        libc::signal(libc::SIGSEGV, libc::SIG_DFL);
        libc::raise(libc::SIGSEGV);
    }
    Ok(())
}
