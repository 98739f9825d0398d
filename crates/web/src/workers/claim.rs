//! Taking tasks, and waiting for them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use lavra_tasks::Tasks;
use lavra_tasks::model::{Claimed, ProcessId};
use lavra_tasks::store::Process;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{MOST_TYPES, Roster, give_back};
use crate::body::JsonBody;
use crate::limit::Limit;
use crate::openapi::Refused;
use crate::problem::{Code, Problem};
use crate::serve::Served;

/// How long a claim may wait for something to do.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(30);
const LONGEST_NAME: usize = 200;
/// A task that falls due later rings no bell.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Bells may ring much faster than it makes sense to look.
const LOOK_AT_MOST_EVERY: Duration = Duration::from_millis(50);

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ClaimRequest, example = json!({
    "worker": "9f1c2d3e-4b5a-4678-9abc-def012345678",
    "name": "wordcount on alpha",
    "types": ["wordcount"],
    "limit": 1,
    "wait_seconds": 2,
}))]
pub(crate) struct Request {
    /// An id that the worker makes at its start; never used again after a restart.
    worker: Uuid,
    /// For people.
    #[schema(max_length = 200)]
    name: Option<String>,
    /// What the worker can do; this makes the types known.
    #[schema(min_items = 1, max_items = 100)]
    types: Vec<String>,
    #[serde(default)]
    #[schema(value_type = usize, minimum = 1, maximum = 100, default = 1)]
    limit: Limit<1, 100>,
    /// How long to wait if there is nothing to do.
    #[serde(default)]
    #[schema(maximum = 30, default = 0)]
    wait_seconds: u64,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ClaimAnswer)]
pub(crate) struct Taken {
    /// Empty if nothing came up in time.
    tasks: Vec<Held>,
}

/// A task in the hands of a worker.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ClaimedTask, example = json!({
    "id": "0193a1b2-7c3d-7e4f-8a5b-6c7d8e9f0a1b",
    "type": "wordcount",
    "payload": {"text": "so many words"},
    "metadata": {},
    "priority": 1,
    "attempt": 1,
    "retry_count": 0,
    "max_retries": 3,
    "token": 4711,
    "idempotency_key": "0193a1b2-7c3d-7e4f-8a5b-6c7d8e9f0a1b:1",
}))]
pub(crate) struct Held {
    id: Uuid,
    #[serde(rename = "type")]
    kind: String,
    #[schema(value_type = Value)]
    payload: Box<RawValue>,
    #[schema(value_type = Object)]
    metadata: Value,
    priority: i16,
    /// Which attempt this is, from 1; never goes back.
    attempt: i32,
    retry_count: i32,
    max_retries: i32,
    /// Every report must name it.
    token: i64,
    /// For calls to other services that must not happen twice in one attempt.
    idempotency_key: String,
}

impl From<Claimed> for Held {
    fn from(claimed: Claimed) -> Self {
        Self {
            idempotency_key: format!("{}:{}", claimed.id, claimed.attempts),
            id: claimed.id.0,
            kind: claimed.kind,
            payload: claimed.payload,
            metadata: claimed.metadata,
            priority: claimed.priority,
            attempt: claimed.attempts,
            retry_count: claimed.retry_count,
            max_retries: claimed.max_retries,
            token: claimed.token,
        }
    }
}

impl Request {
    fn check(self) -> Result<(Process, usize, Duration), Problem> {
        if self.wait_seconds > LONGEST_WAIT.as_secs() {
            let rule = format_args!("must be at most {}", LONGEST_WAIT.as_secs());
            return Err(Problem::field("wait_seconds", rule));
        }
        if !(1..=MOST_TYPES).contains(&self.types.len()) {
            return Err(Problem::field("types", format_args!("must be 1 to {MOST_TYPES} names")));
        }
        let name = self.name.unwrap_or_else(|| "worker".into());
        if name.len() > LONGEST_NAME || name.contains(char::is_control) {
            let rule = format_args!("must be one line of at most {LONGEST_NAME} bytes");
            return Err(Problem::field("name", rule));
        }
        let mut kinds = self.types;
        kinds.sort();
        kinds.dedup();
        let process = Process { id: ProcessId(self.worker), name, kinds };
        Ok((process, self.limit.0, Duration::from_secs(self.wait_seconds)))
    }
}

/// Take tasks to work on
///
/// The best that wait: priority from high to low, then the oldest. Each belongs to the worker
/// until it completes, fails or releases it, as long as the worker's heartbeats come.
#[utoipa::path(
    post,
    path = "/tasks:claim",
    tag = "workers",
    operation_id = "claim_tasks",
    request_body = Request,
    responses(
        (status = 200, description = "What was taken", body = Taken),
        (status = 422, response = Refused),
    ),
)]
pub(crate) async fn claim(
    State(tasks): State<Tasks>,
    State(roster): State<Arc<Roster>>,
    served: Served,
    JsonBody(request): JsonBody<Request>,
) -> Result<Json<Taken>, Problem> {
    let (worker, limit, wait) = request.check()?;
    let deadline = tokio::time::Instant::now() + wait;
    let mut bell = tasks.changes();
    loop {
        bell.forget();
        let claimed = take(&tasks, &worker, limit).await?;
        let over = tokio::time::Instant::now() >= deadline || served.stop.is_cancelled();
        if !claimed.is_empty() || over {
            roster.met(&worker, Instant::now());
            let tasks = claimed.into_iter().map(Held::from).collect();
            return Ok(Json(Taken { tasks }));
        }
        tokio::select! {
            () = async {
                tokio::time::sleep(LOOK_AT_MOST_EVERY).await;
                bell.rung().await;
            } => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = tokio::time::sleep_until(deadline) => {}
            () = served.stop.cancelled() => {}
        }
    }
}

/// One claim. It runs to its end even if the worker hangs up meanwhile; then what it took goes
/// back, since nobody would know of it.
async fn take(tasks: &Tasks, worker: &Process, limit: usize) -> Result<Vec<Claimed>, Problem> {
    let (hand, taken) = oneshot::channel();
    let (service, worker) = (tasks.clone(), worker.clone());
    tokio::spawn(async move {
        let claimed = service.claim(worker, limit).await;
        if let Err(Ok(unwanted)) = hand.send(claimed) {
            let unwanted = unwanted.into_iter().map(|task| (task.id, task.token)).collect();
            give_back(&service, unwanted).await;
        }
    });
    let ended = || Problem::new(Code::InternalError, "the claim ended without an answer");
    Ok(taken.await.map_err(|_| ended())??)
}
