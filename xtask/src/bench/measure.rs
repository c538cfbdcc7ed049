//! Measures contenders in turn: one start of each, then the next round.
//!
//! A contender opens clients; a client starts one program and returns when its exit status is
//! known. Latency uses one client, throughput one per thread, so a client need not be shared.

use super::stats::{Row, Samples, Table};
use crate::shell::Result;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Starts a program once and waits for its exit status.
pub type Client = Box<dyn FnMut() -> Result + Send>;

/// A named way to start a program.
pub struct Contender {
    pub name: &'static str,
    open: Box<dyn Fn() -> Result<Client> + Sync>,
}

impl fmt::Debug for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Contender").field(&self.name).finish()
    }
}

impl Contender {
    pub fn new(name: &'static str, open: impl Fn() -> Result<Client> + Sync + 'static) -> Contender {
        Contender { name, open: Box::new(open) }
    }

    pub fn try_once(&self) -> Result {
        (self.open)()?()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    Tight,
    /// Each start after a rest, which shows costs that a loop hides.
    After(Duration),
}

/// Starts before the clock counts.
const WARM_UP: usize = 5;

pub fn latency(contenders: &[Contender], rounds: usize, pace: Pace) -> Result<Table> {
    let opened = contenders.iter().map(|contender| (contender.open)());
    let mut clients = opened.collect::<Result<Vec<Client>>>()?;
    let mut samples = vec![Samples::default(); contenders.len()];
    for round in 0..rounds + WARM_UP {
        for turn in 0..clients.len() {
            // Whoever follows an expensive one pays for it; so nobody always does.
            let at = (turn + round) % clients.len();
            if let Pace::After(rest) = pace {
                thread::sleep(rest);
            }
            let start = Instant::now();
            clients[at]()?;
            if round >= WARM_UP {
                samples[at].add(start.elapsed());
            }
        }
    }
    let rows = contenders.iter().zip(&mut samples);
    let rows = rows.map(|(contender, samples)| Row::Latency {
        name: contender.name,
        median: samples.quantile(0.5),
        p90: samples.quantile(0.9),
    });
    Ok(Table::new(rows.collect()))
}

/// Bursts of each contender in turn; two passes, so that a drift hits all.
pub fn throughput(contenders: &[Contender], clients: usize, burst: Duration) -> Result<Table> {
    const PASSES: u32 = 2;
    let mut done = vec![0.0; contenders.len()];
    for _ in 0..PASSES {
        for (contender, done) in contenders.iter().zip(&mut done) {
            *done += burst_of(contender, clients, burst / PASSES)?;
        }
    }
    let rows = contenders.iter().zip(done);
    let rows =
        rows.map(|(contender, sum)| Row::Throughput { name: contender.name, per_second: sum / f64::from(PASSES) });
    Ok(Table::new(rows.collect()))
}

/// Starts per second of some clients that work at the same time.
pub fn burst_of(contender: &Contender, clients: usize, length: Duration) -> Result<f64> {
    let opened = (0..clients).map(|_| (contender.open)());
    let opened = opened.collect::<Result<Vec<Client>>>()?;
    let over = AtomicBool::new(false);
    let start = Instant::now();
    let counts = thread::scope(|scope| {
        let over = &over;
        let work = |mut client: Client| {
            scope.spawn(move || {
                let mut count = 0_u32;
                while !over.load(Ordering::Relaxed) {
                    client()?;
                    count += 1;
                }
                Ok(count)
            })
        };
        let workers: Vec<_> = opened.into_iter().map(work).collect();
        thread::sleep(length);
        over.store(true, Ordering::Relaxed);
        let counts = workers.into_iter().map(|worker| {
            let count = worker.join();
            count.unwrap_or_else(|_| Err("a client panicked".into()))
        });
        counts.collect::<Result<Vec<u32>>>()
    })?;
    let elapsed = start.elapsed().as_secs_f64();
    Ok(f64::from(counts.iter().sum::<u32>()) / elapsed)
}
