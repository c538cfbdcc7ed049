//! One process as the registry knows it, running or ended, of this broker or an earlier one.

use super::answer::{End, Listed, Reason, State, Usage};
use super::beginning::Beginning;
use super::cell::Ready;
use super::face::Face;
use super::fault::Trouble;
use super::input::Input;
use super::output::Output;
use super::process::Activity;
use super::registry::Ground;
use super::session::DEFAULT;
use super::state::{self, Recovered};
use super::supervise::Order;
use crate::sys::reactor::watch_borrowed;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio::io::Interest;
use tokio::sync::{mpsc, watch};

/// The lines that a list shows of each process.
pub const RECENT_LINES: usize = 10;

#[derive(Debug)]
pub struct Managed {
    pub id: String,
    pub command: String,
    pub description: Option<String>,
    pub cwd: String,
    pub pid: i32,
    pub started_at: SystemTime,
    pub started: Instant,
    pub output: Arc<Output>,
    pub activity: Arc<Activity>,
    pub beginning: Arc<Beginning>,
    /// Held by the call that writes.
    pub input: tokio::sync::Mutex<Input>,
    pub face: Option<Arc<Face>>,
    /// Whether a call still waits for it.
    ground: Mutex<Ground>,
    orders: mpsc::UnboundedSender<Order>,
    session: Mutex<String>,
    /// Where the last read ended.
    cursor: Mutex<u64>,
    /// While it runs.
    live: Mutex<Option<Arc<Ready>>>,
    end: watch::Receiver<Option<Ended>>,
}

/// The end of a process, and when it was.
#[derive(Debug, Clone)]
pub struct Ended {
    pub end: End,
    /// Why nothing was executed, or what became of the walls.
    pub trouble: Option<Trouble>,
    pub at: SystemTime,
    /// None: of an earlier broker.
    pub when: Option<Instant>,
}

/// What is known of a process from its start.
#[derive(Debug)]
pub struct Birth {
    pub id: String,
    pub session: String,
    pub command: String,
    pub description: Option<String>,
    pub cwd: String,
    pub pid: i32,
    pub started_at: SystemTime,
    pub output: Arc<Output>,
    pub activity: Arc<Activity>,
    pub beginning: Arc<Beginning>,
    pub ready: Option<Arc<Ready>>,
}

impl Managed {
    pub fn new(
        birth: Birth,
        input: Input,
        face: Option<Arc<Face>>,
        ground: Ground,
        orders: mpsc::UnboundedSender<Order>,
        end: watch::Receiver<Option<Ended>>,
    ) -> Self {
        let Birth { id, session, command, description, cwd, pid, started_at, output, activity, beginning, ready } =
            birth;
        Managed {
            id,
            command,
            description,
            cwd,
            pid,
            started_at,
            started: Instant::now(),
            output,
            activity,
            beginning,
            input: tokio::sync::Mutex::new(input),
            face,
            ground: Mutex::new(ground),
            orders,
            session: Mutex::new(session),
            cursor: Mutex::new(0),
            live: Mutex::new(ready),
            end,
        }
    }

    /// One of an earlier broker. Without a word on its end it ended with that.
    pub fn bygone(recovered: Recovered) -> Self {
        let Recovered { record, end, output } = recovered;
        let last = output.last_activity().1;
        let (end, at) = match end {
            Some(end) => (
                End {
                    reason: end.reason,
                    exit_code: end.exit_code,
                    signal: end.signal,
                    usage: Usage { cpu: Duration::from_micros(end.cpu_us), max_rss_kib: end.max_rss_kib },
                },
                SystemTime::UNIX_EPOCH + Duration::from_micros(end.ended_at),
            ),
            None => {
                (End { reason: Reason::BrokerRestart, exit_code: None, signal: None, usage: Usage::default() }, last)
            }
        };
        let end = Ended { end, trouble: None, at, when: None };
        let birth = Birth {
            id: record.proc_id,
            session: DEFAULT.into(),
            command: record.command,
            description: record.description,
            cwd: record.cwd,
            pid: record.pid,
            started_at: SystemTime::UNIX_EPOCH + Duration::from_micros(record.started_at),
            output,
            activity: Arc::new(Activity::new()),
            beginning: Arc::new(Beginning::new(0)),
            ready: None,
        };
        let (orders, _) = mpsc::unbounded_channel();
        let (_, told) = watch::channel(Some(end));
        Managed::new(birth, Input::Closed, None, Ground::Back, orders, told)
    }

    pub fn session(&self) -> String {
        lock(&self.session).clone()
    }

    pub fn move_to(&self, session: &str) {
        *lock(&self.session) = session.to_owned();
    }

    pub fn ground(&self) -> Ground {
        *lock(&self.ground)
    }

    /// Nobody waits for it any more: it counts among its session's own.
    pub fn to_background(&self) {
        *lock(&self.ground) = Ground::Back;
    }

    pub fn cursor(&self) -> MutexGuard<'_, u64> {
        lock(&self.cursor)
    }

    pub fn ended(&self) -> Option<Ended> {
        self.end.borrow().clone()
    }

    pub fn end(&self) -> Option<End> {
        self.end.borrow().as_ref().map(|ended| ended.end.clone())
    }

    pub fn state(&self) -> State {
        if self.end.borrow().is_some() { State::Exited } else { State::Running }
    }

    pub fn is_running(&self) -> bool {
        self.state() == State::Running
    }

    /// Returns when it has ended and all its output is stored.
    pub async fn until_ended(&self) -> Option<Ended> {
        let mut end = self.end.clone();
        match end.wait_for(Option::is_some).await {
            Ok(ended) => ended.clone(),
            Err(_) => self.ended(),
        }
    }

    /// Returns when the command was executed, or could not be: the door is hung up, or says why.
    pub async fn until_executed(&self) {
        let Some(ready) = lock(&self.live).clone() else { return };
        let Ok(door) = watch_borrowed(ready.door.as_fd(), Interest::READABLE) else { return };
        tokio::select! {
            _ = door.readable() => {}
            _ = self.until_ended() => {}
        }
        // What was said there is heard by whoever looks after the process, with its end.
        if crate::sys::descriptor::unread(ready.door.as_fd()) > 0 {
            self.until_ended().await;
        }
    }

    pub fn order(&self, order: Order) {
        let _ = self.orders.send(order);
    }

    /// Passes a signal on; false when there is nobody to hear it.
    pub fn signal(&self, signal: i32) -> bool {
        let live = lock(&self.live);
        let Some(ready) = live.as_ref().filter(|_| self.is_running()) else { return false };
        crate::sys::descriptor::write(ready.leash.as_raw_fd(), &[signal as u8]).is_ok()
    }

    /// What was measured is told by the end from now on.
    pub fn let_go(&self) {
        *lock(&self.live) = None;
    }

    pub fn usage(&self) -> Usage {
        if let Some(end) = self.end() {
            return end.usage;
        }
        let live = lock(&self.live);
        let gauges = live.as_ref().and_then(|ready| ready.gauges.as_ref());
        let peak = gauges.and_then(|gauges| gauges.peak_bytes()).unwrap_or(0) / 1024;
        Usage { cpu: gauges.map(|gauges| gauges.cpu_time()).unwrap_or_default(), max_rss_kib: peak }
    }

    pub fn runtime(&self) -> Duration {
        match self.ended() {
            Some(ended) => ended.at.duration_since(self.started_at).unwrap_or_default(),
            None => self.started.elapsed(),
        }
    }

    /// What is written down of its start.
    pub fn record(&self) -> state::Started {
        state::Started {
            proc_id: self.id.clone(),
            session: self.session(),
            command: self.command.clone(),
            description: self.description.clone(),
            cwd: self.cwd.clone(),
            pid: self.pid,
            terminal: self.face.is_some(),
            started_at: micros(self.started_at),
        }
    }

    /// And of its end.
    pub fn end_record(&self, ended: &Ended) -> state::Ended {
        let totals = self.output.totals();
        state::Ended {
            proc_id: self.id.clone(),
            reason: ended.end.reason,
            exit_code: ended.end.exit_code,
            signal: ended.end.signal,
            cpu_us: ended.end.usage.cpu.as_micros() as u64,
            max_rss_kib: ended.end.usage.max_rss_kib,
            total_bytes: totals.total_bytes,
            stdout_bytes: totals.stdout_bytes,
            stderr_bytes: totals.stderr_bytes,
            total_lines: totals.total_lines,
            dropped_bytes: totals.dropped_bytes,
            ended_at: micros(ended.at),
        }
    }

    pub fn listed(&self) -> Listed {
        let totals = self.output.totals();
        Listed {
            proc_id: self.id.clone(),
            pid: self.pid,
            session: self.session(),
            command: self.command.clone(),
            description: self.description.clone(),
            end: self.end(),
            started_at: self.started_at,
            last_activity: self.last_activity(),
            runtime: self.runtime(),
            total_bytes: totals.total_bytes,
            total_lines: totals.total_lines,
            usage: self.usage(),
            recent_output: None,
        }
    }

    fn last_activity(&self) -> SystemTime {
        match self.ended() {
            Some(ended) => ended.at,
            None => SystemTime::now() - self.activity.idle_since().elapsed(),
        }
    }
}

fn micros(at: SystemTime) -> u64 {
    at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
