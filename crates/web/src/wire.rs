//! Tasks and their events as they travel: the columns of the tables, without what is internal.

use jiff::Timestamp;
use lavra_tasks::model;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schema(as = TaskStatus)]
pub(crate) enum Status {
    Pending,
    InProgress,
    Completed,
    Failed,
    Cancelled,
}

impl From<model::Status> for Status {
    fn from(status: model::Status) -> Self {
        match status {
            model::Status::Pending => Self::Pending,
            model::Status::InProgress => Self::InProgress,
            model::Status::Completed => Self::Completed,
            model::Status::Failed => Self::Failed,
            model::Status::Cancelled => Self::Cancelled,
        }
    }
}

impl From<Status> for model::Status {
    fn from(status: Status) -> Self {
        match status {
            Status::Pending => Self::Pending,
            Status::InProgress => Self::InProgress,
            Status::Completed => Self::Completed,
            Status::Failed => Self::Failed,
            Status::Cancelled => Self::Cancelled,
        }
    }
}

/// Who caused an event: a person or program through this interface, a worker, or lavra itself.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schema(as = EventActor)]
pub(crate) enum Actor {
    Api,
    Worker,
    System,
}

impl From<model::Actor> for Actor {
    fn from(actor: model::Actor) -> Self {
        match actor {
            model::Actor::Api => Self::Api,
            model::Actor::Worker => Self::Worker,
            model::Actor::System => Self::System,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "id": "0193a1b2-7c3d-7e4f-8a5b-6c7d8e9f0a1b",
    "type": "http",
    "status": "IN_PROGRESS",
    "state": "Fetching pages 120/400",
    "progress": 30,
    "priority": 1,
    "metadata": {"tenant": "acme"},
    "error": null,
    "input_hash": null,
    "retry_count": 0,
    "created_at": "2026-11-15T20:30:00.123456Z",
    "updated_at": "2026-11-15T20:30:04.5Z",
    "version": 4,
    "attempts": 1,
    "max_retries": 3,
    "run_at": null,
    "process": "0193a1b2-0000-7000-8000-000000000001",
    "stop_by": null,
}))]
pub(crate) struct Task {
    pub(crate) id: Uuid,
    #[serde(rename = "type")]
    kind: String,
    status: Status,
    /// The step in words: «Queued», «Fetching pages 120/400», «Retry 2/3 at 10:05».
    state: String,
    #[schema(minimum = 0, maximum = 100)]
    progress: i16,
    /// Higher goes first.
    priority: i16,
    #[schema(value_type = Object)]
    metadata: Value,
    error: Option<String>,
    input_hash: Option<String>,
    /// Attempts after the first, since creation or the last `:retry`.
    retry_count: i32,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// Grows with each event; the `ETag`.
    pub(crate) version: i32,
    /// Claims ever made; never goes back.
    attempts: i32,
    max_retries: i32,
    /// Not to be claimed before.
    run_at: Option<Timestamp>,
    /// The process or worker that has it, or had it last.
    process: Option<Uuid>,
    /// Until when the worker of a cancelled task may confirm that it stopped.
    stop_by: Option<Timestamp>,
}

impl From<model::Task> for Task {
    fn from(task: model::Task) -> Self {
        Self {
            id: task.id.0,
            kind: task.kind,
            status: task.status.into(),
            state: task.state,
            progress: task.progress,
            priority: task.priority,
            metadata: task.metadata,
            error: task.error,
            input_hash: task.input_hash,
            retry_count: task.retry_count,
            created_at: task.created_at,
            updated_at: task.updated_at,
            version: task.version,
            attempts: task.attempts,
            max_retries: task.max_retries,
            run_at: task.run_at,
            process: task.process.map(|process| process.0),
            stop_by: task.stop_by,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskEvent, example = json!({
    "id": "0193a1b2-7c40-7000-8000-00000000000a",
    "task_id": "0193a1b2-7c3d-7e4f-8a5b-6c7d8e9f0a1b",
    "status": "IN_PROGRESS",
    "state": "Fetching pages 120/400",
    "detail": {"action": "update"},
    "actor": "WORKER",
    "created_at": "2026-11-15T20:30:04.5Z",
    "version": 4,
}))]
pub(crate) struct Event {
    id: Uuid,
    task_id: Uuid,
    status: Status,
    state: Option<String>,
    #[schema(value_type = Option<Object>)]
    detail: Option<Value>,
    actor: Actor,
    created_at: Timestamp,
    /// The version of the task that this event made.
    pub(crate) version: i32,
}

impl From<model::Event> for Event {
    fn from(event: model::Event) -> Self {
        Self {
            id: event.id.0,
            task_id: event.task_id.0,
            status: event.status.into(),
            state: event.state,
            detail: event.detail,
            actor: event.actor.into(),
            created_at: event.created_at,
            version: event.version,
        }
    }
}
