//! One task's events as they happen.
//!
//! An event's id is the version it made, which grows by one with each, so a reader that was cut
//! off says where it was and misses nothing. The task's own row is looked at, by its key; events
//! are read only when its version has grown.

use std::collections::VecDeque;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response, sse};
use lavra_tasks::model::{Event, Task, TaskId};
use lavra_tasks::{Error, Result, Tasks};
use serde::Deserialize;
use tokio::time::Instant;
use utoipa::IntoParams;

use crate::events::{Source, respond};
use crate::headers::last_version;
use crate::openapi::Refused;
use crate::path::Id;
use crate::problem::Problem;
use crate::query::Params;
use crate::serve::Served;
use crate::wire;

const LOOK_EVERY: Duration = Duration::from_millis(250);
const AFTER_TROUBLE: Duration = Duration::from_secs(1);
const PAGE: usize = 200;
/// Before the first event, which makes the version 0.
const BEGINNING: i32 = -1;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Start {
    /// Only events after this version; the header `Last-Event-ID` wins over it.
    after: Option<i32>,
}

/// Follow the events of a task (server-sent events)
///
/// Each event has the version it made as its id. Ends when the task has ended and everything was
/// sent; a cancelled task that a worker had is followed until its stop was confirmed or given up.
#[utoipa::path(
    get,
    path = "/tasks/{id}/stream",
    tag = "tasks",
    operation_id = "follow_task",
    params(
        ("id" = Uuid, Path),
        Start,
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that was received; without it, all are sent"),
    ),
    responses(
        (status = 200, description = "Events, the oldest first", content_type = "text/event-stream", body = wire::Event),
        (status = 204, description = "It has ended and everything was sent before: there is nothing to reconnect for"),
        (status = 404, response = Refused),
    ),
)]
pub(crate) async fn follow(
    State(tasks): State<Tasks>,
    Id(id): Id<TaskId>,
    Params(start): Params<Start>,
    headers: HeaderMap,
    served: Served,
) -> std::result::Result<Response, Problem> {
    let after = last_version(&headers)?.or(start.after);
    let mut follower = Follower::new(tasks, id, after.unwrap_or(BEGINNING));
    follower.look().await?;
    if follower.is_over() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(respond(follower, &served))
}

struct Follower {
    tasks: Tasks,
    id: TaskId,
    /// The version of the last event that was read.
    at: i32,
    ready: VecDeque<Event>,
    ended: bool,
    look_again: Instant,
}

impl Follower {
    fn new(tasks: Tasks, id: TaskId, after: i32) -> Self {
        Self {
            tasks,
            id,
            at: after.max(BEGINNING),
            ready: VecDeque::new(),
            ended: false,
            look_again: Instant::now(),
        }
    }

    fn is_over(&self) -> bool {
        self.ended && self.ready.is_empty()
    }

    async fn look(&mut self) -> Result<()> {
        self.look_again = Instant::now() + LOOK_EVERY;
        let task = self.tasks.task(self.id).await?;
        if self.at > task.version {
            // The version of another life of this database: better twice than never.
            self.at = BEGINNING;
        }
        if task.version > self.at {
            let events = self.tasks.store().events_since(self.id, self.at, PAGE).await?;
            if events.len() == PAGE {
                self.look_again = Instant::now();
            }
            // Without events they were cleaned up: go on from the task as it is.
            self.at = events.last().map_or(task.version, |event| event.version);
            self.ready.extend(events);
        }
        // A version beyond the row that was read has a newer row behind it.
        self.ended = is_settled(&task) && self.at == task.version;
        Ok(())
    }
}

fn is_settled(task: &Task) -> bool {
    task.status.is_terminal() && task.stop_by.is_none()
}

impl Source for Follower {
    async fn next(&mut self) -> Option<sse::Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(message(event));
            }
            if self.ended {
                return None;
            }
            tokio::time::sleep_until(self.look_again).await;
            match self.look().await {
                Ok(()) => {}
                Err(error) if error.is_transient() => {
                    tracing::warn!(%error, task = %self.id, "a stream waits for the database");
                    self.look_again = Instant::now() + AFTER_TROUBLE;
                }
                Err(Error::NoSuchTask(_)) => return None,
                Err(error) => {
                    tracing::error!(%error, task = %self.id, "a stream was given up");
                    return None;
                }
            }
        }
    }
}

fn message(event: Event) -> sse::Event {
    let message = sse::Event::default().id(event.version.to_string());
    let data = serde_json::to_string(&wire::Event::from(event)).unwrap_or_default();
    message.data(data)
}
