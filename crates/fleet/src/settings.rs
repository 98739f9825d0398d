//! The settings of the specification: those that people change while it runs, and those that
//! are fixed but for tests, the demo and the simulation.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::words::words;

words!(
    /// Which failures of a proxy count towards its deactivation.
    ProxyFailures {
        /// All that ever were, until someone reactivates it.
        Total = "total",
        /// Those since it last did well.
        Consecutive = "consecutive",
    }
);

/// Stored, and changed while the fleet runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Adjustable {
    /// Missions per session, after which the proxy is changed.
    pub session_limit: i32,
    /// Retries of a phase before a mission fails for good.
    pub max_retries: i32,
    pub proxy_failures: ProxyFailures,
}

impl Default for Adjustable {
    fn default() -> Self {
        Self { session_limit: 5, max_retries: 2, proxy_failures: ProxyFailures::Total }
    }
}

impl Adjustable {
    pub fn check(self) -> Result<Self> {
        if !(1..=1000).contains(&self.session_limit) {
            let text = format!("session_limit is {}: from 1 to 1000", self.session_limit);
            return Err(Error::Invalid(text));
        }
        if !(0..=20).contains(&self.max_retries) {
            let text = format!("max_retries is {}: from 0 to 20", self.max_retries);
            return Err(Error::Invalid(text));
        }
        Ok(self)
    }
}

/// The times by which the fleet goes; the defaults are the specification's, and ours where it has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    pub timeout_session: Duration,
    pub timeout_job: Duration,
    pub polling_session: Duration,
    pub polling_job: Duration,
    /// How often is looked for work that nobody announced.
    pub polling_queue: Duration,
    pub max_proxy_failures: i32,
    /// How long the end of a session, and of a job, is waited for.
    pub close_patience: Duration,
    pub stop_patience: Duration,
    /// After which a worker that does not answer loses its mission.
    pub worker_patience: Duration,
    /// After which a writer job that does not move has failed.
    pub writer_silence: Duration,
    /// Between attempts at a worker or a writer that fails: the first, doubled up to the last.
    pub backoff: (Duration, Duration),
    /// At most one entry of progress per job in so much time.
    pub progress_every: Duration,
    pub heartbeat: Duration,
    /// When a process that does not renew its row is taken to be dead.
    pub stale: Duration,
    /// How long one call of an API may take.
    pub call: Duration,
    /// How often workers, proxies and writers are tested.
    pub test_every: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            timeout_session: seconds(180),
            timeout_job: seconds(100 * 60),
            polling_session: seconds(10),
            polling_job: seconds(30),
            polling_queue: seconds(5),
            max_proxy_failures: 3,
            close_patience: seconds(60),
            stop_patience: seconds(60),
            worker_patience: seconds(5 * 60),
            writer_silence: seconds(10 * 60),
            backoff: (seconds(10), seconds(5 * 60)),
            progress_every: seconds(60),
            heartbeat: seconds(3),
            stale: seconds(10),
            call: seconds(30),
            test_every: seconds(5 * 60),
        }
    }
}

impl Timing {
    /// The wait after so many failures in a row.
    pub fn backoff_after(&self, failures: i32) -> Duration {
        let (first, last) = self.backoff;
        let doublings = failures.clamp(1, 16) as u32 - 1;
        first.saturating_mul(1 << doublings).min(last)
    }
}

/// All of it, as the machines take it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    pub adjustable: Adjustable,
    pub timing: Timing,
}
