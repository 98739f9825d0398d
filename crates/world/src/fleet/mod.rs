//! Doubles of the Worker API and of the Writer API (as the specification has them).
//!
//! A fleet is a pure function of its seed, its configuration, its switches and what was asked of it when:
//! time is an argument, so a simulation can run a day in a moment and again exactly so. What sessions, jobs
//! and writes do is decided when they begin; what they say is found out when someone asks. Behind a socket
//! ([`FleetWorld::serve`]) the time is the clock's.
//!
//! Beside its answers it keeps what an orchestrator must never cause ([`FleetWorld::violations`]). Where
//! the fleet itself did not let the orchestrator end what was before (a `DELETE` that failed), the
//! same is [`FleetWorld::excused`]: no orchestrator could know better.

pub(crate) mod ads;
mod ask;
mod config;
mod faults;
mod job;
mod ledger;
mod route;
mod server;
mod session;
mod state;
mod stats;
mod worker;
mod write;
mod writer;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

pub use ads::{Ad, Filters, Format};
pub use ask::{Fate, FleetAnswer, FleetBody, FleetRequest};
pub use config::{FleetConfig, Span};
pub use faults::{
    BadFleetFaults, FleetFaults, JobFaults, Outages, RequestFaults, SessionFaults, Window,
    WriteFaults,
};
pub use stats::{Fates, FleetStats, JobSeen, MissionStats, WorkerStats, WriteStats};

use ads::Library;
use job::Ids;
use ledger::Ledger;
use route::Route;
use state::State;
use worker::Worker;
use writer::Writer;

/// Workers and writers. Clones are the same fleet.
#[derive(Clone, Debug)]
pub struct FleetWorld {
    state: Arc<Mutex<State>>,
}

/// The most servers of a kind.
const MOST_SERVERS: usize = 100_000;
const MOST_ADS: u64 = 100_000;

impl FleetWorld {
    pub fn new(config: FleetConfig, seed: u64) -> Self {
        let config = FleetConfig {
            workers: config.workers.min(MOST_SERVERS),
            writers: config.writers.min(MOST_SERVERS),
            ads: config.ads.min(MOST_ADS),
            ..config
        };
        let worker = |number| Worker::new(FleetConfig::key(config.worker_key.as_ref(), number));
        let writer = |number| Writer::new(FleetConfig::key(config.writer_key.as_ref(), number));
        let state = State {
            seed,
            faults: Arc::default(),
            library: Library::new(seed, &config),
            ids: Ids::new(seed),
            workers: (0..config.workers).map(worker).collect(),
            writers: (0..config.writers).map(writer).collect(),
            jobs: Vec::new(),
            proxies: BTreeMap::new(),
            ledger: Ledger::default(),
            latest: Duration::ZERO,
            config,
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// What is asked, answered as it is at that time since the world began.
    pub fn answer(&self, now: Duration, request: &FleetRequest<'_>) -> FleetAnswer {
        self.state.lock().answer(now, request)
    }

    /// The base URL of a worker, which is its storage domain as well.
    pub fn worker_url(&self, number: usize) -> String {
        format!("{}/worker/{number}", self.state.lock().config.base_url)
    }

    /// Where the fleet is served, for the URLs of its servers.
    pub fn set_base_url(&self, url: &str) {
        url.trim_end_matches('/').clone_into(&mut self.state.lock().config.base_url);
    }

    pub fn writer_url(&self, number: usize) -> String {
        format!("{}/writer/{number}", self.state.lock().config.base_url)
    }

    pub fn worker_key(&self, number: usize) -> Option<String> {
        FleetConfig::key(self.state.lock().config.worker_key.as_ref(), number)
    }

    pub fn writer_key(&self, number: usize) -> Option<String> {
        FleetConfig::key(self.state.lock().config.writer_key.as_ref(), number)
    }

    /// The ads that a scrape with these filters finds, in the order of its results.
    pub fn truth(&self, filters: &Filters) -> Vec<Ad> {
        let library = self.state.lock().library;
        library.truth(filters)
    }

    pub fn faults(&self) -> FleetFaults {
        FleetFaults::clone(&self.state.lock().faults)
    }

    /// Sets all switches at once, for what begins from now on.
    pub fn set_faults(&self, faults: FleetFaults) -> Result<(), BadFleetFaults> {
        faults.check()?;
        self.state.lock().faults = Arc::new(faults);
        Ok(())
    }

    /// What a right orchestrator never causes, and this one did (the first thousand).
    pub fn violations(&self) -> Vec<String> {
        self.state.lock().ledger.violations.clone()
    }

    /// How many there are: for those who ask after every step.
    pub fn violation_count(&self) -> usize {
        self.state.lock().ledger.violations.len()
    }

    /// What would be violations had the fleet not refused to end what was before.
    pub fn excused(&self) -> Vec<String> {
        self.state.lock().ledger.excused.clone()
    }

    /// The time of the latest request.
    pub fn latest(&self) -> Duration {
        self.state.lock().latest
    }

    /// Sessions that hold a proxy at that time.
    pub fn sessions_open(&self, now: Duration) -> usize {
        let state = self.state.lock();
        (0..state.workers.len()).filter(|server| state.has_open_session(*server, now)).count()
    }

    /// Scrape jobs that are not over at that time.
    pub fn jobs_running(&self, now: Duration) -> usize {
        let state = self.state.lock();
        let has_job = |server: &usize| state.session_now(*server, now).is_some_and(|(.., job)| job);
        (0..state.workers.len()).filter(has_job).count()
    }

    /// Everything that was asked, and how all is at that time.
    pub fn stats(&self, now: Duration) -> FleetStats {
        self.state.lock().stats(now)
    }

    /// All scrape jobs that ever began.
    pub fn jobs(&self, now: Duration) -> Vec<JobSeen> {
        let state = self.state.lock();
        let seen = |(number, job): (usize, &job::Job)| JobSeen {
            job_id: state.ids.id(number),
            worker: job.worker,
            mission: job.mission.as_deref().map(str::to_owned),
            status: job.phase(now).word(),
            ads_count: job.ads_count(now),
            true_count: job.count,
            is_over: job.is_over(now),
        };
        state.jobs.iter().enumerate().map(seen).collect()
    }
}

impl State {
    fn stats(&self, now: Duration) -> FleetStats {
        let mut stats = FleetStats {
            requests: Route::NAMES.into_iter().zip(self.ledger.requests).collect(),
            fates: self.ledger.fates,
            sessions_opened: self.ledger.sessions,
            jobs_started: self.jobs.len() as u64,
            violations: self.ledger.violations.len(),
            excused: self.ledger.excused.len(),
            ..FleetStats::default()
        };
        for (server, worker) in self.workers.iter().enumerate() {
            let mut seen = WorkerStats {
                requests: worker.requests,
                sessions: worker.sessions,
                starts: worker.starts,
                asked_at_once: worker.asked_at_once,
                ..WorkerStats::default()
            };
            if let Some((session, is, has_job)) = self.session_now(server, now) {
                seen.session = Some(is.word(has_job));
                seen.proxy = Some(session.proxy.to_string());
                seen.job = session.job.filter(|_| has_job).map(|number| self.ids.id(number));
                stats.jobs_running += u64::from(has_job);
                if session.is_open(now) {
                    stats.sessions_open += 1;
                    stats.proxies_in_use.entry(session.proxy.to_string()).or_default().push(server);
                }
            }
            stats.workers.push(seen);
        }
        for (name, mission) in &self.ledger.missions {
            let jobs: Vec<&job::Job> =
                mission.jobs.iter().filter_map(|number| self.jobs.get(*number)).collect();
            let seen = MissionStats {
                starts: jobs.len() as u64,
                running_on: jobs
                    .iter()
                    .filter(|job| !job.is_over(now))
                    .map(|job| job.worker)
                    .collect(),
                completed: jobs.iter().filter(|job| job.is_done(now)).count() as u64,
            };
            stats.missions.insert(name.to_string(), seen);
        }
        for (server, writer) in self.writers.iter().enumerate() {
            for (id, write) in &writer.writes {
                let seen = stats.writes.entry(write.url.clone()).or_default();
                seen.jobs.push((server, id.clone()));
                seen.written += u64::from(write.phase(now).is_written());
            }
        }
        stats
    }
}
