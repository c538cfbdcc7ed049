//! Walls as tables: many attempts of the probe, one cell, and for each the errno it must come to.
//!
//! `{w}` in an attempt is the workspace and `{b}` the directory beside it.

use super::{Outcome, Scratch, Yard};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where a cell has its own files in place of the host's, and Landlock grants everything.
const PRIVATE: [&str; 4] = ["/tmp", "/var/tmp", "/dev/shm", "/home/agent"];

impl Scratch {
    /// A directory out of the cell's private ones where this user has any, so that both file walls stand around it.
    pub fn away() -> Self {
        let places =
            [std::env::var_os("STOCKADE_TEST_DIR"), Some(env!("CARGO_TARGET_TMPDIR").into()), std::env::var_os("HOME")];
        let scratch = Scratch::new();
        let name = scratch.path().file_name().expect("a name");
        for place in places.into_iter().flatten().map(PathBuf::from) {
            let path = place.join(name);
            if !is_private(&place) && std::fs::create_dir(&path).is_ok() {
                return Scratch(path.canonicalize().expect("a scratch directory"));
            }
        }
        scratch
    }
}

/// Copies a program, in another process: what this one has open for writing, and a fork of another test inherits, cannot run.
pub fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg(from).arg(to).status().expect("cp starts");
    assert!(copied.success(), "a copy of {}", from.display());
}

/// Whether a cell has its own directory above this path.
pub fn is_private(path: &Path) -> bool {
    PRIVATE.iter().any(|own| path.starts_with(own))
}

/// An attempt in the probe's words, and its errno; 0 when it works.
pub type Case<'a> = (&'a str, i32);

impl Yard {
    /// As [`Yard::with`], with both directories away from `/tmp`.
    pub fn away(text: &str) -> Self {
        Self::between(Scratch::away(), Scratch::away(), text)
    }

    /// What comes of each attempt inside one cell.
    pub fn inside(&self, cases: &[Case<'_>]) {
        let probe = self.probe_path();
        let words = self.words(cases);
        let argv: Vec<&str> = [probe.as_str(), "each"].into_iter().chain(words.iter().map(String::as_str)).collect();
        let outcome = self.run(&argv);
        assert_eq!(outcome.code, 0, "the probe itself failed: {outcome:?}");
        self.compare("inside", cases, &outcome.stdout);
    }

    /// The same where the kernel has no Landlock; the policy must allow going without.
    pub fn inside_without_landlock(&self, cases: &[Case<'_>]) {
        let (probe, run) = (self.probe_path(), self.command());
        let mut command = Command::new(&probe);
        command.arg("without-landlock").arg(run.get_program()).args(run.get_args());
        command.args(["--", &probe, "each"]).args(self.words(cases)).current_dir(self.workspace.path());
        let outcome = Outcome::new(&command.output().expect("stockade starts"));
        assert_eq!(outcome.code, 0, "the probe itself failed: {outcome:?}");
        assert!(outcome.stderr.contains("without `landlock`"), "control: it says so: {outcome:?}");
        self.compare("without Landlock", cases, &outcome.stdout);
    }

    /// What comes of each attempt outside any cell.
    pub fn outside(&self, cases: &[Case<'_>]) {
        let mut command = Command::new(self.probe_path());
        command.arg("each").args(self.words(cases)).current_dir(self.workspace.path());
        let outcome = Outcome::new(&command.output().expect("the probe starts"));
        assert_eq!(outcome.code, 0, "the probe itself failed: {outcome:?}");
        self.compare("outside", cases, &outcome.stdout);
    }

    /// Each attempt fails inside with its errno and works outside.
    pub fn denied(&self, cases: &[Case<'_>]) {
        self.inside(cases);
        self.outside(&cases.iter().map(|(attempt, _)| (*attempt, 0)).collect::<Vec<_>>());
    }

    /// The text with the yard's own places put in.
    pub fn fill(&self, text: &str) -> String {
        let place = |path: &Path| path.display().to_string();
        text.replace("{w}", &place(self.workspace.path())).replace("{b}", &place(self.beside.path()))
    }

    fn words(&self, cases: &[Case<'_>]) -> Vec<String> {
        let attempts: Vec<String> = cases.iter().map(|(attempt, _)| self.fill(attempt)).collect();
        attempts.join(" , ").split(' ').map(str::to_owned).collect()
    }

    fn compare(&self, side: &str, cases: &[Case<'_>], printed: &str) {
        // Attempts may print evidence of their own; an errno stands alone on its line.
        let found: Vec<i32> = printed.lines().filter_map(|line| line.parse().ok()).collect();
        assert_eq!(found.len(), cases.len(), "{printed}");
        let wrong: Vec<String> = cases
            .iter()
            .zip(found)
            .filter(|((_, expected), found)| expected != found)
            .map(|((attempt, expected), found)| format!("{attempt}: {}, not {}", name(found), name(*expected)))
            .collect();
        assert!(wrong.is_empty(), "{side}:\n  {}", wrong.join("\n  "));
    }
}

impl Outcome {
    /// Runs what was prepared, to its end.
    pub fn of(command: &mut Command) -> Self {
        Outcome::new(&command.output().expect("stockade starts"))
    }
}

fn name(errno: i32) -> String {
    match errno {
        0 => "worked".to_owned(),
        248 => "killed".to_owned(),
        250 => "no such attempt".to_owned(),
        errno => format!("{:?}", nix::errno::Errno::from_raw(errno)),
    }
}
