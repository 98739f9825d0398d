//! Being alive, and leaving.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use lavra_tasks::Tasks;
use lavra_tasks::model::{ProcessId, TaskId, Token};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{HEARTBEAT, MOST_TYPES, Roster, give_back};
use crate::body::{JsonBody, Object};
use crate::openapi::Refused;
use crate::path::Id;
use crate::problem::Problem;

const MOST: usize = 10_000;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HeartbeatRequest, example = json!({
    "held": [{"id": "0193a1b2-7c3d-7e4f-8a5b-6c7d8e9f0a1b", "token": 4711}],
}))]
pub(crate) struct Beat {
    /// All that the worker holds. What it was given more than 5 s ago and does not name goes
    /// back into the queue.
    #[schema(value_type = Vec<Grip>, max_items = 10_000)]
    held: Vec<Object<Grip>>,
    /// What the worker can do; as at its last claim if absent.
    #[schema(max_items = 100)]
    types: Option<Vec<String>>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HeldTask)]
pub(crate) struct Grip {
    id: Uuid,
    token: i64,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = HeartbeatAnswer, example = json!({
    "lost": [{"id": "0193a1b2-7c3d-7e4f-8a5b-6c7d8e9f0a1b", "cancelled": true}],
    "heartbeat_seconds": 3,
}))]
pub(crate) struct Answer {
    /// What is no longer the worker's.
    lost: Vec<Loss>,
    /// How often to come.
    heartbeat_seconds: u64,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LostTask)]
pub(crate) struct Loss {
    id: Uuid,
    /// Somebody cancelled it: stop, then `:release` confirms that you did (and is answered with
    /// `task_lost`). Otherwise it was taken over or has ended: just stop.
    cancelled: bool,
}

/// Say that the worker lives, and what it holds
#[utoipa::path(
    post,
    path = "/workers/{id}:heartbeat",
    tag = "workers",
    operation_id = "heartbeat",
    params(("id" = Uuid, Path, description = "The id with which the worker claims")),
    request_body = Beat,
    responses(
        (status = 200, description = "What the worker should stop", body = Answer),
        (status = 422, response = Refused),
    ),
)]
pub(crate) async fn beat(
    State(tasks): State<Tasks>,
    State(roster): State<Arc<Roster>>,
    Id(id): Id<ProcessId>,
    JsonBody(beat): JsonBody<Beat>,
) -> Result<Json<Answer>, Problem> {
    if beat.held.len() > MOST {
        return Err(Problem::field("held", format_args!("must be at most {MOST} tasks")));
    }
    if beat.types.as_ref().is_some_and(|types| types.len() > MOST_TYPES) {
        return Err(Problem::field("types", format_args!("must be at most {MOST_TYPES} names")));
    }
    let held: Vec<(TaskId, Token)> =
        beat.held.iter().map(|Object(grip)| (TaskId(grip.id), grip.token)).collect();
    let worker = roster.recall(id, beat.types);
    tasks.declare(worker.kinds.clone()).await?;
    roster.met(&worker, Instant::now());
    let lost = tasks.beat(worker, held).await?;
    let lost = lost.into_iter().map(|lost| Loss { id: lost.id.0, cancelled: lost.cancelled });
    Ok(Json(Answer { lost: lost.collect(), heartbeat_seconds: HEARTBEAT.as_secs() }))
}

/// Leave
///
/// What the worker still holds goes back into the queue, and the attempt does not count.
#[utoipa::path(
    post,
    path = "/workers/{id}:retire",
    tag = "workers",
    operation_id = "retire",
    params(("id" = Uuid, Path, description = "The id with which the worker claims")),
    responses((status = 204, description = "It is forgotten")),
)]
pub(crate) async fn retire(
    State(tasks): State<Tasks>,
    State(roster): State<Arc<Roster>>,
    Id(id): Id<ProcessId>,
) -> Result<StatusCode, Problem> {
    let held = tasks.store().strays(id, Vec::new(), Duration::ZERO).await?;
    give_back(&tasks, held.into_iter().map(|task| (task.id, task.token)).collect()).await;
    tasks.retire(id).await?;
    roster.left(id);
    Ok(StatusCode::NO_CONTENT)
}
