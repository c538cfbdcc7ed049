//! `stockade setup`: gives `stockade serve` to an agent's client, on paper or for real.
//!
//! Without `--write` nothing is touched: what to paste or run goes to stdout, where it belongs to stderr. With it the
//! client's own file is edited in place and a backup kept. What clients want is in [`clients`], what they are told to
//! start in [`entry`], how a text is edited in [`edit`], how a file is replaced in [`write`].

mod claude;
mod clients;
mod edit;
mod entry;
mod json;
mod tables;
mod write;

use super::say::{Complaint, printable};
use clap::{Args, ValueEnum};
use clients::{Client, Facts, Places, Scope};
use edit::{Edit, Wanted};
use entry::{Checked, Wish};
use std::path::{Path, PathBuf};
use write::{Home, Target};

/// Room for our longest tool name within the 60 characters that clients allow for both.
const MAX_NAME: usize = 32;

#[derive(Debug, Args)]
pub struct SetupArgs {
    /// The client; without one, they are listed
    #[arg(value_enum)]
    client: Option<Client>,
    /// A policy file, or the name of a shipped policy [default: default]
    #[arg(long, value_name = "FILE|NAME", requires = "client")]
    policy: Option<String>,
    /// Where the agent works [default: the project that the client has open]
    #[arg(long, value_name = "DIR", requires = "client")]
    workspace: Option<PathBuf>,
    /// What the client calls the server
    #[arg(long, value_name = "NAME", default_value = "stockade", value_parser = name, requires = "client")]
    name: String,
    /// For every project of yours, or for the one in the current directory
    #[arg(long, value_enum, default_value = "user", requires = "client")]
    scope: Scope,
    /// Change the client's configuration, keeping a backup, instead of printing what to change
    #[arg(long, requires = "client")]
    write: bool,
}

fn name(word: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !word.is_empty() && word.len() <= MAX_NAME && word.chars().all(plain) {
        return Ok(word.to_owned());
    }
    Err(format!("a name is 1 to {MAX_NAME} letters, digits, `-` and `_`"))
}

/// Everything decided, nothing done.
struct Job {
    client: Client,
    facts: Facts,
    scope: Scope,
    places: Places,
    file: PathBuf,
    checked: Checked,
}

pub fn setup(args: &SetupArgs) -> Result<u8, Complaint> {
    let places = Places::find()?;
    let Some(client) = args.client else {
        list(&places);
        return Ok(0);
    };
    let facts = client.facts();
    let file = client.file(args.scope, &places).ok_or_else(|| {
        Complaint::new(format!("{} has no configuration per project\nhint: leave out `--scope`", facts.title))
    })?;
    let wish = Wish {
        client,
        scope: args.scope,
        name: &args.name,
        policy: args.policy.as_deref(),
        workspace: args.workspace.as_deref(),
    };
    let checked = entry::check(wish, &places)?;
    let job = Job { client, facts, scope: args.scope, places, file, checked };
    job.warn(args.workspace.as_deref());
    if args.write { job.write() } else { job.print() }.map(|()| 0)
}

fn list(places: &Places) {
    for client in Client::value_variants() {
        let name = client.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        let file = client.file(Scope::User, places).unwrap_or_default();
        println!("{name:<15} {:<15} {}", client.facts().title, printable(&file.display().to_string()));
    }
}

impl Job {
    fn warn(&self, workspace: Option<&Path>) {
        if self.checked.agent_writes(&self.file) {
            let file = self.file.display();
            eprintln!("warning: the agent may write `{file}`, and so decide what your client starts outside the cell");
            eprintln!("hint: use `--scope user`, or make the client ask when that file changes");
        }
        if self.client == Client::VsCode && self.scope == Scope::User && workspace.is_none() {
            eprintln!("warning: some versions of VS Code know no `${{workspaceFolder}}` in the file of a user");
            eprintln!("hint: if it says so, use `--scope project` or `--workspace DIR`");
        }
    }

    /// Calls `act` with the entry, whose values must live somewhere.
    fn with_wanted<T>(&self, act: impl FnOnce(Wanted<'_>) -> T) -> T {
        let entry = &self.checked.entry;
        let fields = self.client.fields(entry);
        act(Wanted { servers: self.facts.servers, name: &entry.name, fields: &fields })
    }

    fn fresh(&self) -> String {
        self.with_wanted(|wanted| edit::fresh(&self.facts, wanted))
    }

    fn print(&self) -> Result<(), Complaint> {
        let file = self.file.display();
        if self.client == Client::ClaudeCode {
            println!("{}", claude::line(&self.checked.entry, self.scope));
            match self.scope {
                Scope::User => eprintln!("run this; it writes {file}"),
                Scope::Project => eprintln!("run this in {}; it writes {file}", self.places.project.display()),
            }
        } else {
            print!("{}", self.fresh());
            eprintln!("this belongs in {file}, beside what is there");
        }
        eprintln!("or let `--write` do it");
        Ok(())
    }

    fn write(&self) -> Result<(), Complaint> {
        let home = match self.scope {
            Scope::User => Home::Private,
            Scope::Project => Home::Project(&self.places.project),
        };
        let target = Target::read(&self.file, home).map_err(|complaint| self.by_hand(complaint))?;
        let edited = self.with_wanted(|wanted| edit::edit(&self.facts, target.text(), wanted));
        let edited = edited.map_err(|why| {
            let untouched = format!("`{}` {why}; it is untouched", self.file.display());
            self.by_hand(Complaint::new(untouched))
        })?;
        let (text, before) = match edited {
            Edit::Already => {
                println!("already there: `{}` in {}", self.checked.entry.name, self.file.display());
                return Ok(());
            }
            Edit::Added(text) => (text, claude::Before::Nothing),
            Edit::Replaced(text) => (text, claude::Before::Another),
        };
        let claude = if self.client == Client::ClaudeCode { claude::find() } else { None };
        let backup = match claude {
            Some(claude) => self.ask_claude(&claude, &target, home, before)?,
            None => target.replace(&text).map_err(|error| self.unwritten(&error))?,
        };
        self.report(before, backup.as_deref());
        Ok(())
    }

    fn ask_claude(
        &self,
        claude: &Path,
        target: &Target<'_>,
        home: Home<'_>,
        before: claude::Before,
    ) -> Result<Option<PathBuf>, Complaint> {
        let entry = &self.checked.entry;
        let backup = target.back_up().map_err(|error| self.unwritten(&error))?;
        claude::add(claude, entry, self.scope, before, &self.places.project).inspect_err(|_| {
            // It may have removed the old entry already.
            backup.iter().for_each(|backup| eprintln!("the file as it was: {}", backup.display()));
        })?;
        let after = Target::read(&self.file, home)?;
        let now = self.with_wanted(|wanted| edit::edit(&self.facts, after.text(), wanted));
        if now == Ok(Edit::Already) {
            return Ok(backup);
        }
        Err(Complaint::new(format!(
            "`{}` ended well, but `{}` does not hold the entry\nhint: `claude mcp get {}` shows what it knows",
            claude::line(entry, self.scope),
            self.file.display(),
            entry.name
        )))
    }

    fn report(&self, before: claude::Before, backup: Option<&Path>) {
        let (name, file) = (&self.checked.entry.name, self.file.display());
        match before {
            claude::Before::Nothing => println!("added `{name}` to {file}"),
            claude::Before::Another => println!("replaced another `{name}` in {file}"),
        }
        if let Some(backup) = backup {
            println!("the file as it was: {}", backup.display());
        }
    }

    fn unwritten(&self, error: &std::io::Error) -> Complaint {
        self.by_hand(Complaint::new(format!("`{}`: {error}", self.file.display())))
    }

    /// What could not be written can still be pasted.
    fn by_hand(&self, complaint: Complaint) -> Complaint {
        print!("{}", self.fresh());
        eprintln!("this belongs in {}, beside what is there", self.file.display());
        complaint
    }
}
