//! One round of the tests: every staged binary under one identity, then a look at what is left.

use crate::identity::Identity;
use crate::leftovers::Before;
use crate::shell::{Result, SYSTEM_PATH};
use crate::stage::Stage;
use crate::suite::{Tally, run_binary};
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// What one round is asked to do.
#[derive(Debug)]
pub struct Round<'a> {
    pub stage: &'a Stage,
    /// Words to look for in test names; none means all.
    pub filters: &'a [String],
    /// How long one binary may take.
    pub limit_seconds: u32,
    /// Where the Rust toolchain is, for tests that build with it.
    pub toolchain: Option<&'a Path>,
    /// More variables for the tests.
    pub env: Vec<(String, OsString)>,
}

impl Round<'_> {
    /// Runs the round. What is left behind afterwards counts as one failed test.
    pub fn run(&self, identity: &Identity) -> Result<Tally> {
        let own = self.stage.dir.join(identity.who.to_string());
        for folder in ["", "home", "tmp"] {
            identity.make_directory(&own.join(folder))?;
        }
        let before = Before::look(&self.stage.dir, identity);
        let mut tally = Tally::default();
        for binary in self.stage.tests()? {
            let name = binary.file_name().unwrap_or_default().to_string_lossy();
            println!("\n== {name}, as {}", identity.who);
            let mut command = self.command(identity, Path::new("timeout"));
            // In our own process group, so that Ctrl-C reaches the tests too.
            command.args(["--foreground", "--kill-after=5"]);
            command.arg(self.limit_seconds.to_string());
            tally += run_binary(&name, command.arg(&binary), self.filters)?;
        }
        let left = before.left_behind(identity);
        if !left.is_empty() {
            println!("\nleft behind, as {}:", identity.who);
            tally.failed += 1;
        }
        for thing in left {
            println!("  {thing}");
            thing.end();
        }
        Ok(tally)
    }

    /// A program run as the identity, where tests run, with what tests see.
    pub fn command(&self, identity: &Identity, program: &Path) -> Command {
        let mut env = self.environment(identity);
        env.extend(self.env.iter().cloned());
        let mut command = identity.command(&env, program);
        command.current_dir(self.stage.dir.join("repo"));
        command
    }

    fn path(&self) -> OsString {
        let mut path = OsString::new();
        if let Some(toolchain) = self.toolchain {
            path.push(toolchain.join("bin"));
            path.push(":");
        }
        path.push(SYSTEM_PATH);
        path
    }

    fn environment(&self, identity: &Identity) -> Vec<(String, OsString)> {
        let own = self.stage.dir.join(identity.who.to_string());
        let repo = self.stage.dir.join("repo");
        let mut env: Vec<(String, OsString)> = vec![
            ("PATH".into(), self.path()),
            ("HOME".into(), own.join("home").into()),
            ("TMPDIR".into(), own.join("tmp").into()),
            ("USER".into(), identity.name.clone().into()),
            ("LOGNAME".into(), identity.name.clone().into()),
            ("SHELL".into(), "/bin/bash".into()),
            ("LANG".into(), "C.UTF-8".into()),
            ("STOCKADE_BIN".into(), self.stage.program("stockade").into()),
            ("STOCKADE_PROBE".into(), self.stage.program("probe").into()),
            ("STOCKADE_REPO".into(), repo.clone().into()),
            ("CARGO_MANIFEST_DIR".into(), repo.into()),
        ];
        for (key, value) in std::env::vars_os() {
            let Ok(key) = key.into_string() else { continue };
            if ["CI", "TERM", "RUST_BACKTRACE"].contains(&&*key) || key.starts_with("STOCKADE_TEST_") {
                env.push((key, value));
            }
        }
        env
    }
}
