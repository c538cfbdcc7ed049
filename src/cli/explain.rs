//! `stockade explain`: the plan in words, made by the code that would carry it out.

use super::ExplainArgs;
use super::run::decide;
use super::say::Complaint;
use crate::plan;
use crate::plan::command::Words;

pub fn explain(args: &ExplainArgs) -> Result<u8, Complaint> {
    let policy = args.cell.load()?;
    let (system, cell, command) = decide(&policy, &args.cell, Words::Argv(args.command.clone()))?;
    print!("{}", plan::explain::explain(&policy, &system, &cell, &command));
    Ok(0)
}
