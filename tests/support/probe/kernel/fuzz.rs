//! Every call with arguments that make no sense.

use super::call;
use crate::{Attempt, errno};

/// Makes every call from 0 to 600 with arguments drawn from a fixed sequence, in children that may die of it.
pub fn run(milliseconds: u64, seed: u64) -> Attempt {
    let until = std::time::Instant::now() + std::time::Duration::from_millis(milliseconds);
    let mut random = Random(seed);
    mask(libc::SIG_BLOCK);
    let (mut children, mut first) = (0, 0);
    while std::time::Instant::now() < until {
        let (state, start) = (random.next(), first);
        // SAFETY: this process has one thread.
        match unsafe { libc::fork() } {
            -1 => return Err(errno()),
            0 => child_life(Random(state), start),
            child => {
                let mut status = 0;
                // SAFETY: `status` is ours.
                unsafe { libc::waitpid(child, &raw mut status, 0) };
                children += 1;
            }
        }
        first = (first + 37) % 601;
    }
    println!("fuzzed in {children} children");
    Ok(())
}

fn child_life(mut random: Random, first: u64) -> ! {
    mask(libc::SIG_UNBLOCK);
    // SAFETY: each is a plain call; SIGKILL for itself comes from a timer that no handler can keep away.
    unsafe {
        libc::setsid();
        let mut event: libc::sigevent = std::mem::zeroed();
        event.sigev_notify = libc::SIGEV_SIGNAL;
        event.sigev_signo = libc::SIGKILL;
        let mut timer = std::mem::zeroed();
        libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer);
        let mut when: libc::itimerspec = std::mem::zeroed();
        when.it_value.tv_nsec = 50_000_000;
        libc::timer_settime(timer, 0, &raw const when, std::ptr::null_mut());
    }
    let buffer = vec![0x41_u8; 1 << 16].leak().as_mut_ptr() as u64;
    for step in 0..601 {
        let number = (first + step) % 601;
        let arguments = std::array::from_fn(|_| random.argument(buffer));
        call(number as i64, arguments);
    }
    // SAFETY: leaves at once.
    unsafe { libc::_exit(0) }
}

/// What children send to everyone should end this process as rarely as can be.
fn mask(how: libc::c_int) {
    // SAFETY: the set is ours.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(how, &raw const all, std::ptr::null_mut());
    }
}

/// xorshift64*: the same sequence for the same seed, everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn argument(&mut self, buffer: u64) -> u64 {
        match self.next() % 8 {
            0 => 0,
            1 => self.next() % 8,
            2 => self.next() % 1024,
            3 => u64::MAX,
            4 => 1 << (self.next() % 64),
            5 | 6 => buffer + self.next() % 4096,
            _ => self.next(),
        }
    }
}
