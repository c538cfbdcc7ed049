//! The broker's side: the cell it asked for, processes it started, output it holds. It never forks.
//!
//! [`Broker`] is what the tool surface calls: `run` and `start` begin processes, `talk`, `read`, `stop` deal with
//! them, `session` and `config` with what surrounds them. What is asked and answered is in `request` and `answer`.

pub mod answer;
pub mod audit;
pub mod backup;
mod begin;
mod beginning;
pub mod books;
pub mod capture;
pub mod cell;
pub mod config;
pub mod control;
mod desk;
mod ends;
mod face;
pub mod fault;
pub mod files;
mod health;
mod home;
mod input;
mod list;
mod managed;
pub mod metrics;
pub mod output;
mod pool;
pub mod process;
pub mod proxy;
mod read;
pub mod refused;
mod registry;
mod relay;
pub mod render;
pub mod request;
mod run;
pub mod screen;
pub mod session;
mod start;
pub mod state;
mod stop;
mod supervise;
mod talk;
pub mod telemetry;
pub mod transcript;
pub mod watch;

pub use stop::Removal;

use crate::launch::Launcher;
use crate::policy::{Policy, Tools};
use backup::Backups;
use books::Books;
use desk::Desk;
use files::Places;
use home::Home;
use managed::Managed;
use output::Scribe;
use refused::Refused;
use registry::Registry;
use session::Sessions;
use state::State;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Called with all bytes so far and the newest of them, at most [`PROGRESS_PAUSE`] often.
pub type Progress = dyn Fn(u64, &[u8]) + Send + Sync;

/// At most four times a second.
pub const PROGRESS_PAUSE: Duration = Duration::from_millis(250);

/// How often what is over is cleared away.
const SWEEP_PAUSE: Duration = Duration::from_secs(30);

/// One agent's broker.
#[derive(Debug)]
pub struct Broker {
    /// As the file says.
    written: Policy,
    /// As the agent may have tightened it.
    in_force: Mutex<Arc<Policy>>,
    /// What `pass` takes from.
    operator: Vec<(String, String)>,
    home: Home,
    registry: Registry,
    sessions: Sessions,
    state: State,
    scribe: Scribe,
    books: Books,
    desk: Desk,
    backups: Arc<Backups>,
    places: Places,
    started: Instant,
    /// Why the operator cannot look in.
    control_trouble: Option<String>,
}

impl Broker {
    /// Reads back what earlier brokers of this agent left, and has the cell made meanwhile.
    pub fn open(
        policy: Policy,
        launcher: Launcher,
        operator: Vec<(String, String)>,
        base: &Path,
    ) -> std::io::Result<Arc<Broker>> {
        let home = Home::make(policy.clone(), launcher);
        let limits = state::Limits { retention: policy.retention.artifacts, max_bytes: policy.retention.max_bytes.0 };
        let state = State::open(base, &policy.agent, &policy.workspace, limits).unwrap_or_else(|why| {
            tracing::warn!("output is kept in memory only: {why}");
            State::nowhere(why, limits)
        });
        let bounds = backup::Limits::of(limits.retention, limits.max_bytes);
        let backups = Arc::new(Backups::new(state.directory(), bounds));
        let recovery = state.recover();
        recovery.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        let books = Books::open(&base.join(&policy.agent), &policy, &operator);
        let control = match state.folder() {
            Some(folder) => control::Bound::bind(folder).map_err(|error| format!("no control socket: {error}")),
            None => Err("no control socket: there is no state directory".to_owned()),
        };
        let broker = Arc::new(Broker {
            control_trouble: control.as_ref().err().cloned(),
            in_force: Mutex::new(Arc::new(policy.clone())),
            written: policy,
            operator,
            home,
            registry: Registry::default(),
            sessions: Sessions::default(),
            state,
            scribe: Scribe::start()?,
            books,
            desk: Desk::default(),
            backups,
            places: Places::default(),
            started: Instant::now(),
        });
        for recovered in recovery.processes {
            broker.registry.insert_finished(Managed::bygone(recovered));
        }
        tokio::spawn(sweep(Arc::downgrade(&broker)));
        match control {
            Ok(bound) => drop(tokio::spawn(bound.serve(Arc::downgrade(&broker)))),
            Err(why) => tracing::warn!("{why}"),
        }
        Ok(broker)
    }

    pub fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.in_force.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn books(&self) -> &Books {
        &self.books
    }

    /// Writes down a call, with the walls that stood.
    pub fn book(&self, mut call: audit::Call) {
        if let Some(Ok(walls)) = self.home.walls() {
            call.enforcement = walls.standing.iter().filter(|(_, stands)| *stands).map(|(name, _)| *name).collect();
        }
        self.books.enter(call);
    }

    pub fn tools(&self) -> Tools {
        self.policy().tools.clone()
    }

    pub fn inline_bytes(&self) -> usize {
        self.policy().limits.inline_bytes.0 as usize
    }

    pub fn config(&self, key: Option<&str>) -> Result<serde_json::Value, Refused> {
        config::get(&self.policy(), key)
    }

    /// Tightens a setting; returns the value in force.
    pub fn set_config(&self, key: &str, value: &serde_json::Value) -> Result<serde_json::Value, Refused> {
        let mut in_force = self.in_force.lock().unwrap_or_else(PoisonError::into_inner);
        let mut policy = Policy::clone(&in_force);
        let value = config::set(&mut policy, &self.written, key, value)?;
        *in_force = Arc::new(policy);
        Ok(value)
    }

    /// Ends everything, and waits until it is gone and its last output stored.
    pub async fn close(&self) {
        let running = self.registry.running();
        for managed in &running {
            managed.order(supervise::Order::Kill(answer::Reason::Stopped));
        }
        let all_ended = async {
            for managed in &running {
                managed.until_ended().await;
            }
        };
        let _ = tokio::time::timeout(Duration::from_secs(1), all_ended).await;
        self.home.close().await;
    }

    /// Clears away what is over for longer than it is to be shown or kept.
    fn tidy(&self) {
        self.expire();
        for id in self.state.sweep(Instant::now()).proc_ids {
            self.registry.remove(&id);
        }
        let backups = Arc::clone(&self.backups);
        tokio::task::spawn_blocking(move || backups.sweep(SystemTime::now()));
    }

    /// What ended longer ago than it is to be shown is not shown; what was written stays until retention ends.
    fn expire(&self) {
        drop(self.registry.expire(self.policy().processes.keep_finished));
    }

    /// A record that could not be written waits for the next one; `health` says so.
    fn write_down(&self, written: std::io::Result<()>) {
        if let Err(error) = written {
            tracing::warn!("the journal cannot be written: {error}");
        }
    }
}

async fn sweep(broker: std::sync::Weak<Broker>) {
    loop {
        tokio::time::sleep(SWEEP_PAUSE).await;
        match broker.upgrade() {
            Some(broker) => broker.tidy(),
            None => return,
        }
    }
}
