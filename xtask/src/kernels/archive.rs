//! Debian's archive, read through a private `apt` that leaves the machine's own alone.
//!
//! The mirror is the one this machine already uses, asked of `apt` at run time, so that no host is
//! written down here and proxies, keys and credentials go on working. Never installs anything:
//! packages are downloaded and unpacked under `target/kernels`.

use crate::shell::{About, Result, output, run_quietly};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One set of suites with its own lists and cache.
pub struct Archive {
    dir: PathBuf,
    preferred: String,
}

impl Archive {
    /// Opens the suites, the preferred one first, and reads their package lists.
    pub fn open(cache: &Path, suites: &[&str]) -> Result<Archive> {
        let archive = Archive { dir: cache.join("apt").join(suites[0]), preferred: suites[0].to_owned() };
        for part in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(archive.dir.join(part)).about("apt directories")?;
        }
        let sources = sources(suites)?;
        fs::write(archive.dir.join("sources.list"), sources).about("sources.list")?;
        run_quietly(archive.apt("apt-get").arg("update"))?;
        Ok(archive)
    }

    /// Names and relations of the packages that `package` depends on directly.
    pub fn depends(&self, package: &str) -> Result<Vec<String>> {
        let text = output(self.apt("apt-cache").args(["depends", "--no-recommends", "--no-suggests", package]))?;
        let names = text.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
        Ok(names.map(str::to_owned).collect())
    }

    /// Downloads one package and unpacks it into `root`.
    pub fn unpack(&self, package: &str, root: &Path) -> Result {
        let downloads = self.dir.join("downloads");
        let _ = fs::remove_dir_all(&downloads);
        fs::create_dir_all(&downloads).about(downloads.display())?;
        let mut download = self.apt("apt-get");
        download.args(["download", package]);
        run_quietly(download.current_dir(&downloads))?;
        unpack_all(&downloads, root)
    }

    /// Downloads a package with everything it needs that is not installed here, and unpacks it all.
    pub fn unpack_with_missing(&self, package: &str, root: &Path) -> Result {
        let archives = self.dir.join("cache/archives");
        run_quietly(self.apt("apt-get").args([
            "install",
            "--yes",
            "--download-only",
            "--no-install-recommends",
            package,
        ]))?;
        unpack_all(&archives, root)
    }

    fn apt(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let dir = self.dir.display();
        for option in [
            format!("Dir::Etc::SourceList={dir}/sources.list"),
            "Dir::Etc::SourceParts=/dev/null".into(),
            "Dir::Etc::PreferencesParts=/dev/null".into(),
            format!("Dir::State::Lists={dir}/lists"),
            format!("Dir::Cache={dir}/cache"),
            format!("APT::Default-Release={}", self.preferred),
            "Acquire::Languages=none".into(),
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".into(),
            "APT::Sandbox::User=root".into(),
            "Debug::NoLocking=true".into(),
        ] {
            command.args(["-o", &option]);
        }
        command
    }
}

/// Lines of a `sources.list` for some suites on this machine's mirror.
pub fn sources(suites: &[&str]) -> Result<String> {
    let mirror = mirror()?;
    let keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
    let signed = if Path::new(keyring).exists() { format!("[signed-by={keyring}] ") } else { String::new() };
    let line = |suite: &&str| format!("deb {signed}{mirror} {suite} main\n");
    Ok(suites.iter().map(line).collect())
}

/// This machine's Debian release, such as `bookworm`.
pub fn codename() -> Result<String> {
    let text = fs::read_to_string("/etc/os-release").about("/etc/os-release")?;
    let value = |key: &str| {
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
    };
    match (value("ID"), value("VERSION_CODENAME")) {
        (Some("debian"), Some(name)) => Ok(name.to_owned()),
        _ => Err("this is not a Debian release\nhint: run `cargo xtask kernels` on Debian 12 or later".into()),
    }
}

fn mirror() -> Result<String> {
    let release = codename()?;
    let format = "$(REPO_URI) $(RELEASE)";
    let text = output(Command::new("apt-get").args(["indextargets", "--format", format, "Created-By: Packages"]))?;
    let mut pairs = text.lines().filter_map(|line| line.split_once(' '));
    let found = pairs.find(|(_, suite)| *suite == release || *suite == "stable");
    found
        .map(|(uri, _)| uri.to_owned())
        .ok_or_else(|| format!("apt has no source for `{release}`\nhint: run `apt-get update` first"))
}

fn unpack_all(from: &Path, root: &Path) -> Result {
    fs::create_dir_all(root).about(root.display())?;
    for entry in fs::read_dir(from).about(from.display())? {
        let path = entry.about(from.display())?.path();
        if path.extension().is_some_and(|end| end == "deb") {
            run_quietly(Command::new("dpkg-deb").arg("-x").args([&path, root]))?;
        }
    }
    Ok(())
}
