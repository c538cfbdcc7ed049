//! The worker's work: what a process inside the cell does for `fs_*` and `search_*` calls, as plain blocking functions.
//!
//! It runs under the walls of a command, so the kernel gives a tool and a shell the same verdict on the same path; here
//! nothing is decided about what may be touched. It never imports the broker or the launcher: `ask` has the requests and
//! answers, `perform` carries one out, `serve` is the process.

pub mod ask;
pub mod bytes;
pub mod edit;
pub mod failure;
pub mod files;
pub mod names;
pub mod search;
pub mod serve;
#[cfg(test)]
mod tests;

use ask::{Ask, SearchAsk, Terms, Told};
use failure::Result;
use files::{directories, list, read, relocate, stat, write};
use search::Searches;
use std::time::Duration;

/// Carries out one request. Calls may run at once in several threads; changes of one file follow each other.
pub fn perform(terms: &Terms, ask: &Ask) -> Result<Told> {
    match ask {
        Ask::Read(ask) => read::read(terms, ask).map(Told::Read),
        Ask::List(ask) => list::list(terms, ask).map(Told::List),
        Ask::Stat(ask) => stat::about(terms, ask).map(Told::Stat),
        Ask::Write(ask) => write::write(terms, ask).map(Told::Write),
        Ask::Edit(ask) => edit::edit(terms, ask).map(Told::Edit),
        Ask::Move(ask) => relocate::relocate(terms, ask).map(Told::Move),
        Ask::MakeDir(ask) => directories::make(terms, ask).map(Told::MakeDir),
        Ask::Restore(ask) => write::restore(terms, ask).map(Told::Restore),
    }
}

/// The same for a search. Its own threads go on after this has returned.
pub fn seek(searches: &Searches, ask: &SearchAsk) -> Result<Told> {
    match ask {
        SearchAsk::Start(request) => searches.start(request).map(Told::SearchPage),
        SearchAsk::More(ask) => {
            let (limit, wait) = (ask.limit.map(|limit| limit as usize), Duration::from_millis(ask.wait_ms));
            searches.more(&ask.search_id, ask.offset as usize, limit, wait).map(Told::SearchPage)
        }
        SearchAsk::Stop(id) => Ok(Told::SearchStopped(searches.stop(id))),
        SearchAsk::List => Ok(Told::SearchList(searches.list())),
    }
}
