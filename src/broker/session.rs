//! Sessions: a name with a working directory and variables that its commands start with.

use super::Broker;
use super::answer::{Reason, SessionListed, Usage};
use super::refused::{Code, Refused};
use super::registry::shown;
use super::request::OnClose;
use super::supervise::Order;
use crate::plan::command;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The session of every call that names none. It is always there.
pub const DEFAULT: &str = "default";

/// How many sessions an agent may have open; each holds an environment of up to a megabyte.
const MAX_SESSIONS: usize = 64;

/// How long a process may take to end with its session.
const GRACE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct Sessions(Mutex<BTreeMap<String, Session>>);

#[derive(Debug, Clone, Default)]
pub struct Session {
    pub cwd: Option<PathBuf>,
    pub env: Vec<(String, String)>,
}

impl Default for Sessions {
    fn default() -> Self {
        Sessions(Mutex::new(BTreeMap::from([(DEFAULT.into(), Session::default())])))
    }
}

impl Sessions {
    pub fn get(&self, name: &str) -> Result<Session, Refused> {
        self.lock().get(name).cloned().ok_or_else(|| not_found(name))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_found(name: &str) -> Refused {
    let message = format!("no session `{}`; open it with `session_open` or leave `session` out", shown(name));
    Refused::new(Code::SessionNotFound, message)
}

impl Broker {
    /// Opens a session or changes its defaults; returns its working directory.
    pub fn open_session(
        &self,
        name: &str,
        cwd: Option<PathBuf>,
        env: Vec<(String, String)>,
    ) -> Result<String, Refused> {
        let policy = self.policy();
        let mut sessions = self.sessions.lock();
        let known = sessions.get(name).cloned();
        let cwd = cwd.or_else(|| known.as_ref().and_then(|session| session.cwd.clone()));
        let starts_in = command::defaults(&policy, cwd.as_deref(), &env)?;
        if known.is_none() && sessions.len() >= MAX_SESSIONS {
            let message = format!("{MAX_SESSIONS} sessions are open; close one with `session_close` first");
            return Err(Refused::new(Code::LimitExceeded, message));
        }
        let env = if env.is_empty() { known.map(|session| session.env).unwrap_or_default() } else { env };
        self.books.redactor.learn(&env);
        sessions.insert(name.into(), Session { cwd, env });
        Ok(starts_in.to_string())
    }

    pub fn sessions(&self) -> Vec<SessionListed> {
        let policy = self.policy();
        let all = self.registry.all();
        let sessions = self.sessions.lock().clone();
        let list = |(name, session): (String, Session)| {
            let own: Vec<_> = all.iter().filter(|managed| managed.session() == name).collect();
            let running = own.iter().filter(|managed| managed.is_running()).count();
            let usage = own.iter().map(|managed| managed.usage()).fold(Usage::default(), |sum, one| Usage {
                cpu: sum.cpu + one.cpu,
                max_rss_kib: sum.max_rss_kib.max(one.max_rss_kib),
            });
            let cwd = command::defaults(&policy, session.cwd.as_deref(), &[]);
            SessionListed {
                session: name,
                cwd: cwd.map_or_else(|_| String::new(), |cwd| cwd.to_string()),
                running,
                finished: own.len() - running,
                usage,
            }
        };
        sessions.into_iter().map(list).collect()
    }

    /// Returns how many processes were stopped and how many kept.
    pub async fn close_session(&self, name: &str, how: OnClose) -> Result<(usize, usize), Refused> {
        {
            let mut sessions = self.sessions.lock();
            if !sessions.contains_key(name) {
                return Err(not_found(name));
            }
            match name {
                DEFAULT => sessions.insert(name.into(), Session::default()),
                _ => sessions.remove(name),
            };
        }
        let own: Vec<_> = self.registry.all().into_iter().filter(|managed| managed.session() == name).collect();
        let (running, _) = own.iter().partition::<Vec<_>, _>(|managed| managed.is_running());
        if how == OnClose::Stop {
            for managed in &running {
                managed.order(Order::End { reason: Reason::SessionClosed, signal: libc::SIGTERM, grace: GRACE });
            }
            for managed in &running {
                managed.until_ended().await;
            }
        }
        // Ended ones stay readable too.
        own.iter().for_each(|managed| managed.move_to(DEFAULT));
        Ok(match how {
            OnClose::Stop => (running.len(), 0),
            OnClose::Keep => (0, running.len()),
        })
    }
}
