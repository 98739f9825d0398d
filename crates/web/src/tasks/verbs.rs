//! What a person may do to a task.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use lavra_tasks::Tasks;
use lavra_tasks::model::TaskId;

use super::tagged;
use crate::headers::{VersionHeader, if_match};
use crate::openapi::Refused;
use crate::path::Id;
use crate::problem::Problem;
use crate::wire::Task;

/// Run a failed or cancelled task again
///
/// It waits again with its retries unused, its error and progress cleared.
#[utoipa::path(
    post,
    path = "/tasks/{id}:retry",
    tag = "tasks",
    operation_id = "retry_task",
    params(
        ("id" = Uuid, Path),
        VersionHeader,
    ),
    responses(
        (status = 200, description = "It waits again", body = Task, headers(
            ("ETag" = String, description = "Its version now"),
        )),
        (status = 404, response = Refused),
        (status = 409, response = Refused),
        (status = 412, response = Refused),
    ),
)]
pub(crate) async fn retry(
    State(tasks): State<Tasks>,
    Id(id): Id<TaskId>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let version = if_match(&headers)?;
    Ok(tagged(tasks.retry(id, version).await?))
}

/// Cancel a task
///
/// It is cancelled at once. If a worker has it, `stop_by` says until when the worker may confirm
/// that it stopped; a second event says whether it did.
#[utoipa::path(
    post,
    path = "/tasks/{id}:cancel",
    tag = "tasks",
    operation_id = "cancel_task",
    params(
        ("id" = Uuid, Path),
        VersionHeader,
    ),
    responses(
        (status = 200, description = "It is cancelled", body = Task, headers(
            ("ETag" = String, description = "Its version now"),
        )),
        (status = 404, response = Refused),
        (status = 409, response = Refused),
        (status = 412, response = Refused),
    ),
)]
pub(crate) async fn cancel(
    State(tasks): State<Tasks>,
    Id(id): Id<TaskId>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let version = if_match(&headers)?;
    Ok(tagged(tasks.cancel(id, version).await?))
}
