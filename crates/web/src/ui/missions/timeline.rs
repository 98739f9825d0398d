//! A mission's log as three lanes: session, scrape, write; each attempt a span.

use jiff::Timestamp;
use lavra_fleet::code::ErrorCode;
use lavra_fleet::model::{EventKind, LogEntry};
use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Session,
    Scrape,
    Write,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    Failed,
    /// Ended without success or failure: canceled, put back, taken over.
    Ended,
    Open,
}

/// One attempt at a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    pub(super) phase: Phase,
    pub(super) from: Timestamp,
    pub(super) to: Option<Timestamp>,
    pub(super) outcome: Outcome,
    pub(super) code: Option<ErrorCode>,
    pub(super) worker: Option<String>,
    pub(super) proxy: Option<String>,
}

/// What an entry means to a phase.
enum Mark {
    Begins(Phase),
    Ends(Phase, Outcome),
    /// Whatever is open has ended.
    EndsAll,
    Nothing,
}

fn mark(event: EventKind) -> Mark {
    match event {
        EventKind::SessionStarted => Mark::Begins(Phase::Session),
        EventKind::SessionReady => Mark::Ends(Phase::Session, Outcome::Done),
        EventKind::SessionFailed => Mark::Ends(Phase::Session, Outcome::Failed),
        EventKind::SessionTerminated => Mark::Ends(Phase::Session, Outcome::Ended),
        EventKind::ScrapeStarted => Mark::Begins(Phase::Scrape),
        EventKind::ScrapeCompleted | EventKind::ScrapeEmpty => {
            Mark::Ends(Phase::Scrape, Outcome::Done)
        }
        EventKind::ScrapeFailed => Mark::Ends(Phase::Scrape, Outcome::Failed),
        EventKind::WriterStarted => Mark::Begins(Phase::Write),
        EventKind::WriterCompleted => Mark::Ends(Phase::Write, Outcome::Done),
        EventKind::WriterFailed => Mark::Ends(Phase::Write, Outcome::Failed),
        EventKind::MissionQueued
        | EventKind::MissionCanceled
        | EventKind::MissionCompleted
        | EventKind::MissionFailed => Mark::EndsAll,
        EventKind::MissionAssigned
        | EventKind::ScrapeProgress
        | EventKind::WriterProgress
        | EventKind::RetryTriggered
        | EventKind::ProxyRotated => Mark::Nothing,
    }
}

/// The attempts that a log tells of, which comes oldest first.
pub(super) fn attempts(log: &[LogEntry]) -> Vec<Attempt> {
    let mut all: Vec<Attempt> = Vec::new();
    // Who has it now: a scrape does not say behind which proxy.
    let (mut on, mut behind): (Option<String>, Option<String>) = (None, None);
    let text = |entry: &LogEntry, name: &str| {
        entry.details.get(name).and_then(Value::as_str).map(str::to_owned)
    };
    for entry in log {
        let at = entry.timestamp;
        let worker = text(entry, "worker_name").or_else(|| text(entry, "worker_id"));
        let proxy = text(entry, "proxy_name");
        if entry.event == EventKind::MissionAssigned {
            (on, behind) = (worker.clone(), proxy.clone());
        }
        match mark(entry.event) {
            Mark::Begins(phase) => {
                close(&mut all, Some(phase), at, Outcome::Ended, None);
                all.push(Attempt {
                    phase,
                    from: at,
                    to: None,
                    outcome: Outcome::Open,
                    code: None,
                    worker: worker.or_else(|| on.clone().filter(|_| phase == Phase::Scrape)),
                    proxy: proxy.or_else(|| behind.clone().filter(|_| phase == Phase::Scrape)),
                });
            }
            Mark::Ends(phase, outcome) => {
                let code = text(entry, "error_code").and_then(|code| code.parse().ok());
                close(&mut all, Some(phase), at, outcome, code);
            }
            Mark::EndsAll => close(&mut all, None, at, Outcome::Ended, None),
            Mark::Nothing => {}
        }
    }
    all
}

fn close(
    all: &mut [Attempt],
    phase: Option<Phase>,
    at: Timestamp,
    outcome: Outcome,
    code: Option<ErrorCode>,
) {
    for attempt in all.iter_mut().rev() {
        if attempt.to.is_none() && phase.is_none_or(|phase| attempt.phase == phase) {
            attempt.to = Some(at);
            attempt.outcome = outcome;
            attempt.code = code;
        }
    }
}

#[cfg(test)]
mod tests {
    use lavra_fleet::model::LogId;
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    fn entry(second: i64, event: EventKind, details: Value) -> LogEntry {
        let Value::Object(details) = details else { panic!("details are an object") };
        LogEntry {
            id: LogId(second.to_string()),
            mission_id: None,
            event,
            details,
            timestamp: at(second),
            session_id: None,
        }
    }

    #[test]
    fn each_attempt_has_its_beginning_its_end_and_how_it_ended() {
        let log = [
            entry(0, EventKind::MissionQueued, json!({})),
            entry(1, EventKind::SessionStarted, json!({"worker_id": "w", "proxy_name": "p1"})),
            entry(4, EventKind::SessionFailed, json!({"error_code": "ERROR101"})),
            entry(5, EventKind::SessionStarted, json!({"worker_id": "w", "proxy_name": "p2"})),
            entry(9, EventKind::SessionReady, json!({})),
            entry(9, EventKind::MissionAssigned, json!({"worker_id": "w", "proxy_name": "p2"})),
            entry(10, EventKind::ScrapeStarted, json!({"worker_id": "w"})),
            entry(20, EventKind::ScrapeCompleted, json!({})),
            entry(21, EventKind::WriterStarted, json!({})),
        ];
        let found = attempts(&log);
        let told: Vec<_> = found.iter().map(|it| (it.phase, it.to, it.outcome, it.code)).collect();
        assert_eq!(
            told,
            [
                (Phase::Session, Some(at(4)), Outcome::Failed, Some(ErrorCode::Error101)),
                (Phase::Session, Some(at(9)), Outcome::Done, None),
                (Phase::Scrape, Some(at(20)), Outcome::Done, None),
                (Phase::Write, None, Outcome::Open, None),
            ]
        );
        let proxies: Vec<_> = found.iter().map(|it| it.proxy.as_deref()).collect();
        assert_eq!(proxies, [Some("p1"), Some("p2"), Some("p2"), None]);
    }

    #[test]
    fn a_cancellation_ends_whatever_is_open() {
        let log = [
            entry(0, EventKind::ScrapeStarted, json!({})),
            entry(7, EventKind::MissionCanceled, json!({})),
            entry(9, EventKind::ScrapeFailed, json!({})),
        ];
        let found = attempts(&log);
        assert_eq!((found[0].to, found[0].outcome), (Some(at(7)), Outcome::Ended));
    }
}
