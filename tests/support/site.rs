//! Where a server is started: a workspace, a policy, an agent of its own, a state directory.
//!
//! Every server of a site works for the same agent, one after the other or at once. What the agent leaves on disk goes
//! with the site.

use crate::ends::{SOON, groups_of, mounts_of, processes_with};
use crate::mcp::{Client, Era};
use crate::support::{Scratch, cases, is_root, probe, stockade};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

#[derive(Debug)]
pub struct Site {
    pub workspace: Scratch,
    /// Holds the policy, the probe and the servers' logs, out of the workspace.
    pub beside: Scratch,
    pub agent: String,
    policy: PathBuf,
    /// `XDG_STATE_HOME`, which agents of one user share.
    home: Arc<Scratch>,
}

impl Site {
    /// The shipped `default` policy.
    pub fn new() -> Self {
        Self::with("")
    }

    /// A policy that extends `default` with the given text. `{beside}` stands for the directory beside the workspace.
    pub fn with(text: &str) -> Self {
        Self::extending("default", text)
    }

    /// A policy that extends the shipped one of that name.
    pub fn extending(parent: &str, text: &str) -> Self {
        Self::at(Arc::new(Scratch::new()), parent, text)
    }

    /// Another agent of the same user, with the same state directory above its own.
    pub fn neighbour(&self, text: &str) -> Self {
        Self::at(Arc::clone(&self.home), "default", text)
    }

    fn at(home: Arc<Scratch>, parent: &str, text: &str) -> Self {
        let (workspace, beside) = (Scratch::new(), Scratch::new());
        let inside = beside.directory("probe").join("probe");
        cases::copy(&probe(), &inside);
        fs::set_permissions(&inside, fs::Permissions::from_mode(0o755)).expect("a mode");
        let place = beside.path().display().to_string();
        let base = format!("extends = \"{parent}\"\n[filesystem]\nread_only_roots = [\"{place}/probe\"]\n");
        beside.file("base.toml", &base);
        let agent = beside.path().file_name().expect("a name").to_string_lossy().into_owned();
        let text = text.replace("{beside}", &place);
        let policy = beside.file("policy.toml", &format!("extends = \"./base.toml\"\nagent = \"{agent}\"\n{text}"));
        for file in [&policy, &beside.path().join("base.toml")] {
            fs::set_permissions(file, fs::Permissions::from_mode(0o600)).expect("a mode");
        }
        Site { workspace, beside, agent, policy, home }
    }

    /// The path of the probe, the same inside and outside.
    pub fn probe_path(&self) -> String {
        self.beside.path().join("probe/probe").display().to_string()
    }

    /// Where this agent's state lies.
    pub fn state(&self) -> PathBuf {
        let top = if is_root() { Path::new("/var/lib") } else { self.home.path() };
        top.join("stockade").join(&self.agent)
    }

    /// `stockade serve` for this agent.
    pub fn command(&self) -> Command {
        let mut command = Command::new(stockade());
        command.arg("serve").arg("--policy").arg(&self.policy);
        command.arg("--workspace").arg(self.workspace.path());
        command.current_dir(self.workspace.path()).env("XDG_STATE_HOME", self.home.path());
        command
    }

    /// The same, started by a shell that prepares something first; `"$@"` becomes the server.
    pub fn command_after(&self, script: &str) -> Command {
        self.wrapped(Command::new("sh"), script)
    }

    /// The same in a mount namespace of its own, so that the script may mount.
    pub fn command_apart(&self, script: &str) -> Command {
        let mut command = Command::new("unshare");
        // Whoever may not mount becomes root of a user namespace for it, and keeps the name inside.
        let user: &[&str] = if is_root() { &[] } else { &["--user", "--map-current-user", "--keep-caps"] };
        command.args(user).args(["--mount", "--propagation", "private", "sh"]);
        self.wrapped(command, script)
    }

    fn wrapped(&self, mut command: Command, script: &str) -> Command {
        let inside = self.command();
        command.args(["-c", &format!("{script}\nexec \"$@\""), "sh"]).arg(inside.get_program()).args(inside.get_args());
        command.current_dir(self.workspace.path()).env("XDG_STATE_HOME", self.home.path());
        command
    }

    /// A server that has been greeted.
    pub fn open(&self) -> Client {
        Client::open(self.command(), self.log(), Era::Handshake)
    }

    /// A server that is spoken to as of 2026-07-28.
    pub fn open_modern(&self) -> Client {
        Client::open(self.command(), self.log(), Era::Modern)
    }

    /// A server that has heard nothing yet.
    pub fn open_silent(&self) -> Client {
        Client::start(self.command(), self.log(), Era::Handshake)
    }

    /// A server started by another command than [`Site::command`], and greeted.
    pub fn open_by(&self, command: Command) -> Client {
        Client::open(command, self.log(), Era::Handshake)
    }

    /// A file for what a server says on stderr.
    pub fn log(&self) -> PathBuf {
        let next = fs::read_dir(self.beside.path()).expect("a directory").count();
        self.beside.path().join(format!("server-{next}.log"))
    }

    /// Waits until nothing of a server is left: no process, no cgroup, no mount.
    pub fn nothing_is_left(&self, broker: u32, marker: &str) {
        let left = || (processes_with(marker), groups_of(broker), mounts_of(self.workspace.path()));
        let deadline = Instant::now() + SOON;
        while left() != (vec![], vec![], vec![]) {
            assert!(Instant::now() < deadline, "left behind by {broker}: {:?}", left());
            std::thread::yield_now();
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(self.state()));
    }
}
