//! The bad days of a fleet, as switches. All are off until someone turns them on.
//!
//! What befalls a session, a job, a write or a request is drawn when it begins, from the seed, the server
//! and its number there. At most one share of each group falls on one of them.

mod kinds;
mod outage;

use serde::{Deserialize, Serialize};

pub(super) use kinds::{JobFault, RequestFault, SessionFault, WriteFault, draw};
pub use outage::{Outages, Window};

/// The switches. Shares are from 0 to 1, and those of one group together no more than 1.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct FleetFaults {
    /// Of all sessions.
    pub sessions: SessionFaults,
    /// Of all proxies: no session behind them is ever ready.
    pub bad_proxies: f64,
    /// Of all scrape jobs.
    pub jobs: JobFaults,
    /// Of all scrape jobs: a cancel is accepted and changes nothing.
    pub cancel_ignored: f64,
    /// Of all `DELETE /session`: 500, and the session stays.
    pub close_fails: f64,
    /// Of all requests to workers, but for results.
    pub worker_requests: RequestFaults,
    pub worker_outages: Outages,
    /// Of all jobs of writers.
    pub writes: WriteFaults,
    /// Of all requests to writers.
    pub writer_requests: RequestFaults,
    pub writer_outages: Outages,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct SessionFaults {
    /// At any time, before it is ready or after.
    pub stuck: f64,
    pub disconnected_early: f64,
    /// Soon after it was ready.
    pub disconnected_ready: f64,
    /// During its first, second or third job, which fails or stays as it is.
    pub disconnected_scraping: f64,
    /// It ends by itself, and its job with it.
    pub terminated: f64,
    /// It stays in one of the statuses before.
    pub never_ready: f64,
    /// A status that nobody knows before it is ready, or instead.
    pub unknown: f64,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct JobFaults {
    pub fails: f64,
    /// By itself.
    pub cancelled: f64,
    /// It holds its session until it is cancelled or the session ends, and never goes on.
    pub pauses: f64,
    /// It runs and gets no further.
    pub hangs: f64,
    /// The worker knows it no more; it is over.
    pub vanishes: f64,
    /// Empty, though there are ads.
    pub empty: f64,
    /// A status that nobody knows, before its end or for ever.
    pub unknown: f64,
}

/// Faults of single requests. Unless it says otherwise the request has no effect.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct RequestFaults {
    /// 200 and a page of HTML.
    pub html: f64,
    /// 401.
    pub unauthorized: f64,
    /// 413.
    pub too_large: f64,
    /// 422.
    pub unprocessable: f64,
    /// 429 without `Retry-After`.
    pub too_many: f64,
    /// 429 with it.
    pub retry_after: f64,
    pub retry_after_seconds: u64,
    /// 500.
    pub server_error: f64,
    pub refused: f64,
    /// No answer.
    pub timeout: f64,
    /// The connection is reset, in half of the cases after the request took effect.
    pub reset: f64,
    /// The request takes effect and no answer comes.
    pub lost: f64,
    /// The answer comes late.
    pub slow: f64,
    pub slow_most_ms: u64,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct WriteFaults {
    pub fails: f64,
    /// It fails with ERROR303.
    pub schema: f64,
    /// `processed` stops moving.
    pub silent: f64,
    /// The writer knows the job no more, and it is not done.
    pub forgotten: f64,
    /// Some items fail.
    pub partial: f64,
    /// A status that nobody knows, for a while.
    pub unknown: f64,
}

/// Why switches cannot be set so.
#[derive(Debug, thiserror::Error)]
pub enum BadFleetFaults {
    #[error("{0} must have shares from 0 to 1 that are together no more than 1")]
    Shares(&'static str),
}

impl FleetFaults {
    /// Everything that can go wrong, about as often as on a bad day of a real fleet.
    pub fn all() -> Self {
        let requests = RequestFaults {
            html: 0.002,
            unauthorized: 0.001,
            too_large: 0.0005,
            unprocessable: 0.0005,
            too_many: 0.004,
            retry_after: 0.004,
            retry_after_seconds: 15,
            server_error: 0.006,
            refused: 0.004,
            timeout: 0.004,
            reset: 0.004,
            lost: 0.006,
            slow: 0.01,
            slow_most_ms: 20_000,
        };
        Self {
            sessions: SessionFaults {
                stuck: 0.02,
                disconnected_early: 0.02,
                disconnected_ready: 0.01,
                disconnected_scraping: 0.03,
                terminated: 0.02,
                never_ready: 0.02,
                unknown: 0.02,
            },
            bad_proxies: 0.05,
            jobs: JobFaults {
                fails: 0.04,
                cancelled: 0.01,
                pauses: 0.01,
                hangs: 0.01,
                vanishes: 0.01,
                empty: 0.005,
                unknown: 0.01,
            },
            cancel_ignored: 0.05,
            close_fails: 0.03,
            worker_requests: requests,
            worker_outages: Outages {
                every_ms: 4 * 3_600_000,
                share: 0.3,
                lasts_ms: 8 * 60_000,
                windows: Vec::new(),
            },
            writes: WriteFaults {
                fails: 0.02,
                schema: 0.002,
                silent: 0.01,
                forgotten: 0.01,
                partial: 0.05,
                unknown: 0.01,
            },
            writer_requests: requests,
            writer_outages: Outages {
                every_ms: 12 * 3_600_000,
                share: 0.5,
                lasts_ms: 3_600_000,
                windows: Vec::new(),
            },
        }
    }

    pub(super) fn check(&self) -> Result<(), BadFleetFaults> {
        let alone = |share: f64| vec![share];
        let groups = [
            ("sessions", shares(&self.sessions.kinds())),
            ("bad_proxies", alone(self.bad_proxies)),
            ("jobs", shares(&self.jobs.kinds())),
            ("cancel_ignored", alone(self.cancel_ignored)),
            ("close_fails", alone(self.close_fails)),
            ("worker_requests", shares(&self.worker_requests.kinds())),
            ("worker_outages", alone(self.worker_outages.share)),
            ("writes", shares(&self.writes.kinds())),
            ("writer_requests", shares(&self.writer_requests.kinds())),
            ("writer_outages", alone(self.writer_outages.share)),
        ];
        for (name, shares) in groups {
            let is_right = shares.iter().all(|share| (0.0..=1.0).contains(share));
            if !is_right || shares.iter().sum::<f64>() > 1.0 + 1e-9 {
                return Err(BadFleetFaults::Shares(name));
            }
        }
        Ok(())
    }
}

fn shares<T>(kinds: &[(f64, T)]) -> Vec<f64> {
    kinds.iter().map(|(share, _)| *share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_can_be_set_and_survives_json() {
        let all = FleetFaults::all();
        all.check().unwrap();
        let text = serde_json::to_string(&all).unwrap();
        assert_eq!(serde_json::from_str::<FleetFaults>(&text).unwrap(), all);
        assert_eq!(serde_json::from_str::<FleetFaults>("{}").unwrap(), FleetFaults::default());
        assert!(serde_json::from_str::<FleetFaults>(r#"{"nothing": 1}"#).is_err());
    }

    #[test]
    fn shares_that_are_none_are_refused() {
        let mut faults = FleetFaults { bad_proxies: 1.5, ..FleetFaults::default() };
        assert!(faults.check().is_err());
        faults = FleetFaults::default();
        faults.jobs = JobFaults { fails: 0.6, hangs: 0.6, ..JobFaults::default() };
        assert!(faults.check().is_err());
        faults = FleetFaults { close_fails: f64::NAN, ..FleetFaults::default() };
        assert!(faults.check().is_err());
    }

    #[test]
    fn every_switch_of_the_mix_is_on() {
        fn numbers(value: &serde_json::Value, found: &mut Vec<f64>) {
            match value {
                serde_json::Value::Object(map) => {
                    map.values().for_each(|value| numbers(value, found));
                }
                other => found.extend(other.as_f64()),
            }
        }
        let mut found = Vec::new();
        numbers(&serde_json::to_value(FleetFaults::all()).unwrap(), &mut found);
        assert!(found.len() > 40 && found.iter().all(|number| *number > 0.0), "{found:?}");
    }
}
