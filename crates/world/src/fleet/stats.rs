//! What a fleet tells of itself.

use std::collections::BTreeMap;

use serde::Serialize;

pub use super::ledger::Fates;

/// Everything as it is at one time, and what was asked until then.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FleetStats {
    /// By what was asked: `open_session`, `session_status`, `close_session`, `start_scrape`, `job`,
    /// `cancel_job`, `results`, `process`, `write`, `health`, `elsewhere`.
    pub requests: BTreeMap<&'static str, u64>,
    pub fates: Fates,
    pub sessions_opened: u64,
    pub sessions_open: u64,
    pub jobs_started: u64,
    pub jobs_running: u64,
    /// Which workers have an open session behind each proxy, named `user@server`.
    pub proxies_in_use: BTreeMap<String, Vec<usize>>,
    pub workers: Vec<WorkerStats>,
    /// By what stands before the last colon of the idempotency keys of scrapes.
    pub missions: BTreeMap<String, MissionStats>,
    /// By data URL.
    pub writes: BTreeMap<String, WriteStats>,
    pub violations: usize,
    pub excused: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WorkerStats {
    pub requests: u64,
    pub sessions: u64,
    /// Jobs that began here.
    pub starts: u64,
    /// The most jobs that it was asked to have at once: above 1 is a violation.
    pub asked_at_once: u64,
    /// What `GET /session/status` would say.
    pub session: Option<&'static str>,
    pub proxy: Option<String>,
    /// The job that is not over.
    pub job: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MissionStats {
    pub starts: u64,
    /// The workers on which it runs.
    pub running_on: Vec<usize>,
    pub completed: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WriteStats {
    /// Jobs that were accepted for it, by writer and id.
    pub jobs: Vec<(usize, String)>,
    /// How many of them have stored it.
    pub written: u64,
}

/// A scrape job, as it is at one time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobSeen {
    pub job_id: String,
    pub worker: usize,
    pub mission: Option<String>,
    pub status: &'static str,
    pub ads_count: u64,
    /// How many ads there are in truth.
    pub true_count: u64,
    pub is_over: bool,
}
