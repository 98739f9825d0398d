//! The questions that webhooks ask of a database. Each verb is one transaction; PostgreSQL and
//! DuckDB answer them alike, and one contract suite holds both to it.
//!
//! **What has not been told.** The ends of tasks are read in the order of their transactions, each
//! once, only those before which nothing can appear any more. The log of the missions has no such
//! column, and neither has the table of dead letters: an entry can commit long after entries that
//! are younger. So they are read from a *floor* on, again and again, but for what has been told
//! (`lavra.webhook_told`). The floor rises to a time only when every transaction that was open at
//! that time has ended, and stays [`LATE`](crate::LATE) below it.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use lavra_db::Clock;
use lavra_fleet::model::{EventKind, LogId, MissionId};
use lavra_tasks::model::{DeadLetterId, EventId, TaskId};
use lavra_tasks::store::Cursor;
use serde_json::{Map, Value};

use crate::error::Result;
use crate::model::{Topic, Webhook, WebhookId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct New {
    pub id: WebhookId,
    pub name: String,
    /// As it may be shown.
    pub url: String,
    pub events: Vec<Topic>,
    pub sealed: String,
}

/// What changes; what is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edit {
    pub name: Option<String>,
    /// The shown address, with where the whole of it is sealed.
    pub url: Option<String>,
    pub sealed: Option<String>,
    pub events: Option<Vec<Topic>>,
    /// One that is made active again is told of what happens from then on.
    pub active: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edited {
    Done,
    NotFound,
    NameTaken,
}

/// How an attempt to tell a webhook ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Taken,
    Failed(String),
    /// It wants nothing any more: it is active no longer.
    Gone(String),
}

/// An entry of the log that someone may want to know of: a mission that failed, or the first of an
/// episode in which no proxy was free.
#[derive(Clone, Debug, PartialEq)]
pub struct Logged {
    pub id: LogId,
    pub event: EventKind,
    pub mission: Option<MissionId>,
    pub details: Map<String, Value>,
    pub at: Timestamp,
}

/// A task that ended: an extraction that completed, or any task that failed for good; none that was
/// itself to tell a webhook.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    pub event: EventId,
    pub task: TaskId,
    pub kind: String,
    pub has_failed: bool,
    pub error: Option<String>,
    pub attempts: i32,
    /// What an extraction said of itself when it ended.
    pub said: Option<Value>,
    pub at: Timestamp,
}

/// A message of the broker that nobody could read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    pub id: DeadLetterId,
    pub reason: String,
    pub at: Timestamp,
}

/// What has not been told yet, as far as one look at the tables goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    pub logged: Vec<Logged>,
    pub ended: Vec<Ended>,
    pub unreadable: Vec<Unreadable>,
    /// Whether there may be more.
    pub has_more: bool,
    /// Where the reader is when all of it has been told.
    pub position: Position,
}

impl Reading {
    pub fn is_empty(&self) -> bool {
        self.logged.is_empty() && self.ended.is_empty() && self.unreadable.is_empty()
    }

    /// What of it will be read again, and must be known as told.
    pub(crate) fn to_remember(&self) -> impl Iterator<Item = (String, Timestamp)> + '_ {
        let logged = self.logged.iter().map(|entry| (entry.id.0.clone(), entry.at));
        let letters = self.unreadable.iter().map(|letter| (letter.id.to_string(), letter.at));
        logged.chain(letters)
    }
}

/// How far has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The end of a task up to which all are told.
    pub ended: Cursor,
    /// No entry of the log before this time can be new any more.
    pub floor: Timestamp,
    /// The floor may rise to `marked_at` when all transactions below this one have ended.
    pub mark: i64,
    pub marked_at: Timestamp,
}

/// Which transactions have ended, as the database saw it before a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// All below have ended.
    pub(crate) ended_below: i64,
    /// None from here on had begun.
    pub(crate) begun_below: i64,
    pub(crate) at: Timestamp,
}

impl Position {
    /// Where the floor is after all from it on has been read. Once every transaction that was open
    /// at a mark has ended, what is older than the mark can only come from transactions that began
    /// after it, and those write nothing that is older than the mark by more than `late`.
    pub(crate) fn risen(self, seen: Seen, late: Duration) -> Self {
        if seen.ended_below < self.mark {
            return self;
        }
        let late = SignedDuration::try_from(late).unwrap_or(SignedDuration::MAX);
        let floor = self.marked_at.checked_sub(late).unwrap_or(Timestamp::MIN);
        Self { floor: floor.max(self.floor), mark: seen.begun_below, marked_at: seen.at, ..self }
    }
}

#[async_trait]
pub trait Store: Send + Sync + Debug {
    fn clock(&self) -> &Clock;

    /// Adds one; if it is the first ever, what happens is read from now on.
    async fn add(&self, new: New) -> Result<Edited>;
    async fn edit(&self, id: WebhookId, edit: Edit) -> Result<Edited>;
    async fn remove(&self, id: WebhookId) -> Result<Edited>;
    async fn webhook(&self, id: WebhookId) -> Result<Option<Webhook>>;
    /// All of them, oldest first.
    async fn webhooks(&self) -> Result<Vec<Webhook>>;
    /// Notes what came of telling it, if its address is still the one that was asked.
    async fn note(&self, id: WebhookId, sealed: &str, outcome: &Outcome) -> Result<()>;

    /// What has not been told, oldest first, about `limit` of each kind at most; `None` if there
    /// never was a webhook.
    async fn read(&self, limit: usize) -> Result<Option<Reading>>;
    /// All of it has been told.
    async fn told(&self, reading: &Reading) -> Result<()>;
    /// Nobody is to be told: moves on to the end, unless there is an active webhook by now.
    async fn pass_by(&self) -> Result<()>;
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn seen(ended_below: i64, begun_below: i64, second: i64) -> Seen {
        Seen { ended_below, begun_below, at: at(second) }
    }

    #[test]
    fn the_floor_stays_below_what_an_open_transaction_may_write() {
        let late = Duration::from_secs(10);
        let event = EventId(Uuid::nil());
        let start = Position {
            ended: Cursor { transaction: 0, event },
            floor: at(1000),
            mark: 50,
            marked_at: at(1000),
        };
        // 47 is open: it began before the mark, and may write what it likes.
        let held = start.risen(seen(47, 60, 2000), late);
        assert_eq!(held, start);
        // It has ended. 55 is open, and began after the mark.
        let risen = held.risen(seen(55, 61, 3000), late);
        assert_eq!((risen.floor, risen.mark, risen.marked_at), (at(1000), 61, at(3000)));
        // All that were open at the second mark have ended.
        let risen = risen.risen(seen(61, 70, 4000), late);
        assert_eq!((risen.floor, risen.mark, risen.marked_at), (at(2990), 70, at(4000)));
    }
}
