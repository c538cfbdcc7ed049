//! `proc_list`: what there is, in the order of its start.

use super::Broker;
use super::answer::Listed;
use super::managed::RECENT_LINES;
use super::refused::Refused;
use super::request::{Filter, List};

/// The last lines of a process in a list.
const RECENT_BYTES: usize = 2 << 10;

impl Broker {
    pub fn list(&self, asked: &List) -> Result<Vec<Listed>, Refused> {
        if let Some(session) = &asked.session {
            self.sessions.get(session)?;
        }
        self.expire();
        let mut listed = Vec::new();
        for managed in self.registry.all() {
            let fits = asked.session.as_ref().is_none_or(|session| managed.session() == *session)
                && asked.state.is_none_or(|state| managed.state() == state);
            if fits {
                let mut one = managed.listed();
                if asked.include_output {
                    one.recent_output = Some(managed.output.tail_lines(RECENT_LINES, Filter::All, RECENT_BYTES).lines);
                }
                listed.push(one);
            }
        }
        Ok(listed)
    }
}
