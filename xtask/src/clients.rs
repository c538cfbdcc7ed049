//! MCP clients that others wrote, for tests that want a second opinion: fetched once, kept under `target/clients`.
//!
//! What is fetched is pinned beside the tests that drive it (`tests/clients/requirements.txt`, `package-lock.json`).
//! Debian's Node is too old for the inspector, so its lock names a newer one; npm itself comes as a plain archive.

use crate::shell::{About, Result, find_program, in_ci, repo, run, run_quietly};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

const NPM: &str = "https://registry.npmjs.org/npm/-/npm-10.9.4.tgz";
const NPM_SHA256: &str = "4bfba8a0c823024d1926ec9d97a37a00eb60fd2adf44b3d34a686fc32e8f51e4";

/// Where tests look for the clients.
pub const VARIABLE: &str = "STOCKADE_CLIENTS";

/// The directory of the clients, fetched unless it is there. In CI a gap is an error.
pub fn ensure() -> Result<Option<PathBuf>> {
    let dir = target().join("clients");
    match fetch(&dir) {
        Ok(()) => Ok(Some(dir)),
        Err(reason) if in_ci() => Err(reason),
        Err(reason) => {
            println!("clients were not fetched: {reason}\ntests that need them will say that they were skipped");
            Ok(None)
        }
    }
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or(repo().join("target"), PathBuf::from)
}

fn fetch(dir: &Path) -> Result {
    let pins =
        ["requirements.txt", "package.json", "package-lock.json"].map(|name| repo().join("tests/clients").join(name));
    let wanted: String =
        pins.iter().map(|path| fs::read_to_string(path).about(path.display())).collect::<Result<_>>()?;
    let stamp = dir.join("fetched");
    if fs::read_to_string(&stamp).is_ok_and(|fetched| fetched == wanted) {
        return Ok(());
    }
    println!("fetch: MCP clients for the tests");
    if dir.exists() {
        fs::remove_dir_all(dir).about(dir.display())?;
    }
    thread::scope(|scope| {
        let python = scope.spawn(|| fetch_python(dir, &pins[0]));
        let node = fetch_node(dir, &pins[1..]);
        python.join().map_err(|_| "fetching for Python panicked")?.and(node)
    })?;
    // Read by another user than the one who fetched.
    run_quietly(Command::new("chmod").args(["-R", "a+rX"]).arg(dir))?;
    fs::write(&stamp, wanted).about(stamp.display())
}

fn fetch_python(dir: &Path, requirements: &Path) -> Result {
    let python = find_program("python3").ok_or("there is no python3")?;
    let environment = dir.join("python");
    run(Command::new(python).args(["-m", "venv"]).arg(&environment))?;
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
    run(Command::new(environment.join("bin/python")).args(install).arg(requirements))
}

fn fetch_node(dir: &Path, pins: &[PathBuf]) -> Result {
    let node = find_program("node").ok_or("there is no node")?;
    let (place, npm) = (dir.join("node"), dir.join("npm"));
    for folder in [&place, &npm] {
        fs::create_dir_all(folder).about(folder.display())?;
    }
    for pin in pins {
        let copy = place.join(pin.file_name().unwrap_or_default());
        fs::copy(pin, &copy).about(copy.display())?;
    }
    let archive = npm.join("npm.tgz");
    run(Command::new("curl")
        .args(["--fail", "--silent", "--show-error", "--location", "--output"])
        .arg(&archive)
        .arg(NPM))?;
    check(&archive)?;
    run(Command::new("tar").args(["--extract", "--gzip", "--file"]).arg(&archive).arg("--directory").arg(&npm))?;
    let quiet = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--update-notifier=false"];
    run(Command::new(node)
        .arg(npm.join("package/bin/npm-cli.js"))
        .args(quiet)
        .current_dir(&place)
        .stdout(Stdio::null()))?;
    fs::remove_dir_all(&npm).about(npm.display())
}

fn check(archive: &Path) -> Result {
    let sum = crate::shell::output(Command::new("sha256sum").arg(archive))?;
    match sum.starts_with(NPM_SHA256) {
        true => Ok(()),
        false => Err(format!("{NPM} has changed: {}", sum.trim())),
    }
}
