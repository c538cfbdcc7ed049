//! A directory that any user can read, with everything a test run needs.
//!
//! A checkout often lies where an ordinary user cannot look. Test binaries, `stockade`, the probe
//! and the repository's data are copied out of it; tests find them through `STOCKADE_BIN`,
//! `STOCKADE_PROBE` and `STOCKADE_REPO`. `kernels` packs the same directory into a disk.

use crate::shell::{About, Result, cargo, output, repo, run_quietly};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What `cargo` built for a test run.
#[derive(Debug, Default)]
pub struct Built {
    pub tests: Vec<TestBinary>,
    stockade: PathBuf,
    probe: PathBuf,
}

#[derive(Debug)]
pub struct TestBinary {
    pub name: String,
    path: PathBuf,
    /// A file of `tests/`, not the unit tests of a crate.
    pub integration: bool,
}

/// Builds everything once and says where it lies.
pub fn build() -> Result<Built> {
    let mut command = cargo();
    command.args(["test", "--no-run", "--workspace"]);
    command.arg("--message-format=json-render-diagnostics");
    let done = command.stderr(Stdio::inherit()).output().about("cargo")?;
    if !done.status.success() {
        return Err("the tests do not build".into());
    }
    let mut built = Built::default();
    for line in String::from_utf8_lossy(&done.stdout).lines() {
        built.note(&serde_json::from_str(line).about("cargo's messages")?);
    }
    built.tests.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(built)
}

impl Built {
    fn note(&mut self, message: &Value) {
        let Some(path) = message["executable"].as_str().map(PathBuf::from) else {
            return;
        };
        let target = &message["target"];
        let name = target["name"].as_str().unwrap_or_default();
        let kind = target["kind"][0].as_str().unwrap_or_default();
        let is_test = message["profile"]["test"] == true;
        match (is_test, kind, name) {
            // The probe lies below tests/, where cargo takes every folder for a test.
            (true, "test", "probe") => {}
            (true, "test", name) => self.tests.push(TestBinary::new(name, path, true)),
            (true, kind, name) => {
                let name = format!("{name}-{kind}-unit");
                self.tests.push(TestBinary::new(&name, path, false));
            }
            (false, "bin", "stockade") => self.stockade = path,
            (false, "example", "probe") => self.probe = path,
            _ => {}
        }
    }
}

impl TestBinary {
    fn new(name: &str, path: PathBuf, integration: bool) -> TestBinary {
        TestBinary { name: name.to_owned(), path, integration }
    }
}

/// A staged run on disk.
#[derive(Clone, Debug)]
pub struct Stage {
    pub dir: PathBuf,
}

/// What tests read from the repository.
const DATA: &[&str] = &[".ci", "Cargo.lock", "Cargo.toml", "README.md", "docs", "policies", "src", "tests"];

impl Stage {
    /// Copies the chosen test binaries, the programs and the data into a new directory.
    pub fn fill(dir: &Path, built: &Built, choose: impl Fn(&TestBinary) -> bool) -> Result<Stage> {
        let stage = Stage { dir: dir.to_path_buf() };
        for folder in ["tests", "bin", "repo"] {
            fs::create_dir_all(dir.join(folder)).about(dir.display())?;
        }
        for binary in built.tests.iter().filter(|binary| choose(binary)) {
            copy(&binary.path, &dir.join("tests").join(&binary.name))?;
        }
        copy(&built.stockade, &stage.program("stockade"))?;
        copy(&built.probe, &stage.program("probe"))?;
        for part in DATA.iter().map(|part| repo().join(part)) {
            if part.exists() {
                let into = dir.join("repo");
                run_quietly(Command::new("cp").arg("-r").args([&part, &into]))?;
            }
        }
        run_quietly(Command::new("chmod").args(["-R", "u+w,a+rX"]).arg(dir))?;
        fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).about(dir.display())?;
        Ok(stage)
    }

    pub fn program(&self, name: &str) -> PathBuf {
        self.dir.join("bin").join(name)
    }

    /// Names of the staged test binaries, in order.
    pub fn tests(&self) -> Result<Vec<PathBuf>> {
        let folder = self.dir.join("tests");
        let entries = fs::read_dir(&folder).about(folder.display())?;
        let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        Ok(paths)
    }
}

/// Where the running Rust toolchain lies, for the tests that build with it.
pub fn toolchain() -> Option<PathBuf> {
    let text = output(Command::new("rustc").args(["--print", "sysroot"])).ok()?;
    Some(PathBuf::from(text.trim()))
}

fn copy(from: &Path, to: &Path) -> Result {
    fs::copy(from, to).map(|_| ()).about(format!("copy {} to {}", from.display(), to.display()))
}
