//! Why a request will not be carried out: the thing, the rule, and what would be accepted.

use crate::host::system::Unsearchable;
use std::fmt;
use std::path::PathBuf;

/// A wall, by the name that `doctor` and `[enforcement]` use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wall {
    Namespaces,
    Landlock,
    Seccomp,
    Cgroups,
}

impl Wall {
    pub fn name(self) -> &'static str {
        match self {
            Wall::Namespaces => "namespaces",
            Wall::Landlock => "landlock",
            Wall::Seccomp => "seccomp",
            Wall::Cgroups => "cgroups",
        }
    }

    /// The host's findings that this wall needs.
    pub fn findings(self) -> &'static [&'static str] {
        match self {
            Wall::Namespaces => &["user namespaces", "mounts"],
            Wall::Landlock => &["landlock"],
            Wall::Seccomp => &["seccomp"],
            Wall::Cgroups => &["cgroups"],
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The host cannot enforce a wall that the policy requires.
    Unavailable {
        wall: Wall,
        what: String,
        remedy: String,
    },
    Contradiction {
        why: String,
    },
    /// An allowed script whose interpreter is not allowed could never start.
    Stranded {
        script: PathBuf,
        interpreter: PathBuf,
    },
    OwnedByRoot,
    ManyOwners,
    Command {
        program: String,
        rule: String,
    },
    Directory {
        path: PathBuf,
        roots: Vec<PathBuf>,
    },
    Argument {
        what: String,
        rule: String,
    },
    /// Somewhere in a root it cannot be told whether something is to be hidden.
    Unsearchable {
        root: PathBuf,
        pattern: String,
        why: String,
    },
    NoShell,
}

impl Refusal {
    /// What the agent or its operator can do about it.
    pub fn hint(&self) -> String {
        match self {
            Refusal::Unavailable { wall, remedy, .. } if *wall != Wall::Namespaces => {
                format!(
                    "{remedy}\nor, to go on without this wall, say `{} = \"if-available\"` under `[enforcement]`",
                    wall.name()
                )
            }
            Refusal::Unavailable { remedy, .. } => remedy.clone(),
            Refusal::Contradiction { .. } => "drop one of the two from the policy".into(),
            Refusal::Stranded { interpreter, .. } => {
                format!("add `{}` to `allowed`, knowing that it can then be run directly too", interpreter.display())
            }
            Refusal::OwnedByRoot => "use `host_user = \"private\"`, or give the root to an ordinary user".into(),
            Refusal::ManyOwners => "use `host_user = \"private\"`, which maps each root's owner".into(),
            Refusal::Command { .. } => "`stockade policy show` prints the command lists in force".into(),
            Refusal::Directory { roots, .. } => {
                let roots: Vec<String> = roots.iter().map(|root| format!("`{}`", root.display())).collect();
                format!("use a directory below {}, `/tmp` or `/home/agent`", roots.join(", "))
            }
            Refusal::Argument { rule, .. } => rule.clone(),
            Refusal::Unsearchable { .. } => {
                "make it readable, move it out of the root, or name the hidden paths without `**/`".into()
            }
            Refusal::NoShell => "give the program and its arguments as `argv`".into(),
        }
    }
}

impl From<Unsearchable> for Refusal {
    fn from(unsearchable: Unsearchable) -> Self {
        let Unsearchable { root, pattern, why } = unsearchable;
        Refusal::Unsearchable { root, pattern, why }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Unavailable { wall, what, .. } => {
                write!(f, "this host cannot enforce `{}`, which the policy requires: {what}", wall.name())
            }
            Refusal::Contradiction { why } => f.write_str(why),
            Refusal::Stranded { script, interpreter } => write!(
                f,
                "`{}` is allowed but is a script for `{}`, which is not",
                script.display(),
                interpreter.display()
            ),
            Refusal::OwnedByRoot => f.write_str(
                "a read-write root belongs to root, and `host_user = \"owner\"` would run the agent as root",
            ),
            Refusal::ManyOwners => f.write_str(
                "the read-write roots belong to different users, and `host_user = \"owner\"` can be only one",
            ),
            Refusal::Command { program, rule } => write!(f, "`{program}` is not allowed: {rule}"),
            Refusal::Directory { path, .. } => write!(f, "`{}` is outside every root of the policy", path.display()),
            Refusal::Argument { what, .. } => f.write_str(what),
            Refusal::Unsearchable { root, pattern, why } => {
                write!(f, "`{}` cannot be searched for `{pattern}`, which the policy hides: {why}", root.display())
            }
            Refusal::NoShell => f.write_str("the policy says `shell = false`: no command strings"),
        }
    }
}
