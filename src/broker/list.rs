//! `proc_list`: what there is, in the order of its start.

use super::Broker;
use super::answer::Listed;
use super::managed::{Managed, RECENT_LINES};
use super::refused::Refused;
use super::request::{Filter, List};
use std::sync::Arc;

/// The last lines of a process in a list.
const RECENT_BYTES: usize = 2 << 10;

/// Ended processes in one list; a client shows a model no more.
const MOST: usize = 100;
const MOST_WITH_OUTPUT: usize = 25;

impl Broker {
    /// With how many older ones were left out.
    pub fn list(&self, asked: &List) -> Result<(Vec<Listed>, usize), Refused> {
        if let Some(session) = &asked.session {
            self.sessions.get(session)?;
        }
        self.expire();
        let fits = |managed: &Arc<Managed>| {
            asked.session.as_ref().is_none_or(|session| managed.session() == *session)
                && asked.state.is_none_or(|state| managed.state() == state)
        };
        let mut all = self.registry.all();
        all.retain(fits);
        // Whatever runs is shown; of what ended, the newest.
        let most = if asked.include_output { MOST_WITH_OUTPUT } else { MOST };
        let ended = all.iter().filter(|managed| !managed.is_running()).count();
        let mut omitted = ended.saturating_sub(most);
        let left_out = omitted;
        all.retain(|managed| {
            let stays = managed.is_running() || omitted == 0;
            omitted -= usize::from(!stays);
            stays
        });
        let show = |managed: &Arc<Managed>| {
            let recent = || managed.output.tail_lines(RECENT_LINES, Filter::All, RECENT_BYTES).lines;
            Listed { recent_output: asked.include_output.then(recent), ..managed.listed() }
        };
        Ok((all.iter().map(show).collect(), left_out))
    }
}
