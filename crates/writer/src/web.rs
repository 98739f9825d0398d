//! The Writer API: `POST /process`, `GET /status/{job_id}`, `GET /health`.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, Path, Query, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use lavra_db::door::Door;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::Semaphore;
use tower_http::catch_panic::CatchPanicLayer;

use crate::failure::Failure;
use crate::guard;
use crate::model::{FailedItem, Job, JobId, Status};
use crate::order::{Order, Refused};
use crate::service::{NotTaken, Service};

/// Of an answer's failed items: callers read only so far.
const ITEM_BYTES: usize = 3 << 20;
/// Bodies that are read at once, other than those that hardly take any memory.
const READING: usize = 4;
const SHORT: usize = 256 << 10;
/// How long one may take: others wait for their turn.
const LONGEST: Duration = Duration::from_secs(60);
/// What a caller is asked to wait when too many jobs wait.
const RETRY_AFTER: &str = "5";

struct App {
    service: Service,
    /// For bodies that are long.
    reading: Semaphore,
}

/// The API of a writer; without a key every program of this machine may use it.
pub fn router(service: Service, api_key: Option<&SecretString>) -> Router {
    let limit = service.config().limits.request_bytes;
    let door = Arc::new(Door::new(api_key));
    let app = Arc::new(App { service, reading: Semaphore::new(READING) });
    Router::new()
        .route("/process", post(process))
        .route("/status/{job_id}", get(status))
        .layer(middleware::from_fn_with_state(door, guard::check))
        .route("/health", get(health))
        .fallback(async || problem(StatusCode::NOT_FOUND, "there is nothing at this path"))
        .method_not_allowed_fallback(async || {
            problem(StatusCode::METHOD_NOT_ALLOWED, "this path has no such method")
        })
        .layer(DefaultBodyLimit::max(limit))
        .layer(CatchPanicLayer::custom(|_| {
            problem(StatusCode::INTERNAL_SERVER_ERROR, "something is wrong in the writer")
        }))
        .with_state(app)
}

/// Why a writer may not listen there: beyond this machine it needs a key.
pub fn listen_refusal(address: SocketAddr, has_key: bool) -> Option<String> {
    let is_open = !address.ip().is_loopback() && !has_key;
    is_open.then(|| {
        format!("{address} can be reached from other machines: set LAVRA_WRITER_API_KEY first")
    })
}

pub(crate) fn problem(status: StatusCode, message: impl Into<String>) -> Response {
    let error = status.canonical_reason().unwrap_or("error").to_lowercase().replace(' ', "_");
    (status, Json(json!({ "error": error, "message": message.into() }))).into_response()
}

async fn health(State(app): State<Arc<App>>) -> Response {
    match app.service.probe().await {
        Ok(()) => Json(json!({ "status": "healthy" })).into_response(),
        Err(failure) => {
            tracing::warn!(error = %failure, "the writer is not healthy");
            let body =
                Json(json!({ "status": "unhealthy", "message": "the database does not answer" }));
            (StatusCode::SERVICE_UNAVAILABLE, body).into_response()
        }
    }
}

async fn process(State(app): State<Arc<App>>, request: Request) -> Response {
    // Held until the order is stored, and nothing of it is in memory any more.
    let _turn = if is_short(&request) { None } else { app.reading.acquire().await.ok() };
    let read = tokio::time::timeout(LONGEST, Bytes::from_request(request, &app));
    let Ok(body) = read.await else {
        return problem(StatusCode::REQUEST_TIMEOUT, "the body takes too long");
    };
    let body = match body {
        Ok(body) => body,
        Err(rejection) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            let text = "the body is too large: put the data where a url leads to it";
            return problem(StatusCode::PAYLOAD_TOO_LARGE, text);
        }
        Err(rejection) => return problem(StatusCode::BAD_REQUEST, rejection.body_text()),
    };
    let order = Order::parse(&body);
    drop(body);
    let taken = match order {
        Ok(order) => app.service.take(order).await,
        Err(refused) => Err(NotTaken::Refused(refused)),
    };
    match taken {
        Ok(job) => Json(json!({
            "job_id": job.id.as_str(),
            "status": job.status.as_str(),
            "created_at": job.created_at,
        }))
        .into_response(),
        Err(NotTaken::Refused(refused)) => {
            let status = match &refused {
                Refused::Unreadable(_) => StatusCode::BAD_REQUEST,
                Refused::Invalid { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            };
            problem(status, refused.to_string())
        }
        Err(NotTaken::Busy) => {
            let answer = problem(StatusCode::TOO_MANY_REQUESTS, "too many jobs wait already");
            ([(header::RETRY_AFTER, RETRY_AFTER)], answer).into_response()
        }
        Err(NotTaken::Failed(failure)) => failed(&failure),
    }
}

/// Whether a body says that it is.
fn is_short(request: &Request) -> bool {
    let length = request.headers().get(header::CONTENT_LENGTH).and_then(|it| it.to_str().ok());
    length.and_then(|length| length.parse().ok()).is_some_and(|length: usize| length <= SHORT)
}

fn failed(failure: &Failure) -> Response {
    tracing::error!(error = %failure, "a request failed");
    problem(StatusCode::INTERNAL_SERVER_ERROR, "the writer's database had trouble: try again")
}

#[derive(Deserialize)]
struct Page {
    /// Only items with a higher index.
    failed_after: Option<u64>,
}

/// In the order of the specification; what may be long comes last.
#[derive(Serialize)]
struct Report<'a> {
    job_id: &'a str,
    status: &'static str,
    progress: Counts,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<&'a str>,
    #[serde(skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    unknown_keys: &'a std::collections::BTreeMap<String, u64>,
    created_at: jiff::Timestamp,
    started_at: Option<jiff::Timestamp>,
    completed_at: Option<jiff::Timestamp>,
    /// Failed items that are not in this answer.
    #[serde(skip_serializing_if = "is_zero")]
    failed_items_omitted: u64,
    failed_items: Vec<Item<'a>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[derive(Serialize)]
struct Counts {
    total: u64,
    processed: u64,
    success_count: u64,
    failed_count: u64,
    duplicate_count: u64,
}

#[derive(Serialize)]
struct Item<'a> {
    index: u64,
    data: Cow<'a, RawValue>,
    error: &'a str,
}

async fn status(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Query(page): Query<Page>,
) -> Response {
    let unknown = || problem(StatusCode::NOT_FOUND, "there is no such job");
    let Some(id) = JobId::parse(&id) else { return unknown() };
    let job = match app.service.job(&id).await {
        Ok(Some(job)) => job,
        Ok(None) => return unknown(),
        Err(failure) => return failed(&failure),
    };
    let (items, more) = if job.progress.failed_count > 0 {
        match app.service.failed_items(&id, page.failed_after, ITEM_BYTES).await {
            Ok(found) => found,
            Err(failure) => return failed(&failure),
        }
    } else {
        (Vec::new(), 0)
    };
    let more = page.failed_after.map(|_| more);
    report(&job, &items, more)
}

/// The element as it came, where whoever asks can read it: what is too much for a parser, a number
/// without an end say, would spoil the whole answer. It is told as text then.
fn readable(data: &str) -> Cow<'_, RawValue> {
    // As deep as it stands in an answer.
    let is_readable = serde_json::from_str::<serde_json::Value>(&format!("[[[[{data}]]]]")).is_ok();
    match serde_json::from_str::<&RawValue>(data) {
        Ok(raw) if is_readable => Cow::Borrowed(raw),
        _ => Cow::Owned(serde_json::value::to_raw_value(data).unwrap_or_default()),
    }
}

/// `more` of a page: those that are kept and not among the items.
fn report(job: &Job, items: &[FailedItem], more: Option<usize>) -> Response {
    let mut room = ITEM_BYTES;
    let mut told = Vec::new();
    for item in items {
        let data = readable(&item.data);
        let length = data.get().len() + item.error.len() + 50;
        let Some(rest) = room.checked_sub(length) else { break };
        room = rest;
        told.push(Item { index: item.index, data, error: &item.error });
    }
    let progress = &job.progress;
    let omitted = match more {
        Some(more) => (items.len() - told.len() + more) as u64,
        None => progress.failed_count.saturating_sub(told.len() as u64),
    };
    let report = Report {
        job_id: job.id.as_str(),
        status: job.status.as_str(),
        progress: Counts {
            total: progress.total,
            processed: progress.processed,
            success_count: progress.success_count,
            failed_count: progress.failed_count,
            duplicate_count: progress.duplicate_count,
        },
        error_code: job.error_code.as_deref().filter(|_| job.status == Status::Failed),
        error_message: job.error_message.as_deref(),
        unknown_keys: &progress.unknown_keys,
        created_at: job.created_at,
        started_at: job.started_at,
        completed_at: job.completed_at,
        failed_items_omitted: omitted,
        failed_items: told,
    };
    Json(report).into_response()
}
