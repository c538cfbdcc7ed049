//! One request, decided: which program, where, with what environment; or why not.

use super::refusal::Refusal;
use crate::host::programs::PROGRAM_DIRECTORIES;
use crate::path::CellPath;
use crate::policy::{Access, CommandRule, Policy};
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// The kernel takes 2 MiB of arguments and environment together by default (execve(2)); a request gets half.
const MAX_WORDS_BYTES: usize = 1 << 20;
const MAX_WORDS: usize = 16_384;

/// What is asked for: exactly one of a program with arguments or a string for the policy's shell.
#[derive(Debug, Clone)]
pub enum Words {
    Argv(Vec<String>),
    Shell(String),
}

#[derive(Debug, Clone)]
pub struct Request {
    pub words: Words,
    pub cwd: Option<PathBuf>,
    pub env: Vec<(String, String)>,
}

/// A request, decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandPlan {
    /// Tried in turn, as execvp(3) does.
    pub candidates: Vec<CellPath>,
    pub argv: Vec<String>,
    pub env: Vec<(String, String)>,
    pub cwd: CellPath,
    pub task: Task,
}

/// What a waiting child is to do.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    #[default]
    Execute,
    /// Try something out itself, and tell the answer.
    Attempt,
    /// Do file and search work for the broker, which talks to it over descriptor 0.
    Work,
}

/// Decides one request. `operator` is the environment that `pass` takes from.
pub fn plan(policy: &Policy, request: &Request, operator: &[(String, String)]) -> Result<CommandPlan, Refusal> {
    let argv = match &request.words {
        Words::Argv(argv) => argv.clone(),
        Words::Shell(text) => {
            let shell = policy.commands.shell.as_ref().ok_or(Refusal::NoShell)?;
            vec![shell.display().to_string(), "-c".into(), text.clone()]
        }
    };
    check_words(&argv, &request.env)?;
    check_lists(policy, &argv)?;
    let env = environment(policy, &request.env, operator);
    let cwd = request.cwd.clone().unwrap_or_else(|| policy.workspace.clone());
    Ok(CommandPlan {
        candidates: candidates(&argv[0], &env),
        env,
        cwd: directory(policy, &cwd)?,
        argv,
        task: Task::Execute,
    })
}

/// The process that does file and search work: it executes nothing, and knows nothing of the operator's environment.
pub fn worker(policy: &Policy) -> Result<CommandPlan, Refusal> {
    let cwd = directory(policy, &policy.workspace)?;
    Ok(CommandPlan { candidates: Vec::new(), argv: Vec::new(), env: Vec::new(), cwd, task: Task::Work })
}

/// Where commands start that name no directory, when a session's defaults are these.
pub fn defaults(policy: &Policy, cwd: Option<&Path>, env: &[(String, String)]) -> Result<CellPath, Refusal> {
    check_variables(env)?;
    directory(policy, cwd.unwrap_or(&policy.workspace))
}

fn check_words(argv: &[String], env: &[(String, String)]) -> Result<(), Refusal> {
    let refuse = |what: String, rule: &str| Err(Refusal::Argument { what, rule: rule.into() });
    if argv.first().is_none_or(String::is_empty) {
        return refuse("no program is named".into(), "give at least one word, the program");
    }
    if let Some(word) = argv.iter().find(|word| word.contains('\0')) {
        return refuse(format!("`{}` holds a NUL byte", word.escape_default()), "words cannot hold NUL bytes");
    }
    check_variables(env)?;
    let bytes = argv.iter().map(String::len).chain(env.iter().map(|(name, value)| name.len() + value.len()));
    if bytes.sum::<usize>() > MAX_WORDS_BYTES || argv.len() + env.len() > MAX_WORDS {
        let rule =
            format!("at most {MAX_WORDS} words and {MAX_WORDS_BYTES} bytes; longer input goes to stdin or a file");
        return refuse("the command line and its environment are too long".into(), &rule);
    }
    Ok(())
}

fn check_variables(env: &[(String, String)]) -> Result<(), Refusal> {
    let is_odd =
        |(name, value): &&(String, String)| name.is_empty() || name.contains(['=', '\0']) || value.contains('\0');
    match env.iter().find(is_odd) {
        Some((name, _)) => Err(Refusal::Argument {
            what: format!("`{}` is not a variable", name.escape_default()),
            rule: "a variable's name is not empty and holds no `=`; neither name nor value holds a NUL byte".into(),
        }),
        None => Ok(()),
    }
}

/// The lists on the requested words: for a clear answer, and for argument rules, which the kernel cannot see.
fn check_lists(policy: &Policy, argv: &[String]) -> Result<(), Refusal> {
    let refuse = |rule: String| Err(Refusal::Command { program: argv.join(" "), rule });
    if let Some(rule) = policy.commands.blocked.iter().find(|rule| fits(rule, argv)) {
        return refuse(format!("`{}` is in `blocked`", words(rule)));
    }
    if !policy.commands.allowed.iter().any(|rule| fits(rule, argv)) {
        return refuse("nothing in `allowed` covers it".into());
    }
    Ok(())
}

fn fits(rule: &CommandRule, argv: &[String]) -> bool {
    crate::policy::glob::matches_program(&rule.program, &argv[0])
        && argv.len() > rule.arguments.len()
        && rule.arguments.iter().zip(&argv[1..]).all(|(wanted, word)| wanted == word)
}

fn words(rule: &CommandRule) -> String {
    [std::slice::from_ref(&rule.program), &rule.arguments].concat().join(" ")
}

fn environment(policy: &Policy, asked: &[(String, String)], operator: &[(String, String)]) -> Vec<(String, String)> {
    let shell = policy.commands.shell.as_deref().unwrap_or(Path::new("/bin/sh"));
    let mut env = BTreeMap::from([
        ("HOME".to_owned(), "/home/agent".to_owned()),
        ("LOGNAME".to_owned(), "agent".to_owned()),
        ("PATH".to_owned(), PROGRAM_DIRECTORIES.join(":")),
        ("SHELL".to_owned(), shell.display().to_string()),
        ("USER".to_owned(), "agent".to_owned()),
    ]);
    let passed = |name: &str| policy.environment.pass.iter().any(|glob| crate::policy::glob::matches(glob, name));
    env.extend(operator.iter().filter(|(name, _)| passed(name)).cloned());
    env.extend(super::proxy::variables(&policy.network));
    env.extend(policy.environment.set.iter().cloned());
    env.extend(asked.iter().cloned());
    env.into_iter().collect()
}

fn candidates(program: &str, env: &[(String, String)]) -> Vec<CellPath> {
    if program.contains('/') {
        return vec![CellPath::new(program)];
    }
    let path = env.iter().find(|(name, _)| name == "PATH").map_or("", |(_, value)| value.as_str());
    path.split(':')
        .filter(|directory| !directory.is_empty())
        .map(|d| CellPath::new(Path::new(d).join(program)))
        .collect()
}

/// A working directory inside a root, or in the cell's own `/tmp` or home. It never widens anything.
fn directory(policy: &Policy, cwd: &Path) -> Result<CellPath, Refusal> {
    let roots: Vec<PathBuf> = policy.filesystem.grants.iter().map(|grant| grant.path.clone()).collect();
    let plain =
        cwd.is_absolute() && cwd.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let inside = crate::policy::expect::verdict(policy, cwd).is_some_and(|access| access != Access::Hidden);
    let private = ["/tmp", "/var/tmp", "/home/agent"].iter().any(|own| cwd.starts_with(own));
    if plain && (inside || private) && !cwd.as_os_str().as_encoded_bytes().contains(&0) {
        return Ok(CellPath::new(cwd));
    }
    // No root at all, or one that is gone: the home is always there.
    if cwd == policy.workspace {
        return Ok(CellPath::new("/home/agent"));
    }
    Err(Refusal::Directory { path: cwd.into(), roots })
}
