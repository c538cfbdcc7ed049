//! The kernel's release as a number that can be compared, and the system calls it lets us make.

use serde::Serialize;

/// `6.8.0-45-generic`, of which only the first two numbers decide anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Release {
    pub text: String,
    pub major: u32,
    pub minor: u32,
}

impl Release {
    pub fn parse(text: &str) -> Release {
        let text = text.trim();
        let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
        let major = numbers.next().unwrap_or(0);
        let minor = numbers.next().unwrap_or(0);
        Release { text: text.to_owned(), major, minor }
    }

    pub fn at_least(&self, major: u32, minor: u32) -> bool {
        (self.major, self.minor) >= (major, minor)
    }
}

/// What stands between us and a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    Open,
    /// The kernel does not know it.
    Unknown,
    /// Something in front of the kernel refuses it: a container's seccomp filter.
    Blocked,
}

impl Call {
    /// From the errno of a call that could not succeed; see `sys::probe`.
    pub fn from_answer(errno: i32) -> Call {
        match errno {
            libc::ENOSYS => Call::Unknown,
            libc::EPERM | libc::EACCES => Call::Blocked,
            _ => Call::Open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_compare_by_their_first_two_numbers() {
        for (text, expect) in [
            ("6.18.44-fc-v445\n", (6, 18)),
            ("5.10.0-33-cloud-amd64", (5, 10)),
            ("6.8.0-45-generic", (6, 8)),
            ("5.15.167.4-microsoft-standard-WSL2", (5, 15)),
            ("7.0-rc3", (7, 0)),
            ("", (0, 0)),
        ] {
            let release = Release::parse(text);
            assert_eq!((release.major, release.minor), expect, "{text}");
        }
        assert!(Release::parse("6.1.0").at_least(5, 13));
        assert!(!Release::parse("5.10.0").at_least(5, 13));
    }
}
