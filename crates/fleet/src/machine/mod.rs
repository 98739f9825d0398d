//! The state machines of worker, mission and proxy, without any database or network.
//!
//! [`worker::todo`] and [`writer::todo`] say, from the rows alone, what is to be done next;
//! [`worker::after`] and [`writer::after`] what an answer means: one [`Step`], which is written in
//! one transaction. As nothing but the rows decides, going on after a crash is going on.

pub mod mission;
#[cfg(test)]
mod tests;
pub mod worker;
pub mod writer;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use lavra_tasks::model::Token;
use serde_json::{Map, Value};

use crate::model::{
    EventKind, Mission, MissionId, MissionStatus, ProxyId, SessionId, Worker, WorkerStatus,
};

/// What one transaction writes: nothing of it, if a row is no longer the writer's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// The worker afterwards; only if it has this token.
    pub worker: Option<(Token, Worker)>,
    /// The mission afterwards.
    pub mission: Option<(Guard, Mission)>,
    /// A proxy that becomes the worker's.
    pub reserves: Option<ProxyId>,
    /// Entries of this session that belong to no mission become the mission's.
    pub links: Option<SessionId>,
    /// A proxy with one more failure, and how many deactivate it.
    pub blamed: Option<(ProxyId, i32)>,
    /// A proxy that did well, where only failures in a row count.
    pub praised: Option<ProxyId>,
    /// The worker's proxy is free again.
    pub releases_proxy: bool,
    pub logs: Vec<Entry>,
    /// The rows as they were when the step was thought of: one that was written although its answer
    /// was lost is not written again.
    pub seen: Seen,
}

/// When the rows of a step last changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// `updated_at` of the worker.
    pub worker: Option<Timestamp>,
    /// `logged_at` of the mission.
    pub mission: Option<Timestamp>,
}

/// What a mission must be for a step to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Running, with this token.
    Held(Token),
    /// In the queue.
    Queued,
}

/// A log entry to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub mission_id: Option<MissionId>,
    pub session_id: Option<SessionId>,
    pub event: EventKind,
    pub details: Map<String, Value>,
    pub at: Timestamp,
}

/// Whether a mission may go from one state to another: the specification's table, and the three of ours.
pub fn mission_may(from: MissionStatus, to: MissionStatus) -> bool {
    use MissionStatus::{Canceled, Completed, Failed, Queued, Running};
    matches!(
        (from, to),
        (Queued, Running | Canceled)
            | (Running, Running | Completed | Failed | Canceled | Queued)
            | (Failed, Queued)
    )
}

/// Whether a worker may: the specification's table, and the two of ours.
pub fn worker_may(from: WorkerStatus, to: WorkerStatus) -> bool {
    use WorkerStatus::{Error, Idle, Initializing, Ready, Scraping};
    matches!(
        (from, to),
        (Idle, Initializing)
            | (Initializing | Scraping, Ready | Error)
            | (Ready, Scraping | Error)
            | (_, Idle)
    )
}

fn later(time: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    time.saturating_add(by).unwrap_or(Timestamp::MAX)
}

/// Whole milliseconds between two moments.
fn milliseconds(from: Option<Timestamp>, to: Timestamp) -> i64 {
    from.map_or(0, |from| (to.as_millisecond() - from.as_millisecond()).max(0))
}

/// When the next entry of a mission's log is: after the last one, whatever the clock says.
pub(crate) fn next_entry(last: Option<Timestamp>, now: Timestamp) -> Timestamp {
    match last {
        Some(last) if last >= now => later(last, Duration::from_micros(1)),
        _ => now,
    }
}

/// The URL without what may be a signature.
pub fn without_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or(url)
}
