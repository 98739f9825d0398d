//! What a task is: the specification's columns, and ours after them.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

/// Declares an id that cannot be taken for another one.
macro_rules! id {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::from_str(text).map(Self)
            }
        }
    };
}

id!(TaskId);
id!(EventId);
id!(
    /// One start of one process that runs tasks; never used again after a restart.
    ProcessId
);
id!(
    /// A row of the outbox; the id of the event that asked for the message.
    OutboxId
);
id!(DeadLetterId);

/// The fencing token of a claim: a later claim has a greater one.
pub type Token = i64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    Pending,
    InProgress,
    Completed,
    Failed,
    Cancelled,
}

impl Status {
    pub const ALL: [Self; 5] =
        [Self::Pending, Self::InProgress, Self::Completed, Self::Failed, Self::Cancelled];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::InProgress => "IN_PROGRESS",
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::Cancelled => "CANCELLED",
        }
    }

    pub fn is_terminal(self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::Cancelled => true,
            Self::Pending | Self::InProgress => false,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not one of {1}")]
pub struct UnknownWord(pub String, pub &'static str);

impl FromStr for Status {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|status| status.as_str().eq_ignore_ascii_case(text));
        found.ok_or_else(|| {
            UnknownWord(text.into(), "PENDING, IN_PROGRESS, COMPLETED, FAILED, CANCELLED")
        })
    }
}

/// Who caused an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Actor {
    Api,
    Worker,
    System,
}

impl Actor {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Api => "API",
            Self::Worker => "WORKER",
            Self::System => "SYSTEM",
        }
    }
}

impl FromStr for Actor {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "API" => Ok(Self::Api),
            "WORKER" => Ok(Self::Worker),
            "SYSTEM" => Ok(Self::System),
            other => Err(UnknownWord(other.into(), "API, WORKER, SYSTEM")),
        }
    }
}

/// A row of `tasks`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub id: TaskId,
    #[serde(rename = "type")]
    pub kind: String,
    pub status: Status,
    /// The human step: «Queued», «Fetching pages 120/400», «Retry 2/3 at 10:05».
    pub state: String,
    pub progress: i16,
    pub priority: i16,
    pub metadata: Value,
    pub error: Option<String>,
    pub input_hash: Option<String>,
    /// Attempts after the first since creation or the last `:retry`.
    pub retry_count: i32,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Grows by one with each event.
    pub version: i32,
    /// Claims ever made; never goes back.
    pub attempts: i32,
    pub max_retries: i32,
    /// Not to be claimed before; absent when it may be claimed at once.
    pub run_at: Option<Timestamp>,
    #[serde(skip)]
    pub token: Token,
    pub process: Option<ProcessId>,
    /// Until when the worker of a cancelled attempt may confirm that it stopped.
    pub stop_by: Option<Timestamp>,
}

/// A row of `task_events`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub id: EventId,
    pub task_id: TaskId,
    pub status: Status,
    pub state: Option<String>,
    pub detail: Option<Value>,
    pub actor: Actor,
    pub created_at: Timestamp,
    /// The version of the task that this event made.
    pub version: i32,
    /// The transaction that wrote it: the order of the stream of all events.
    #[serde(skip)]
    pub transaction: i64,
}

/// A row of `task_results`: a light pointer, never the artefact itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskResult {
    pub task_id: TaskId,
    pub payload: Value,
    pub created_at: Timestamp,
}

/// A task in the hands of the process that claimed it.
#[derive(Clone, Debug)]
pub struct Claimed {
    pub id: TaskId,
    pub kind: String,
    pub payload: Box<RawValue>,
    pub metadata: Value,
    pub priority: i16,
    pub attempts: i32,
    pub retry_count: i32,
    pub max_retries: i32,
    pub token: Token,
    pub version: i32,
    pub created_at: Timestamp,
}
