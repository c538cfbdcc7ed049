//! File operations and searches as the tool surface asks for them: the worker does them, the broker keeps what was
//! replaced. The broker opens no path that an agent named.

use super::Broker;
use super::backup::{Backup, Backups};
use super::refused::{Code, Refused};
use super::state::new_id;
use crate::worker::ask::{Ask, Edit, Edited, Previous, Restore, SearchAsk, SearchMore, Told, Work, Write, Written};
use crate::worker::search;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Searches whose place is remembered; more than a worker keeps.
const REMEMBERED: usize = 64;

/// What became of the content that was replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    /// Nothing was replaced.
    Nothing,
    As(String),
    /// Why it is not kept.
    Not(String),
}

/// Where the next page of each search begins.
#[derive(Debug, Default)]
pub struct Places(Mutex<VecDeque<(String, u64)>>);

impl Broker {
    /// A request whose answer is of one kind; another kind is a fault.
    pub async fn files<T>(&self, ask: Ask, expected: fn(Told) -> Option<T>) -> Result<T, Refused> {
        expected(self.work(Work::Files(ask)).await?).ok_or_else(odd)
    }

    pub async fn write_file(&self, ask: Write) -> Result<(Written, Kept), Refused> {
        let path = self.absolute(&ask.path);
        let told = |told| if let Told::Write(written) = told { Some(written) } else { None };
        let mut written = self.files(Ask::Write(ask), told).await?;
        let kept = self.keep(path, written.previous.take()).await;
        Ok((written, kept))
    }

    pub async fn edit_file(&self, ask: Edit) -> Result<(Edited, Kept), Refused> {
        let path = self.absolute(&ask.path);
        let told = |told| if let Told::Edit(edited) = told { Some(edited) } else { None };
        let mut edited = self.files(Ask::Edit(ask), told).await?;
        let kept = self.keep(path, edited.previous.take()).await;
        Ok((edited, kept))
    }

    /// Puts a backup back, at the path it was made of; what it replaces is kept in turn.
    pub async fn restore_file(&self, backup_id: &str) -> Result<(String, Written, Kept), Refused> {
        let id = backup_id.to_owned();
        let Backup { path, mode, content } = self.backups(move |backups| backups.find(&id)).await??;
        let told = |told| if let Told::Restore(written) = told { Some(written) } else { None };
        let ask = Restore { path: path.clone(), content, mode };
        let mut written = self.files(Ask::Restore(ask), told).await?;
        let kept = self.keep(path.clone(), written.previous.take()).await;
        Ok((path, written, kept))
    }

    /// Begins a search under an id of ours.
    pub async fn start_search(&self, mut request: search::Request) -> Result<search::Page, Refused> {
        request.search_id = new_id("s");
        self.search_page(SearchAsk::Start(request)).await
    }

    /// The next page; without an offset, what follows the last one.
    pub async fn more_of_search(
        &self,
        search_id: String,
        offset: Option<u64>,
        limit: Option<u64>,
        wait_ms: u64,
    ) -> Result<search::Page, Refused> {
        let offset = offset.unwrap_or_else(|| self.places.of(&search_id));
        self.search_page(SearchAsk::More(SearchMore { search_id, offset, limit, wait_ms })).await
    }

    /// Whether it was running.
    pub async fn stop_search(&self, search_id: String) -> Result<bool, Refused> {
        match self.work(Work::Search(SearchAsk::Stop(search_id))).await? {
            Told::SearchStopped(stopped) => Ok(stopped),
            _ => Err(odd()),
        }
    }

    pub async fn searches(&self) -> Result<Vec<search::Summary>, Refused> {
        match self.work(Work::Search(SearchAsk::List)).await? {
            Told::SearchList(searches) => Ok(searches),
            _ => Err(odd()),
        }
    }

    async fn search_page(&self, ask: SearchAsk) -> Result<search::Page, Refused> {
        match self.work(Work::Search(ask)).await? {
            Told::SearchPage(page) => {
                self.places.set(&page.search_id, page.offset.saturating_add(page.matches.len()) as u64);
                Ok(page)
            }
            _ => Err(odd()),
        }
    }

    async fn keep(&self, path: String, previous: Option<Previous>) -> Kept {
        let Some(previous) = previous else { return Kept::Nothing };
        match self.backups(move |backups| backups.keep(&path, &previous)).await {
            Ok(Ok(id)) => Kept::As(id),
            Ok(Err(why)) => Kept::Not(why),
            Err(refused) => Kept::Not(refused.message),
        }
    }

    /// The disk may be slow; others go on meanwhile.
    async fn backups<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Backups) -> T + Send + 'static,
    ) -> Result<T, Refused> {
        let backups = Arc::clone(&self.backups);
        let done = tokio::task::spawn_blocking(move || work(&backups)).await;
        done.map_err(|error| Refused::new(Code::Internal, error.to_string()))
    }

    /// A path that means the same to a later broker of this agent with another workspace.
    fn absolute(&self, path: &str) -> String {
        // A URI is absolute, and what is no path is refused by the worker.
        if path.starts_with('/') || path.starts_with("file://") {
            return path.to_owned();
        }
        crate::worker::names::spell(&self.policy().workspace.join(path))
    }
}

impl Places {
    fn of(&self, search_id: &str) -> u64 {
        let places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        places.iter().find(|(id, _)| id == search_id).map_or(0, |(_, place)| *place)
    }

    fn set(&self, search_id: &str, place: u64) {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        places.retain(|(id, _)| id != search_id);
        places.push_back((search_id.to_owned(), place));
        if places.len() > REMEMBERED {
            places.pop_front();
        }
    }
}

fn odd() -> Refused {
    Refused::new(Code::Internal, "the file worker answered something else than was asked")
}
