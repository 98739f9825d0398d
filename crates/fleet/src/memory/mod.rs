//! The store in memory, for simulations: the answers of the databases without one, under a clock
//! that can be stopped. It is held to the same contract.

mod adjust;
mod glance;
mod lease;
mod read;
mod report;
mod step;
mod supervise;
mod tables;
mod thing;
mod wish;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use lavra_db::Clock;
use lavra_tasks::model::{ProcessId, Token};
use tokio::sync::Notify;

use crate::model::{
    LogEntry, Mission, MissionId, Mode, Proxy, ProxyId, SessionId, Worker, WorkerId, Writer,
    WriterId,
};
use crate::settings::Adjustable;
use crate::store::{Control, Counts, Store, Thing};

/// The fleet's tables, in memory. Clones are the same tables.
#[derive(Clone, Debug)]
pub struct Memory {
    tables: Arc<Mutex<Tables>>,
    clock: Clock,
    /// While it says so, whoever asks through here is frozen.
    frozen: Option<Freezer>,
}

/// Freezes whoever asks through it, as SIGSTOP would; woken, they go on in the order in which they
/// came.
#[derive(Clone, Debug, Default)]
pub struct Freezer(Arc<(AtomicBool, Notify)>);

impl Freezer {
    pub fn freeze(&self) {
        self.0.0.store(true, Ordering::SeqCst);
    }

    pub fn thaw(&self) {
        self.0.0.store(false, Ordering::SeqCst);
        self.0.1.notify_waiters();
    }

    async fn thawed(&self) {
        loop {
            let waiting = self.0.1.notified();
            if !self.0.0.load(Ordering::SeqCst) {
                return;
            }
            waiting.await;
        }
    }
}

/// What the tables hold, for those who check them.
#[derive(Debug)]
pub struct Tables {
    pub missions: BTreeMap<MissionId, Mission>,
    pub workers: BTreeMap<WorkerId, Worker>,
    pub proxies: BTreeMap<ProxyId, Proxy>,
    pub writers: BTreeMap<WriterId, Writer>,
    pub logs: Vec<LogEntry>,
    secrets: BTreeMap<Thing, String>,
    processes: BTreeMap<ProcessId, Timestamp>,
    /// Places in the log of entries that no mission has yet, by their session.
    unlinked: BTreeMap<SessionId, Vec<usize>>,
    /// What waits for a worker, in its order.
    queue: BTreeSet<(Timestamp, MissionId)>,
    /// What is being stored, or waits to be without being scraped.
    storing: BTreeSet<MissionId>,
    counts: Counts,
    adjustable: Adjustable,
    control: Control,
    last_token: Token,
    is_checked: bool,
    is_unguarded: bool,
    /// Steps that should never have been written.
    pub wrong: Vec<String>,
}

impl Default for Tables {
    fn default() -> Self {
        Self {
            missions: BTreeMap::new(),
            workers: BTreeMap::new(),
            proxies: BTreeMap::new(),
            writers: BTreeMap::new(),
            logs: Vec::new(),
            secrets: BTreeMap::new(),
            processes: BTreeMap::new(),
            unlinked: BTreeMap::new(),
            queue: BTreeSet::new(),
            storing: BTreeSet::new(),
            counts: Counts::default(),
            adjustable: Adjustable::default(),
            control: Control { mode: Mode::Off, task_id: None },
            last_token: 0,
            is_checked: false,
            is_unguarded: false,
            wrong: Vec::new(),
        }
    }
}

impl Memory {
    /// Empty tables at `now`; time goes on as tokio's does.
    pub fn new(now: Timestamp) -> Self {
        Self { tables: Arc::default(), clock: Clock::simulated(now), frozen: None }
    }

    /// The same tables as a process sees them that can be frozen.
    #[must_use]
    pub fn through(&self, frozen: Freezer) -> Self {
        Self { frozen: Some(frozen), ..self.clone() }
    }

    /// From here on every step is checked as it is written, and what is wrong is kept in
    /// [`Tables::wrong`].
    pub fn check_steps(&self) {
        self.tables().is_checked = true;
    }

    /// From here on a step is written whoever holds its rows. For those who test that this is found.
    pub fn break_the_guard(&self) {
        self.tables().is_unguarded = true;
    }

    async fn thawed(&self) {
        if let Some(frozen) = &self.frozen {
            frozen.thawed().await;
        }
    }

    /// The tables, for those who check them.
    pub fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Timestamp {
        whole_microseconds(self.clock.now())
    }
}

fn whole_microseconds(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}

impl Store for Memory {
    fn clock(&self) -> &Clock {
        &self.clock
    }
}
