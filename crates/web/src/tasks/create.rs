//! Creation, one or many at a time.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use lavra_tasks::{Created, Tasks};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::tagged;
use crate::access::Caller;
use crate::body::{JsonBody, LARGE, Object};
use crate::headers::{KeyHeader, ShorterKeyHeader, idempotency_key};
use crate::openapi::Refused;
use crate::problem::Problem;
use crate::wire::Task;

const MOST: usize = 10_000;
pub(crate) const LONGEST_KEY: usize = 255;
/// So that its place, `#9999`, can stand behind it.
const LONGEST_KEY_OF_MANY: usize = 249;

/// A request for a task.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "type": "http",
    "payload": {"url": "https://example.org/report"},
    "metadata": {"tenant": "acme"},
}))]
pub(crate) struct NewTask {
    /// One of `GET /types`.
    #[serde(rename = "type")]
    #[schema(pattern = "^[A-Za-z][A-Za-z0-9_.-]{0,127}$")]
    kind: String,
    /// What the type needs to know.
    #[serde(default)]
    payload: Value,
    /// Higher goes first; 1 if absent.
    priority: Option<i16>,
    /// Context for people and filters, 8 KB at most.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Value>,
    /// The same type and payload again answers the first task instead of making another.
    #[serde(default)]
    idempotent: bool,
    /// Stands in for the hash of the payload where only the caller knows what counts.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    input_hash: Option<String>,
    /// Attempts after the first; the type's own number if absent.
    #[schema(minimum = 0, maximum = 1000)]
    max_retries: Option<i32>,
    /// Not to be run before so many seconds have passed.
    #[schema(maximum = 31_622_400)]
    delay_seconds: Option<u64>,
}

impl NewTask {
    fn keyed(self, key: Option<String>, caller: &Caller) -> lavra_tasks::NewTask {
        lavra_tasks::NewTask {
            kind: self.kind,
            payload: self.payload,
            priority: self.priority,
            metadata: self.metadata,
            idempotent: self.idempotent,
            input_hash: self.input_hash,
            max_retries: self.max_retries,
            delay_seconds: self.delay_seconds,
            key,
            caller: caller.whose().map(str::to_owned),
        }
    }
}

/// Make a task
///
/// The same `Idempotency-Key` with the same type and payload answers the task of the first time,
/// so a request may be repeated when its answer was lost.
#[utoipa::path(
    post,
    path = "/tasks",
    tag = "tasks",
    operation_id = "create_task",
    params(KeyHeader),
    request_body = NewTask,
    responses(
        (status = 201, description = "It was made", body = Task, headers(
            ("Location" = String, description = "The path of the task"),
            ("ETag" = String, description = "Its version"),
        )),
        (status = 200, description = "An earlier task answers for this request", body = Task, headers(
            ("Location" = String, description = "The path of the task"),
            ("ETag" = String, description = "Its version"),
        )),
        (status = 422, response = Refused),
    ),
)]
pub(crate) async fn one(
    State(tasks): State<Tasks>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(request): JsonBody<NewTask>,
) -> Result<Response, Problem> {
    let key = idempotency_key(&headers, LONGEST_KEY)?;
    created(&tasks, request.keyed(key, &caller)).await
}

/// Makes a task, or finds the one that answers for the request, and shows it.
pub(crate) async fn created(tasks: &Tasks, new: lavra_tasks::NewTask) -> Result<Response, Problem> {
    let created = tasks.create(new).await?;
    let task = tasks.task(created.id).await?;
    let location = HeaderValue::try_from(format!("/tasks/{}", created.id));
    let mut response = (status(&[created]), tagged(task)).into_response();
    response.headers_mut().extend(location.ok().map(|location| (header::LOCATION, location)));
    Ok(response)
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewTasks, example = json!({"tasks": [
    {"type": "http", "payload": {"url": "https://example.org/1"}},
    {"type": "http", "payload": {"url": "https://example.org/2"}},
]}))]
pub(crate) struct Batch {
    #[schema(value_type = Vec<NewTask>, min_items = 1, max_items = 10_000)]
    tasks: Vec<Object<NewTask>>,
}

/// What became of one request of a batch.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CreatedTask, example = json!({"id": "0193a1b2-7c3d-7e4f-8a5b-6c7d8e9f0a1b", "new": true}))]
pub(crate) struct Made {
    id: Uuid,
    /// False when an earlier task answers for this request.
    new: bool,
}

/// Make up to 10,000 tasks in one transaction
///
/// In the order of the request. If one of them is wrong, none is made, and `index` of the problem
/// is its place, from 0. With an `Idempotency-Key` the batch may be repeated: each of its tasks
/// has the key with its place.
#[utoipa::path(
    post,
    path = "/tasks:batch",
    tag = "tasks",
    operation_id = "create_tasks",
    params(ShorterKeyHeader),
    request_body = Batch,
    responses(
        (status = 201, description = "At least one was made", body = [Made]),
        (status = 200, description = "Earlier tasks answer for all of them", body = [Made]),
        (status = 422, response = Refused),
    ),
)]
pub(crate) async fn batch(
    State(tasks): State<Tasks>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(batch): JsonBody<Batch, LARGE>,
) -> Result<Response, Problem> {
    if !(1..=MOST).contains(&batch.tasks.len()) {
        let rule = format_args!("must be 1 to {MOST}, not {}", batch.tasks.len());
        return Err(Problem::field("tasks", rule));
    }
    let key = idempotency_key(&headers, LONGEST_KEY_OF_MANY)?;
    let keys = (0..).map(|place| key.as_ref().map(|key| format!("{key}#{place}")));
    let requests = batch.tasks.into_iter().zip(keys);
    let requests = requests.map(|(Object(task), key)| task.keyed(key, &caller));
    let created = tasks.create_all(requests.collect()).await?;
    let made: Vec<Made> =
        created.iter().map(|created| Made { id: created.id.0, new: created.new }).collect();
    Ok((status(&created), Json(made)).into_response())
}

fn status(created: &[Created]) -> StatusCode {
    if created.iter().any(|created| created.new) { StatusCode::CREATED } else { StatusCode::OK }
}
