//! What the tests run besides our own code, and the Debian packages that bring it.
//!
//! The same table fills the userland of `kernels`. Installs only what is missing, only with apt,
//! and only when that needs no password.

use crate::shell::{Result, find_program, in_ci, is_root, output, run};
use std::path::Path;
use std::process::Command;

/// How to see that a package is there.
enum Proof {
    Program(&'static str),
    File(&'static str),
    PythonModule(&'static str),
}

use Proof::{File, Program, PythonModule};

const NEEDS: &[(&str, Proof)] = &[
    ("bsdutils", Program("script")),
    ("bubblewrap", Program("bwrap")),
    ("ca-certificates", File("/etc/ssl/certs/ca-certificates.crt")),
    ("curl", Program("curl")),
    ("gcc", Program("gcc")),
    ("gdb", Program("gdb")),
    ("git", Program("git")),
    ("iproute2", Program("ip")),
    ("less", Program("less")),
    ("libc6-dev", File("/usr/include/stdio.h")),
    ("mawk", Program("awk")),
    ("make", Program("make")),
    ("nodejs", Program("node")),
    ("openssh-client", Program("ssh-keygen")),
    ("passwd", Program("useradd")),
    ("perl", Program("perl")),
    ("procps", Program("ps")),
    ("python3", Program("python3")),
    ("python3-venv", PythonModule("ensurepip")),
    ("sqlite3", Program("sqlite3")),
    ("strace", Program("strace")),
    ("stress-ng", Program("stress-ng")),
    ("tar", Program("tar")),
    ("tmux", Program("tmux")),
    ("util-linux", Program("setpriv")),
    ("vim", Program("vim")),
    ("xz-utils", Program("xz")),
];

/// Every package of the table, for a userland made from nothing.
pub fn all() -> impl Iterator<Item = &'static str> {
    NEEDS.iter().map(|(package, _)| *package)
}

/// Installs what is missing, or says what that will cost. In CI a gap is an error.
pub fn ensure() -> Result {
    let missing: Vec<&str> = missing();
    if missing.is_empty() {
        return Ok(());
    }
    println!("install: {}", missing.join(" "));
    let Err(reason) = install(&missing) else {
        return Ok(());
    };
    let text = format!("not installed: {}: {reason}\nhint: apt-get install {}", missing.join(" "), missing.join(" "));
    if in_ci() {
        return Err(text);
    }
    println!("{text}\ntests that need these will say that they were skipped");
    Ok(())
}

/// Installs packages as root, directly or through a `sudo` that asks nothing.
pub fn install(packages: &[&str]) -> Result {
    let apt = find_program("apt-get").ok_or("there is no apt-get here")?;
    let prefix: &[&str] = if is_root() {
        &["env"]
    } else if can_sudo() {
        &["sudo", "-n", "env"]
    } else {
        return Err("installing needs root, and `sudo -n` does not give it".into());
    };
    let apt_get = |words: &[&str]| {
        let mut command = Command::new(prefix[0]);
        command.args(&prefix[1..]);
        command.arg("DEBIAN_FRONTEND=noninteractive").arg(&apt);
        command.args(words).stdin(std::process::Stdio::null());
        command
    };
    run(&mut apt_get(&["update", "-qq"]))?;
    let words = ["install", "-qq", "--yes", "--no-install-recommends"];
    run(apt_get(&words).args(packages))
}

pub fn can_sudo() -> bool {
    output(Command::new("sudo").args(["-n", "true"])).is_ok()
}

fn missing() -> Vec<&'static str> {
    let absent = NEEDS.iter().filter(|(_, proof)| !proof.holds());
    absent.map(|(package, _)| *package).collect()
}

impl Proof {
    fn holds(&self) -> bool {
        match self {
            Program(name) => find_program(name).is_some(),
            File(path) => Path::new(path).exists(),
            PythonModule(name) => find_program("python3")
                .is_some_and(|python| output(Command::new(python).args(["-c", &format!("import {name}")])).is_ok()),
        }
    }
}
