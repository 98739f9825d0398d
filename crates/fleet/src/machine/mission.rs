//! A mission by itself: what people do with it, and how it ends.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Entry, next_entry};
use crate::model::{Checkpoint, EventKind, Mission, MissionStatus};

/// Ends it: nobody holds it any more.
pub(super) fn end(mission: &mut Mission, status: MissionStatus, now: Timestamp) {
    mission.status = status;
    mission.finished_at = Some(now);
    mission.waiting = None;
    mission.next_attempt_at = None;
    mission.token = None;
    mission.held_by = None;
}

/// `running → queued`: as if it had never been taken, but for what was counted.
pub(super) fn back_to_the_queue(mission: &mut Mission) {
    mission.status = MissionStatus::Queued;
    mission.checkpoint = Some(Checkpoint::Atribuido);
    mission.worker_id = None;
    mission.worker_job_id = None;
    mission.proxy_used = None;
    mission.started_at = None;
    mission.phase_started_at = None;
    mission.waiting = None;
    mission.token = None;
    mission.held_by = None;
}

/// What a person may ask of a mission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// From the bank into the queue.
    Queue,
    Cancel,
    /// Again, after it failed: from the write where its data is there, or all of it.
    Retry {
        from_scrape: bool,
    },
}

/// Why a wish is refused, or nothing where it is not.
pub fn refusal(mission: &Mission, wish: Wish) -> Option<&'static str> {
    let status = mission.status;
    match wish {
        Wish::Queue => match status {
            MissionStatus::Queued if mission.queued_at.is_none() => None,
            MissionStatus::Queued => Some("is in the queue already"),
            MissionStatus::Running => Some("is running"),
            MissionStatus::Failed => Some("has failed: retry it"),
            MissionStatus::Completed | MissionStatus::Canceled => {
                Some("is over: copy it to run it again")
            }
        },
        Wish::Cancel => match status {
            MissionStatus::Queued | MissionStatus::Running => None,
            MissionStatus::Completed => Some("is completed"),
            MissionStatus::Failed => Some("has failed"),
            MissionStatus::Canceled => Some("is canceled already"),
        },
        Wish::Retry { .. } => match status {
            MissionStatus::Failed => None,
            MissionStatus::Queued => Some("waits to be run"),
            MissionStatus::Running => Some("is running"),
            MissionStatus::Completed => Some("is completed: copy it to run it again"),
            MissionStatus::Canceled => Some("was canceled: copy it to run it again"),
        },
    }
}

/// The mission after a wish that is not refused, and what the log says. The databases do the same
/// to many at once; the contract holds them to this.
pub fn granted(mission: &Mission, wish: Wish, by: &str, now: Timestamp) -> (Mission, Entry) {
    let mut next = mission.clone();
    let (event, details) = match wish {
        Wish::Queue => {
            next.checkpoint = Some(Checkpoint::Atribuido);
            next.queued_at = Some(now);
            (EventKind::MissionQueued, json!({ "queued_by": by }))
        }
        Wish::Cancel => {
            end(&mut next, MissionStatus::Canceled, now);
            let details = json!({ "canceled_by": by, "previous_checkpoint": mission.checkpoint });
            (EventKind::MissionCanceled, details)
        }
        Wish::Retry { from_scrape } => {
            back_to_the_queue(&mut next);
            next.queued_at = Some(now);
            next.finished_at = None;
            next.error_code = None;
            next.error_message = None;
            next.retry_count = 0;
            next.writer_id = None;
            next.writer_job_id = None;
            next.writer_accepted_at = None;
            next.writer_processed = None;
            next.writer_moved_at = None;
            next.told_at = None;
            if from_scrape {
                next.worker_data_url = None;
                next.ads_count = None;
            } else if next.worker_data_url.is_some() {
                // Who scraped it stays known: only the write is done again.
                next.worker_id.clone_from(&mission.worker_id);
                next.worker_job_id.clone_from(&mission.worker_job_id);
                next.proxy_used.clone_from(&mission.proxy_used);
            }
            (EventKind::MissionQueued, json!({ "queued_by": by, "retry": true }))
        }
    };
    let at = next_entry(mission.logged_at, now);
    next.logged_at = Some(at);
    let details = match details {
        Value::Object(details) => details,
        _ => serde_json::Map::new(),
    };
    let mission_id = Some(mission.id.clone());
    (next, Entry { mission_id, session_id: None, event, details, at })
}

/// A mission whose data is there goes from the queue straight to the writer.
pub fn to_the_writer(mission: &Mission, now: Timestamp) -> Mission {
    let mut next = mission.clone();
    next.status = MissionStatus::Running;
    next.checkpoint = Some(Checkpoint::Armazenamento);
    next.started_at = Some(now);
    next
}
