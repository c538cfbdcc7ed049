//! The in-cell probe: tries one thing and exits with its errno (0: it worked, 250: no such attempt).
//!
//! One module per wall; each answers the verbs it knows. What is printed is the evidence a test may look at.
#![expect(unsafe_code, reason = "a probe makes the raw system calls that attackers make")]

mod files;
mod kernel;
mod limits;
mod network;
mod processes;
mod proxy;

/// What an attempt came to: the errno.
pub type Attempt = Result<(), i32>;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let attempt = files::attempt(&words)
        .or_else(|| network::attempt(&words))
        .or_else(|| proxy::attempt(&words))
        .or_else(|| processes::attempt(&words))
        .or_else(|| kernel::attempt(&words))
        .or_else(|| limits::attempt(&words));
    match attempt {
        Some(Ok(())) => {}
        Some(Err(errno)) => std::process::exit(errno),
        None => {
            eprintln!("probe: no such attempt: {words:?}");
            std::process::exit(250)
        }
    }
}

/// The errno of the last failed call.
pub fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(249)
}

/// Turns the kernel's answer into an attempt.
pub fn judge(returned: i64) -> Attempt {
    if returned < 0 { Err(errno()) } else { Ok(()) }
}

/// Turns an `io::Result` into an attempt.
pub fn told<T>(result: std::io::Result<T>) -> Attempt {
    result.map(drop).map_err(|error| error.raw_os_error().unwrap_or(249))
}
