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

use ask::{Ask, Edited, Previous, SearchAsk, Terms, Told, Written};
use failure::{Code, Result};
use files::{directories, list, read, relocate, stat, write};
use names::Named;
use search::Searches;
use std::time::Duration;

/// Carries out one request. Calls may run at once in several threads; changes of one file follow each other.
pub fn perform(terms: &Terms, ask: &Ask) -> Result<Told> {
    match ask {
        Ask::Read(ask) => read::read(terms, ask).map(Told::Read),
        Ask::List(ask) => list::list(terms, ask).map(Told::List),
        Ask::Stat(ask) => stat::about(terms, ask).map(Told::Stat),
        Ask::Write(ask) => write::write(terms, ask).map(|told| Told::Write(told.within(terms))),
        Ask::Edit(ask) => edit::edit(terms, ask).map(|told| Told::Edit(told.within(terms))),
        Ask::Move(ask) => relocate::relocate(terms, ask).map(Told::Move),
        Ask::MakeDir(ask) => directories::make(terms, ask).map(Told::MakeDir),
        Ask::Restore(ask) => write::restore(terms, ask).map(|told| Told::Restore(told.within(terms))),
    }
}

/// The same for a search. Its own threads go on after this has returned.
pub fn seek(terms: &Terms, searches: &Searches, ask: &SearchAsk) -> Result<Told> {
    match ask {
        SearchAsk::Start(request) => start(terms, searches, request).map(Told::SearchPage),
        SearchAsk::More(ask) => {
            let (limit, wait) = (ask.limit.map(|limit| limit as usize), Duration::from_millis(ask.wait_ms));
            searches.more(&ask.search_id, ask.offset as usize, limit, wait).map(Told::SearchPage)
        }
        SearchAsk::Stop(id) => searches.stop(id).map(Told::SearchStopped),
        SearchAsk::List => Ok(Told::SearchList(searches.list())),
    }
}

/// The path is spelled as for files, and what is not there is told in the same words.
fn start(terms: &Terms, searches: &Searches, request: &search::Request) -> Result<search::Page> {
    let mut request = search::Request { workspace: terms.workspace.as_path().to_owned(), ..request.clone() };
    let Some(text) = request.path.as_ref().and_then(|path| path.to_str()) else { return searches.start(&request) };
    let named = Named::parse(text, terms)?;
    if named.path().to_str().is_none() {
        request.path = Some(named.path().to_owned());
    }
    searches.start(&request).map_err(|failure| match failure.code {
        Code::NotFound => named.absent(),
        _ => failure,
    })
}

impl Written {
    fn within(mut self, terms: &Terms) -> Self {
        self.previous = self.previous.map(|previous| previous.within(terms));
        self
    }
}

impl Edited {
    fn within(mut self, terms: &Terms) -> Self {
        self.previous = self.previous.map(|previous| previous.within(terms));
        self
    }
}

impl Previous {
    /// What is too large to be carried is left behind.
    fn within(mut self, terms: &Terms) -> Self {
        self.content = self.content.filter(|content| content.len() as u64 <= terms.backup_bytes);
        self
    }
}
