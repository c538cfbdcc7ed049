//! A directory of one test's own, laid out like a small host: who the operator is, where things lie.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use stockade::policy::{Operator, Overrides, Policy};

/// `work`, `home`, `state/stockade/coder`, `program`, `policies` and `a-file`; removed when dropped.
pub struct Scratch(PathBuf);

static MADE: AtomicU32 = AtomicU32::new(0);

impl Scratch {
    pub fn new() -> Self {
        let name = format!("policies-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let top = std::env::temp_dir().canonicalize().expect("a temporary directory").join(name);
        let scratch = Scratch(top);
        for directory in ["work/sub", "home/.ssh", "state/stockade/coder", "program", "policies"] {
            fs::create_dir_all(scratch.path(directory)).expect("a new directory");
        }
        scratch.chmod("", 0o755).chmod("policies", 0o755);
        scratch.write("a-file", "");
        scratch
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// `{tmp}` in the text is this directory.
    pub fn write(&self, name: &str, text: &str) -> &Self {
        fs::write(self.path(name), text.replace("{tmp}", &self.0.display().to_string())).expect("a new file");
        self.chmod(name, 0o644)
    }

    pub fn chmod(&self, name: &str, mode: u32) -> &Self {
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).expect("an own file");
        self
    }

    pub fn operator(&self) -> Operator {
        Operator {
            uid: nix::unistd::geteuid().as_raw(),
            homes: vec![self.path("home")],
            states: vec![self.path("state/stockade")],
            program: Some(self.path("program")),
            cwd: self.path("work"),
        }
    }

    /// The policy of this text, or its error with `{tmp}` put back.
    pub fn load(&self, text: &str) -> Result<Policy, String> {
        self.write("policies/case.toml", text);
        self.load_with("policies/case.toml", None, &Overrides::default())
    }

    /// As the command line would: a file of this directory or a shipped name, a workspace, flags.
    pub fn load_with(&self, selector: &str, workspace: Option<&Path>, overrides: &Overrides) -> Result<Policy, String> {
        let file = self.path(selector);
        let selector = if selector.contains('/') { file.to_str().expect("plain names") } else { selector };
        Policy::load_as(&self.operator(), Some(selector), workspace, overrides)
            .map_err(|error| self.mask(&error.to_string()))
    }

    /// `{tmp}` for this directory's own name, and carets under it as many as it then has letters.
    pub fn mask(&self, text: &str) -> String {
        let name = self.0.display().to_string();
        let longer = name.len() - "{tmp}".len();
        let mut lines: Vec<String> = Vec::new();
        for line in text.lines() {
            let under = lines.last().is_some_and(|above| above.contains("{tmp}"));
            let carets = line.matches('^').count();
            if under && carets > longer {
                lines.push(line.replacen(&"^".repeat(longer), "", 1));
            } else {
                lines.push(line.replace(&name, "{tmp}"));
            }
        }
        lines.join("\n")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A test may have taken away its own right to look inside.
        for directory in ["policies", "work/sub"] {
            let _ = fs::set_permissions(self.path(directory), fs::Permissions::from_mode(0o755));
        }
        let _ = fs::remove_dir_all(&self.0);
    }
}
