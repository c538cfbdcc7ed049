//! Desktop Commander, the MCP server most people use for this, to compare with. Fetched once, from npm.

use super::client::Program;
use crate::shell::{About, Result, find_program, repo, run_quietly};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PACKAGE: &str = "@wonderwhy-er/desktop-commander";
const VERSION: &str = "0.2.52";

/// Where its program lies; fetched first where it is not there yet.
pub fn fetch() -> Result<PathBuf> {
    let npm = find_program("npm").ok_or("there is no npm here")?;
    let cache = repo().join("target/desktop-commander");
    let program = cache.join("node_modules").join(PACKAGE).join("dist/index.js");
    if !program.is_file() {
        fs::create_dir_all(&cache).about(cache.display())?;
        // Some mirrors lag behind with a release of this one, which its dependants ask for by the newest number.
        let manifest = serde_json::json!({
            "private": true,
            "dependencies": { PACKAGE: VERSION },
            "overrides": { "typedarray.prototype.slice": "^1.0.5" },
        });
        fs::write(cache.join("package.json"), manifest.to_string()).about(cache.display())?;
        println!("npm install {PACKAGE}@{VERSION}");
        let words = ["install", "--no-audit", "--no-fund", "--ignore-scripts"];
        run_quietly(Command::new(npm).args(words).current_dir(&cache))?;
    }
    Ok(program)
}

/// Started with Node, if this user can read it.
pub fn program(script: &Path) -> Result<Program> {
    let node = find_program("node").ok_or("there is no node here")?;
    fs::File::open(script).about(script.display())?;
    Ok(Program { name: "Desktop Commander", words: vec![OsString::from(node), script.into()] })
}
