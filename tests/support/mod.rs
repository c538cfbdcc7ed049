//! What every wall's tests share: a cell from a policy text, a workspace, and the probe inside it.
#![expect(dead_code, reason = "each test file uses its own part of this")]

pub mod cases;

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The program under test.
pub fn stockade() -> PathBuf {
    std::env::var_os("STOCKADE_BIN").map_or_else(|| env!("CARGO_BIN_EXE_stockade").into(), PathBuf::from)
}

/// The in-cell probe, which `cargo test` builds as an example.
pub fn probe() -> PathBuf {
    let built = || stockade().parent().expect("the program is in a directory").join("examples/probe");
    let path = std::env::var_os("STOCKADE_PROBE").map_or_else(built, PathBuf::from);
    assert!(path.is_file(), "{} is missing: run `cargo build --examples`", path.display());
    path
}

/// Where the repository's own files are.
pub fn repo() -> PathBuf {
    std::env::var_os("STOCKADE_REPO").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from)
}

/// Whether the tests run as root.
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// A directory that goes away with the test.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("stockade-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a scratch directory");
        Scratch(path.canonicalize().expect("a scratch directory"))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file below it, with its parents, and returns its path.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(&path, text).expect("a file");
        path
    }

    pub fn directory(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(&path).expect("a directory");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    pub fn new(output: &Output) -> Self {
        use std::os::unix::process::ExitStatusExt;
        let code = output.status.code().unwrap_or_else(|| 128 + output.status.signal().unwrap_or(127));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Outcome { code, stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }
}

/// A cell to be: a workspace, a policy, flags. Every `run` makes a fresh cell of it.
#[derive(Debug)]
pub struct Yard {
    pub workspace: Scratch,
    /// Holds the policy and the probe, out of the workspace.
    pub beside: Scratch,
    policy: PathBuf,
    flags: Vec<String>,
}

impl Yard {
    /// The shipped `default` policy.
    pub fn new() -> Self {
        Self::with("")
    }

    /// A policy that extends `default` with the given text. `{beside}` stands for the directory beside the workspace.
    pub fn with(text: &str) -> Self {
        Self::between(Scratch::new(), Scratch::new(), text)
    }

    fn between(workspace: Scratch, beside: Scratch, text: &str) -> Self {
        let inside = beside.directory("probe").join("probe");
        cases::copy(&probe(), &inside);
        fs::set_permissions(&inside, fs::Permissions::from_mode(0o755)).expect("a mode");
        let text = text.replace("{beside}", &beside.path().display().to_string());
        let policy = beside.file("policy.toml", &format!("extends = \"default\"\nagent = \"test\"\n{text}"));
        fs::set_permissions(&policy, fs::Permissions::from_mode(0o600)).expect("a mode");
        Yard { workspace, beside, policy, flags: Vec::new() }
    }

    /// One more word on stockade's own command line.
    pub fn flag(mut self, word: impl Into<String>) -> Self {
        self.flags.push(word.into());
        self
    }

    /// The path of the probe, the same inside and outside.
    pub fn probe_path(&self) -> String {
        self.beside.path().join("probe/probe").display().to_string()
    }

    /// `stockade run …` up to and without `--`.
    pub fn command(&self) -> Command {
        let mut command = Command::new(stockade());
        command.arg("run").arg("--policy").arg(&self.policy);
        command.arg("--workspace").arg(self.workspace.path());
        command.arg("--ro").arg(self.beside.path().join("probe"));
        command.args(&self.flags).current_dir(self.workspace.path());
        command.stdin(Stdio::null());
        command
    }

    /// Runs a program with arguments inside.
    pub fn run(&self, argv: &[&str]) -> Outcome {
        let output = self.command().arg("--").args(argv).output().expect("stockade starts");
        Outcome::new(&output)
    }

    /// Runs a shell line inside.
    pub fn shell(&self, line: &str) -> Outcome {
        self.run(&["/bin/bash", "-c", line])
    }

    /// Runs a program inside with the given standard input.
    pub fn run_with_input(&self, argv: &[&str], input: &[u8]) -> Outcome {
        let mut child = self
            .command()
            .arg("--")
            .args(argv)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("stockade starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        let input = input.to_vec();
        let feeder = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let output = child.wait_with_output().expect("stockade ends");
        feeder.join().expect("the input was taken");
        Outcome::new(&output)
    }

    /// The probe's errno for one attempt inside; 0 when it worked.
    pub fn probe(&self, words: &[&str]) -> i32 {
        let path = self.probe_path();
        let argv: Vec<&str> = std::iter::once(path.as_str()).chain(words.iter().copied()).collect();
        let outcome = self.run(&argv);
        assert!(outcome.code < 125 || outcome.code == 250, "stockade itself failed: {outcome:?}");
        assert_ne!(outcome.code, 250, "the probe does not know {words:?}");
        outcome.code
    }

    /// The probe's errno for one attempt outside any cell: the control.
    pub fn probe_outside(&self, words: &[&str]) -> i32 {
        let status = Command::new(self.probe_path()).args(words).status().expect("the probe starts");
        status.code().expect("the probe exits")
    }
}
