//! One task, from all sides.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use lavra_tasks::Tasks;
use lavra_tasks::model::TaskId;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::tagged;
use crate::limit::Limit;
use crate::openapi::Refused;
use crate::path::Id;
use crate::problem::Problem;
use crate::query::Params;
use crate::wire::{Event, Task};

/// Look at a task
#[utoipa::path(
    get,
    path = "/tasks/{id}",
    tag = "tasks",
    operation_id = "get_task",
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, description = "The task as it is now", body = Task, headers(
            ("ETag" = String, description = "Its version, for If-Match"),
        )),
        (status = 404, response = Refused),
    ),
)]
pub(crate) async fn task(
    State(tasks): State<Tasks>,
    Id(id): Id<TaskId>,
) -> Result<Response, Problem> {
    Ok(tagged(tasks.task(id).await?))
}

/// What a task was asked to do.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskInput, example = json!({
    "task_id": "0193a1b2-7c3d-7e4f-8a5b-6c7d8e9f0a1b",
    "payload": {"url": "https://example.org/report"},
}))]
pub(crate) struct Input {
    task_id: Uuid,
    payload: Value,
}

/// Look at the payload of a task
#[utoipa::path(
    get,
    path = "/tasks/{id}/input",
    tag = "tasks",
    operation_id = "get_task_input",
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, description = "As it was created", body = Input),
        (status = 404, response = Refused),
    ),
)]
pub(crate) async fn input(
    State(tasks): State<Tasks>,
    Id(id): Id<TaskId>,
) -> Result<Json<Input>, Problem> {
    let payload = tasks.input(id).await?;
    Ok(Json(Input { task_id: id.0, payload }))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Newest {
    #[serde(default)]
    #[param(value_type = usize, required = false, minimum = 1, maximum = 100, default = 100)]
    limit: Limit<100, 100>,
}

/// What happened to a task.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskEvents)]
pub(crate) struct Events {
    items: Vec<Event>,
}

/// The newest events of a task, newest first
#[utoipa::path(
    get,
    path = "/tasks/{id}/events",
    tag = "tasks",
    operation_id = "get_task_events",
    params(("id" = Uuid, Path), Newest),
    responses(
        (status = 200, description = "At most 100", body = Events),
        (status = 404, response = Refused),
    ),
)]
pub(crate) async fn events(
    State(tasks): State<Tasks>,
    Id(id): Id<TaskId>,
    Params(newest): Params<Newest>,
) -> Result<Json<Events>, Problem> {
    let events = tasks.events(id, newest.limit.0).await?;
    Ok(Json(Events { items: events.into_iter().map(Event::from).collect() }))
}

/// What a task left behind: a light JSON, or a pointer to an artefact.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskResult, example = json!({
    "task_id": "0193a1b2-7c3d-7e4f-8a5b-6c7d8e9f0a1b",
    "payload": {"words": 42},
    "created_at": "2026-11-15T20:31:00Z",
}))]
pub(crate) struct Outcome {
    task_id: Uuid,
    payload: Value,
    created_at: Timestamp,
}

/// The result of a task
#[utoipa::path(
    get,
    path = "/tasks/{id}/result",
    tag = "tasks",
    operation_id = "get_task_result",
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, description = "What it left", body = Outcome),
        (status = 404, response = Refused),
    ),
)]
pub(crate) async fn result(
    State(tasks): State<Tasks>,
    Id(id): Id<TaskId>,
) -> Result<Json<Outcome>, Problem> {
    let result = tasks.result(id).await?;
    Ok(Json(Outcome {
        task_id: result.task_id.0,
        payload: result.payload,
        created_at: result.created_at,
    }))
}
