//! The life of a task of the plan: what may happen to it, and what it is afterwards.
//!
//! ```text
//! PENDING ─► DISCOVERING ─► FETCHING ─► COMPLETE ─► PENDING      (a month that was not over)
//!    ▲            │ ▲           │ ▲
//!    └────────────┤ └── moved ──┤ │
//!                 ▼             ▼ │
//!               FAILED       PARTIAL
//! ```
//!
//! Nothing is a dead end: DISCOVERING and FETCHING are held by a process, and given back when it
//! dies; FAILED is taken up again by a person, or by a run a day later.

use jiff::{SignedDuration, Timestamp};

use crate::model::{Extraction, Status};

/// So often is a window discovered in one run, before its sums are given up as never matching.
pub const DISCOVERIES: i32 = 3;
/// So often, and for so long, does a discovery fail before the task has.
pub const ATTEMPTS: i32 = 8;
pub const FAILING_FOR: SignedDuration = SignedDuration::from_hours(1);
/// When a failed task is taken up again by itself.
pub const FAILED_FOR: SignedDuration = SignedDuration::from_hours(24);

/// What happens to a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    ClaimedToDiscover,
    /// Page 1 of each window is stored.
    Discovered {
        is_over: bool,
    },
    /// Trying again may help, after a wait.
    DiscoveryFailed {
        error: String,
        wait: SignedDuration,
    },
    /// It was too much for the server, and is asked for in smaller parts.
    Halved {
        error: String,
    },
    /// Trying again cannot help.
    Refused {
        error: String,
    },
    ClaimedToFetch,
    /// All that was missing has been asked for.
    Fetched(Fetched),
    /// Whoever held it is dead, stops, or gives it back.
    GivenBack {
        reason: Option<String>,
    },
    /// All of it is to be fetched again.
    Refreshed,
    /// A person, or time, takes up what failed.
    TakenUp,
}

/// How a task stands when there is nothing more to ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// Everything is there as promised.
    All,
    /// The source announces another total than when it was discovered.
    Moved { by: i64 },
    /// The pages have fewer records, or more, than the total says.
    Short { by: i64 },
    /// Pages could not be had.
    Without { pages: i64, error: String },
}

/// What a task is afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Next {
    pub status: Status,
    pub attempts: i32,
    pub failing_since: Option<Timestamp>,
    pub next_attempt_at: Option<Timestamp>,
    pub discoveries: i32,
    pub generation: i32,
    pub is_final: bool,
    pub verdict: Option<String>,
    pub last_error: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a task that is {status} cannot be {what}")]
pub struct Illegal {
    pub status: Status,
    pub what: &'static str,
}

/// The one function that live work, recovery and the commands of people go through.
pub fn next(task: &Extraction, happening: Happening, now: Timestamp) -> Result<Next, Illegal> {
    let same = Next {
        status: task.status,
        attempts: task.attempts,
        failing_since: task.failing_since,
        next_attempt_at: None,
        discoveries: task.discoveries,
        generation: task.generation,
        is_final: task.is_final,
        verdict: task.verdict.clone(),
        last_error: task.last_error.clone(),
    };
    let illegal = |what| Err(Illegal { status: task.status, what });
    match (happening, task.status) {
        (Happening::ClaimedToDiscover, Status::Pending | Status::Fetching) => {
            Ok(Next { status: Status::Discovering, ..same })
        }
        (Happening::ClaimedToDiscover, _) => illegal("discovered"),

        (Happening::Discovered { is_over }, Status::Discovering) => Ok(Next {
            status: Status::Fetching,
            attempts: 0,
            failing_since: None,
            discoveries: task.discoveries + 1,
            is_final: is_over,
            last_error: None,
            ..same
        }),
        (Happening::Discovered { .. }, _) => illegal("a discovery's end"),

        (Happening::DiscoveryFailed { error, wait }, Status::Discovering) => {
            let since = task.failing_since.unwrap_or(now);
            let attempts = task.attempts + 1;
            let is_given_up = attempts >= ATTEMPTS && now.duration_since(since) >= FAILING_FOR;
            Ok(Next {
                status: if is_given_up { Status::Failed } else { resting(task) },
                attempts,
                failing_since: Some(since),
                next_attempt_at: Some(now + if is_given_up { FAILED_FOR } else { wait }),
                last_error: Some(error),
                ..same
            })
        }
        (Happening::DiscoveryFailed { .. }, _) => illegal("failed in its discovery"),

        (Happening::Halved { error }, Status::Discovering) => Ok(Next {
            status: resting(task),
            attempts: 0,
            failing_since: None,
            last_error: Some(error),
            ..same
        }),
        (Happening::Halved { .. }, _) => illegal("halved"),

        (Happening::Refused { error }, Status::Discovering | Status::Fetching) => Ok(Next {
            status: Status::Failed,
            attempts: task.attempts + 1,
            failing_since: Some(task.failing_since.unwrap_or(now)),
            next_attempt_at: Some(now + FAILED_FOR),
            last_error: Some(error),
            ..same
        }),
        (Happening::Refused { .. }, _) => illegal("refused"),

        // A new run begins to count anew.
        (Happening::ClaimedToFetch, Status::Partial) => {
            Ok(Next { status: Status::Fetching, discoveries: 1, ..same })
        }
        (Happening::ClaimedToFetch, Status::Fetching) => Ok(same),
        (Happening::ClaimedToFetch, _) => illegal("fetched"),

        (Happening::Fetched(fetched), Status::Fetching) => Ok(ended(task, fetched, same)),
        (Happening::Fetched(_), _) => illegal("at the end of its pages"),

        (Happening::GivenBack { reason }, Status::Discovering | Status::Fetching) => Ok(Next {
            status: resting(task),
            last_error: reason.or(same.last_error.clone()),
            ..same
        }),
        (Happening::GivenBack { .. }, _) => illegal("given back"),

        (Happening::Refreshed, Status::Complete | Status::Partial | Status::Pending) => Ok(Next {
            status: Status::Pending,
            generation: task.generation + 1,
            discoveries: 0,
            verdict: None,
            last_error: None,
            is_final: false,
            ..same
        }),
        (Happening::Refreshed, _) => illegal("refreshed"),

        (Happening::TakenUp, Status::Failed | Status::Pending | Status::Partial) => {
            Ok(Next { status: resting(task), attempts: 0, failing_since: None, ..same })
        }
        (Happening::TakenUp, _) => illegal("taken up again"),
    }
}

/// What a task is while nobody is at work on it.
fn resting(task: &Extraction) -> Status {
    if task.discoveries > 0 { Status::Partial } else { Status::Pending }
}

fn ended(task: &Extraction, fetched: Fetched, same: Next) -> Next {
    let verdict = match fetched {
        Fetched::All => {
            return Next {
                status: Status::Complete,
                verdict: Some("exact".into()),
                last_error: None,
                ..same
            };
        }
        Fetched::Without { pages, error } => {
            let last_error = Some(format!("{pages} pages could not be had: {error}"));
            return Next { status: Status::Partial, verdict: None, last_error, ..same };
        }
        Fetched::Moved { by } => format!("drifted by {by}"),
        Fetched::Short { by } => format!("short by {by}"),
    };
    if task.discoveries < DISCOVERIES {
        Next { status: Status::Discovering, verdict: Some(verdict), ..same }
    } else {
        let last_error = Some(verdict.clone());
        Next { status: Status::Partial, verdict: Some(verdict), last_error, ..same }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ExtractionId;

    fn now() -> Timestamp {
        "2026-11-16T10:00:00Z".parse().unwrap()
    }

    fn task(status: Status) -> Extraction {
        let data_date = jiff::civil::date(2024, 1, 1);
        Extraction {
            task_id: ExtractionId::new("contratos_publicacao", data_date),
            endpoint_name: "contratos_publicacao".into(),
            data_date,
            status,
            total_pages: None,
            total_records: None,
            last_error: None,
            updated_at: now(),
            token: 1,
            process: None,
            attempts: 0,
            failing_since: None,
            next_attempt_at: None,
            discoveries: 1,
            generation: 1,
            discovered_at: None,
            is_final: false,
            verdict: None,
        }
    }

    fn all_happenings() -> Vec<Happening> {
        let wait = SignedDuration::from_secs(5);
        let error = || "it failed".to_owned();
        let all = [Fetched::All, Fetched::Moved { by: 2 }, Fetched::Short { by: 3 }];
        let fetched = all.into_iter().chain([Fetched::Without { pages: 1, error: error() }]);
        let others = [
            Happening::ClaimedToDiscover,
            Happening::Discovered { is_over: true },
            Happening::DiscoveryFailed { error: error(), wait },
            Happening::Halved { error: error() },
            Happening::Refused { error: error() },
            Happening::ClaimedToFetch,
            Happening::GivenBack { reason: None },
            Happening::Refreshed,
            Happening::TakenUp,
        ];
        others.into_iter().chain(fetched.map(Happening::Fetched)).collect()
    }

    /// Every pair of state and happening: where it leads, or that it leads nowhere.
    #[test]
    #[expect(clippy::match_same_arms, reason = "a line for each happening")]
    fn nothing_leads_anywhere_but_where_it_should() {
        use Status::{Complete, Discovering, Failed, Fetching, Partial, Pending};
        for status in Status::ALL {
            for happening in all_happenings() {
                let expected = match (&happening, status) {
                    (Happening::ClaimedToDiscover, Pending | Fetching) => Some(Discovering),
                    (Happening::Discovered { .. }, Discovering) => Some(Fetching),
                    (Happening::DiscoveryFailed { .. }, Discovering) => Some(Partial),
                    (Happening::Halved { .. }, Discovering) => Some(Partial),
                    (Happening::Refused { .. }, Discovering | Fetching) => Some(Failed),
                    (Happening::ClaimedToFetch, Partial | Fetching) => Some(Fetching),
                    (Happening::GivenBack { .. }, Discovering | Fetching) => Some(Partial),
                    (Happening::Refreshed, Complete | Partial | Pending) => Some(Pending),
                    (Happening::TakenUp, Failed | Pending | Partial) => Some(Partial),
                    (Happening::Fetched(Fetched::All), Fetching) => Some(Complete),
                    (Happening::Fetched(Fetched::Without { .. }), Fetching) => Some(Partial),
                    (Happening::Fetched(_), Fetching) => Some(Discovering),
                    _ => None,
                };
                let found = next(&task(status), happening.clone(), now());
                assert_eq!(found.ok().map(|n| n.status), expected, "{status} {happening:?}");
            }
        }
    }

    #[test]
    fn what_was_never_discovered_waits_and_what_was_is_partial() {
        let fresh = Extraction { discoveries: 0, ..task(Status::Discovering) };
        let back = next(&fresh, Happening::GivenBack { reason: None }, now()).unwrap();
        assert_eq!(back.status, Status::Pending);
        let back = next(&task(Status::Fetching), Happening::GivenBack { reason: None }, now());
        assert_eq!(back.unwrap().status, Status::Partial);
    }

    #[test]
    fn a_discovery_fails_for_good_only_after_many_attempts_over_a_long_time() {
        let fail = |task: &Extraction, now: Timestamp| {
            let wait = SignedDuration::from_secs(5);
            next(task, Happening::DiscoveryFailed { error: "503".into(), wait }, now).unwrap()
        };
        let fresh = Extraction { discoveries: 0, ..task(Status::Discovering) };
        let first = fail(&fresh, now());
        assert_eq!((first.status, first.attempts), (Status::Pending, 1));
        assert_eq!(first.next_attempt_at, Some(now() + SignedDuration::from_secs(5)));
        let hour = SignedDuration::from_hours(1);
        let many = Extraction { attempts: 20, failing_since: Some(now()), ..fresh.clone() };
        let soon = now() + hour - SignedDuration::from_secs(1);
        assert_eq!(fail(&many, soon).status, Status::Pending, "an outage of less than an hour");
        let few = Extraction { attempts: 6, failing_since: Some(now()), ..fresh.clone() };
        assert_eq!(fail(&few, now() + hour * 5).status, Status::Pending);
        let last = Extraction { attempts: 7, ..few };
        let failed = fail(&last, now() + hour);
        assert_eq!(failed.status, Status::Failed);
        assert_eq!(failed.next_attempt_at, Some(now() + hour * 25), "taken up a day later");
    }

    #[test]
    fn sums_that_never_match_are_told_after_three_discoveries() {
        let short = || Happening::Fetched(Fetched::Short { by: 3 });
        let again = next(&task(Status::Fetching), short(), now()).unwrap();
        assert_eq!(
            (again.status, again.verdict.as_deref()),
            (Status::Discovering, Some("short by 3"))
        );
        let third = Extraction { discoveries: 3, ..task(Status::Fetching) };
        let given_up = next(&third, short(), now()).unwrap();
        assert_eq!(
            (given_up.status, given_up.last_error.as_deref()),
            (Status::Partial, Some("short by 3"))
        );
        let next_run = Extraction { status: Status::Partial, ..third };
        let taken = next(&next_run, Happening::ClaimedToFetch, now()).unwrap();
        assert_eq!((taken.status, taken.discoveries), (Status::Fetching, 1));
    }

    #[test]
    fn a_refresh_is_a_new_generation_and_a_month_that_is_over_is_final() {
        let fresh = next(&task(Status::Complete), Happening::Refreshed, now()).unwrap();
        assert_eq!((fresh.generation, fresh.discoveries, fresh.is_final), (2, 0, false));
        let found =
            next(&task(Status::Discovering), Happening::Discovered { is_over: true }, now());
        assert!(found.unwrap().is_final);
    }
}
