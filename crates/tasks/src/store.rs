//! The questions asked of the database. Each verb is one transaction over a set: rows and their
//! events together. PostgreSQL and DuckDB answer them alike; one contract suite holds both to it.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use lavra_db::Clock;
use serde_json::Value;

use crate::error::Result;
use crate::machine::Next;
use crate::model::{
    Actor, Claimed, DeadLetterId, Event, EventId, OutboxId, ProcessId, Status, Task, TaskId,
    TaskResult, Token,
};

/// A task to be made, checked and with its ids.
#[derive(Clone, Debug)]
pub struct NewRow {
    pub id: TaskId,
    pub event: EventId,
    pub kind: String,
    pub priority: i16,
    pub metadata: String,
    pub payload: String,
    pub input_hash: Option<String>,
    pub max_retries: i32,
    pub delay: Option<Duration>,
    /// The request in brief, for the creation event.
    pub detail: String,
    pub key: Option<Key>,
}

/// An `Idempotency-Key` with the fingerprint of the request that came with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    pub key: String,
    pub fingerprint: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Made {
    New,
    /// The input hash or the key belongs to this task already.
    Existing(TaskId),
}

#[derive(Clone, Debug)]
pub struct Claim {
    pub process: ProcessId,
    pub kinds: Vec<String>,
    pub limit: usize,
}

/// Under which condition a write applies. The status always counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    pub status: Status,
    pub token: Option<Token>,
    pub version: Option<i32>,
}

/// An event that precedes the last one of a write.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub status: Status,
    pub state: String,
    pub actor: Actor,
    pub detail: Value,
}

/// One guarded change of one task: its row, its events, and what belongs to the transition.
#[derive(Clone, Debug)]
pub struct Write {
    pub id: TaskId,
    pub guard: Guard,
    pub steps: Vec<Step>,
    pub next: Next,
    /// Merged over the task's metadata, key by key.
    pub metadata: Option<Value>,
    pub result: Option<Value>,
    /// Whether an outbox row goes with it (a waiting task, and a broker to tell).
    pub announce: bool,
}

impl Write {
    /// Only a completion has a result; as nothing follows a completion, there is never a second.
    pub(crate) fn result(&self) -> Option<&Value> {
        self.result.as_ref().filter(|_| self.next.status == Status::Completed)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    Applied {
        version: i32,
    },
    /// The guard did not hold: someone else changed the task.
    Refused,
}

#[derive(Clone, Debug, Default)]
pub struct ListFilter {
    pub kind: Option<String>,
    pub status: Option<Status>,
    pub created_after: Option<Timestamp>,
    pub created_before: Option<Timestamp>,
    /// Older than this one: the keyset.
    pub before: Option<TaskId>,
    pub limit: usize,
}

/// Where in the stream of all events a reader is; the order is the stream's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    pub transaction: i64,
    pub event: EventId,
}

/// The row by which a process shows that it lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub id: ProcessId,
    pub name: String,
    pub kinds: Vec<String>,
}

/// A task that a process believed to hold, and what it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    pub id: TaskId,
    pub token: Token,
    pub cancelled: bool,
}

/// A message that must reach the broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    pub id: OutboxId,
    pub task: TaskId,
    pub kind: String,
}

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Schedule {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub cron: String,
    pub payload: Value,
    pub enabled: bool,
    pub next_at: Timestamp,
    pub last_task: Option<TaskId>,
}

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct DeadLetter {
    pub id: DeadLetterId,
    /// Absent for a message that names no task.
    pub task_id: Option<TaskId>,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub reason: String,
    /// The body of a message that could not be read.
    pub body: Option<String>,
    pub created_at: Timestamp,
}

/// What else a creation commits, for those tasks that may run at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Along {
    /// Outbox rows, which are this process's to publish for so long.
    pub announce: Option<Duration>,
    /// A notification to other processes, where the database has such.
    pub ring: bool,
}

/// What retention may remove: ended before these times.
#[derive(Clone, Copy, Debug)]
pub struct Expiry {
    pub completed_before: Timestamp,
    pub cancelled_before: Timestamp,
    pub failed_before: Timestamp,
}

/// A task with all that belongs to it, as it goes to the archive.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Dossier {
    pub task: Task,
    pub input: Option<Value>,
    pub events: Vec<Event>,
    pub result: Option<Value>,
}

/// How many tasks wait, by type, and since when the oldest does.
#[derive(Clone, Debug)]
pub struct Waiting {
    pub kind: String,
    pub ready: i64,
    pub oldest: Option<Timestamp>,
}

/// How many tasks of a type are in a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    pub kind: String,
    pub status: Status,
    pub count: i64,
}

/// The store, in the parts that each engine has a file for.
pub trait Store:
    Creates
    + Claims
    + Writes
    + Reads
    + Looks
    + Processes
    + Outbox
    + Schedules
    + DeadLetters
    + History
    + Send
    + Sync
    + Debug
{
    /// The store's clock, and ids by it.
    fn clock(&self) -> &Clock;
}

/// Creation.
#[async_trait]
pub trait Creates {
    /// Makes tasks with their inputs, creation events and what goes along. In the order given;
    /// none if a key belongs to another request.
    async fn create(&self, rows: Vec<NewRow>, along: Along) -> Result<Vec<Made>>;
}

/// The claim is the delivery.
#[async_trait]
pub trait Claims {
    /// Takes the best waiting tasks: priority from high to low, then the oldest.
    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>>;

    /// Takes this one, though its time may not have come; nothing if it does not wait.
    async fn claim_this(&self, id: TaskId, process: ProcessId) -> Result<Option<Claimed>>;
}

/// Changes of tasks that are there.
#[async_trait]
pub trait Writes {
    /// Applies guarded changes, in the order given. No task may stand twice in one call.
    async fn write(&self, writes: Vec<Write>) -> Result<Vec<Written>>;
}

/// Tasks, and what happened to them.
#[async_trait]
pub trait Reads {
    async fn task(&self, id: TaskId) -> Result<Option<Task>>;
    async fn input(&self, id: TaskId) -> Result<Option<Value>>;
    async fn result(&self, id: TaskId) -> Result<Option<TaskResult>>;
    /// Newest first.
    async fn list(&self, filter: ListFilter) -> Result<Vec<Task>>;
    /// Newest first.
    async fn newest_events(&self, id: TaskId, limit: usize) -> Result<Vec<Event>>;
    /// In order, after the version `after`.
    async fn events_since(&self, id: TaskId, after: i32, limit: usize) -> Result<Vec<Event>>;
    /// Events of all tasks in the order of their transactions, only those before which nothing
    /// can appear any more.
    async fn stream_since(&self, cursor: Cursor, limit: usize) -> Result<Vec<Event>>;
    /// The end of that stream now.
    async fn stream_end(&self) -> Result<Cursor>;
    async fn waiting(&self) -> Result<Vec<Waiting>>;
}

/// What people ask beside, who look at tasks page by page.
#[async_trait]
pub trait Looks {
    /// How many there are, by type and status; none where there are none.
    async fn counts(&self) -> Result<Vec<Count>>;
    /// Newest first, those from before `before`.
    async fn events_before(
        &self,
        id: TaskId,
        before: Timestamp,
        limit: usize,
    ) -> Result<Vec<Event>>;
    /// How many tasks of its type are claimed before a waiting one, as far as `most`.
    async fn ahead_of(&self, task: &Task, most: usize) -> Result<i64>;
    /// The newest tasks of these types whose input has the text `value` under `name`.
    async fn about(
        &self,
        kinds: Vec<String>,
        name: &str,
        value: &str,
        limit: usize,
    ) -> Result<Vec<Task>>;
    /// Processes that have renewed their row within `stale`, by name.
    async fn living(&self, stale: Duration) -> Result<Vec<Process>>;
    async fn count_dead_letters(&self) -> Result<i64>;
}

/// Who works, on what, and on which types.
#[async_trait]
pub trait Processes {
    /// Renews the process's row, and says which of the held tasks are no longer its own.
    async fn beat(&self, process: Process, held: Vec<(TaskId, Token)>) -> Result<Vec<Lost>>;
    /// The process ends in order and holds nothing any more.
    async fn retire(&self, process: ProcessId) -> Result<()>;
    /// Tasks in progress whose process has not renewed its row for `stale`.
    async fn orphans(&self, stale: Duration, limit: usize) -> Result<Vec<Task>>;
    /// Tasks that the store gave to `process` more than `age` ago and that are not among `held`:
    /// claims whose answer was lost on the way.
    async fn strays(
        &self,
        process: ProcessId,
        held: Vec<TaskId>,
        age: Duration,
    ) -> Result<Vec<Task>>;
    /// Cancelled tasks whose worker did not confirm in time.
    async fn overdue_stops(&self, limit: usize) -> Result<Vec<Task>>;

    /// Makes types known to all.
    async fn declare(&self, kinds: Vec<String>) -> Result<()>;
    async fn declared(&self) -> Result<Vec<String>>;
}

/// What the broker has still to be told.
#[async_trait]
pub trait Outbox {
    /// Outbox rows that nobody is publishing, now leased to the caller.
    async fn take_announcements(&self, lease: Duration, limit: usize) -> Result<Vec<Announcement>>;
    /// The broker has confirmed them.
    async fn announced(&self, ids: Vec<OutboxId>) -> Result<()>;
    /// The broker has not: try again after `delay`.
    async fn postpone(&self, ids: Vec<OutboxId>, delay: Duration) -> Result<()>;
    /// New outbox rows for up to `limit` waiting tasks of `kind` that have none and have waited
    /// for `age`. Returns how many.
    async fn announce_again(&self, kind: String, age: Duration, limit: usize) -> Result<usize>;
    /// How many rows the outbox has.
    async fn outbox_depth(&self) -> Result<i64>;
}

/// What is made by the clock.
#[async_trait]
pub trait Schedules {
    async fn schedules(&self) -> Result<Vec<Schedule>>;
    async fn put_schedule(&self, schedule: Schedule) -> Result<()>;
    async fn remove_schedule(&self, name: String) -> Result<bool>;
    /// Lets a schedule fire, next at `next_at`, or keeps it from firing; false if it is not there.
    async fn enable_schedule(
        &self,
        name: String,
        enabled: bool,
        next_at: Timestamp,
    ) -> Result<bool>;
    /// Moves a due schedule on from `from` to `to` and makes its task, in one transaction;
    /// false if another process did. Without a `to` it was the last time: it is disabled.
    async fn fire(
        &self,
        name: String,
        from: Timestamp,
        to: Option<Timestamp>,
        row: NewRow,
        announce: bool,
    ) -> Result<bool>;
}

/// What failed for good.
#[async_trait]
pub trait DeadLetters {
    async fn dead_letters(
        &self,
        before: Option<DeadLetterId>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>>;
    async fn dead_letter(&self, id: DeadLetterId) -> Result<Option<DeadLetter>>;
    async fn bury(&self, letter: DeadLetter) -> Result<()>;
    async fn remove_dead_letter(&self, id: DeadLetterId) -> Result<bool>;
}

/// What goes, and when.
#[async_trait]
pub trait History {
    /// Ended tasks that retention may remove, oldest first.
    async fn expired(&self, expiry: Expiry, limit: usize) -> Result<Vec<Task>>;
    async fn dossiers(&self, tasks: Vec<Task>) -> Result<Vec<Dossier>>;
    /// Removes tasks with all that belongs to them, if they are still at that version.
    async fn remove(&self, tasks: Vec<(TaskId, i32)>) -> Result<usize>;
    /// Removes up to `limit` events, dead letters, keys and dead processes older than `before`.
    async fn sweep_history(&self, before: Timestamp, limit: usize) -> Result<usize>;
}
