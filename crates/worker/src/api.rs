//! The Worker API over HTTP, and the results it serves.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::Body;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router, middleware};
use bytes::Bytes;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use crate::guard;
use crate::model::{Blame, Code, Failure, Job, JobId, JobStatus, Order, SessionStatus};
use crate::refusal::Refusal;
use crate::wire::OpenSession;
use crate::worker::Worker;

const LONGEST_BODY: usize = 64 << 10;
const LONGEST_KEY: usize = 200;
const PIECE: usize = 64 << 10;

type Answer<T> = Result<T, Refusal>;

impl Worker {
    /// All its paths.
    pub fn router(&self) -> Router {
        let door = Arc::clone(&self.inner.door);
        let guarded = Router::new()
            .route("/session", post(open_session).delete(close_session))
            .route("/session/status", get(session_status))
            .route("/scrape", post(start))
            .route("/scrape/{id}", get(job))
            .route("/scrape/{id}/cancel", post(cancel))
            .route_layer(middleware::from_fn_with_state(door, guard::check));
        Router::new()
            .route("/health", get(health))
            // Writers have no key of ours; who knows a job's id may read what it found.
            .route("/{id}/{file}", get(results))
            .merge(guarded)
            .method_not_allowed_fallback(async || Refusal::WrongMethod)
            .fallback(async |uri: Uri| Refusal::NoPath(uri.path().chars().take(100).collect()))
            .layer(DefaultBodyLimit::max(LONGEST_BODY))
            .with_state(self.clone())
    }
}

async fn health() -> Json<Value> {
    Json(json!({ "status": "healthy" }))
}

/// A change is not given up halfway because its caller is gone: a job that is on the disk and not in
/// the state would be started again under the same key.
async fn to_its_end<T: Send + 'static>(
    change: impl Future<Output = Result<T, Refusal>> + Send + 'static,
) -> Result<T, Refusal> {
    match tokio::spawn(change).await {
        Ok(answer) => answer,
        Err(error) => Err(Refusal::Internal(error.to_string())),
    }
}

async fn open_session(
    State(worker): State<Worker>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Answer<Json<Value>> {
    let order = OpenSession::parse(&value(body)?).map_err(Refusal::Invalid)?;
    let key = key(&headers)?;
    to_its_end(async move { worker.open_session(order, key).await }).await?;
    Ok(Json(json!({})))
}

async fn close_session(State(worker): State<Worker>) -> Answer<Json<Value>> {
    to_its_end(async move { worker.close_session().await }).await?;
    Ok(Json(json!({})))
}

#[derive(Serialize)]
struct SessionAnswer {
    status: SessionStatus,
    #[serde(flatten)]
    failure: Option<Failure>,
}

async fn session_status(State(worker): State<Worker>) -> Answer<Json<SessionAnswer>> {
    let (status, failure) = worker.session_status()?;
    Ok(Json(SessionAnswer { status, failure }))
}

async fn start(
    State(worker): State<Worker>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Answer<Json<Value>> {
    let order = Order::parse(&value(body)?).map_err(Refusal::Invalid)?;
    let key = key(&headers)?;
    let id = to_its_end(async move { worker.start(order, key).await }).await?;
    Ok(Json(json!({ "job_id": id })))
}

/// The words come first, the data last: a caller may stop reading before it.
#[derive(Serialize)]
struct JobAnswer {
    job_id: JobId,
    status: JobStatus,
    ads_count: u64,
    progress_pct: u64,
    total: u64,
    pages_done: u64,
    pages_total: u64,
    created_at: Timestamp,
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<Code>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blame: Option<Blame>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Box<RawValue>>,
}

async fn job(State(worker): State<Worker>, Path(id): Path<String>) -> Answer<Response> {
    let (job, progress) = worker.job(&id)?;
    let read = |number: &std::sync::atomic::AtomicU64| number.load(Ordering::Relaxed);
    let data = match job.status {
        JobStatus::Completed => few(&worker, &job).await,
        JobStatus::Empty => RawValue::from_string("[]".into()).ok(),
        JobStatus::Pending
        | JobStatus::Queued
        | JobStatus::Running
        | JobStatus::Failed
        | JobStatus::Cancelled => None,
    };
    let is_done = matches!(job.status, JobStatus::Completed | JobStatus::Empty);
    let (pages_done, pages_total) = if job.status.is_over() { job.pages } else { progress.pages() };
    let failure = job.failure;
    let answer = JobAnswer {
        job_id: job.id,
        status: job.status,
        ads_count: if job.status.is_over() { job.ads_count } else { progress.ads() },
        progress_pct: if is_done { 100 } else { progress.percent() },
        total: if is_done { job.ads_count } else { read(&progress.total) },
        pages_done,
        pages_total,
        created_at: job.created_at,
        started_at: job.started_at,
        finished_at: job.finished_at,
        error_code: failure.as_ref().map(|failure| failure.error_code),
        blame: failure.as_ref().map(|failure| failure.blame),
        error_message: failure.map(|failure| failure.error_message),
        data,
    };
    Ok(Json(answer).into_response())
}

async fn few(worker: &Worker, job: &Job) -> Option<Box<RawValue>> {
    let text = tokio::fs::read_to_string(worker.inner.disk.few(&job.id)).await.ok()?;
    RawValue::from_string(text).ok()
}

async fn cancel(State(worker): State<Worker>, Path(id): Path<String>) -> Answer<Json<Value>> {
    to_its_end(async move { worker.cancel(&id).await }).await?;
    Ok(Json(json!({})))
}

/// `/{id}/{id}_results.json`, when the job is completed.
async fn results(
    State(worker): State<Worker>,
    Path((id, name)): Path<(String, String)>,
) -> Answer<Response> {
    let (job, _) = worker.job(&id).map_err(|_| Refusal::NoResults)?;
    if name != crate::disk::results_name(&job.id) || job.status != JobStatus::Completed {
        return Err(Refusal::NoResults);
    }
    let path = worker.inner.disk.result(&job.id);
    let file = tokio::fs::File::open(path).await.map_err(|_| Refusal::NoResults)?;
    let length = file.metadata().await.map_err(|_| Refusal::NoResults)?.len();
    let pieces = futures_util::stream::try_unfold(file, |mut file| async move {
        let mut piece = bytes::BytesMut::with_capacity(PIECE);
        let read = file.read_buf(&mut piece).await?;
        Ok::<_, std::io::Error>((read > 0).then(|| (piece.freeze(), file)))
    });
    let headers = [
        (header::CONTENT_TYPE, "application/json".to_owned()),
        (header::CONTENT_LENGTH, length.to_string()),
    ];
    Ok((StatusCode::OK, headers, Body::from_stream(pieces)).into_response())
}

fn value(body: Result<Bytes, BytesRejection>) -> Answer<Value> {
    let body = body.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Refusal::TooLarge(LONGEST_BODY),
        _ => Refusal::MalformedJson("it ended early".into()),
    })?;
    // Where in the body it is wrong says enough; what stands there may be a password.
    let wrong = |error: serde_json::Error| {
        Refusal::MalformedJson(format!("line {}, column {}", error.line(), error.column()))
    };
    serde_json::from_slice(&body).map_err(wrong)
}

fn key(headers: &HeaderMap) -> Answer<Option<String>> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let text = value.to_str().ok().filter(|text| !text.is_empty() && text.len() <= LONGEST_KEY);
    match text {
        Some(text) => Ok(Some(text.to_owned())),
        None => Err(Refusal::Invalid(format!(
            "Idempotency-Key is a text of at most {LONGEST_KEY} characters"
        ))),
    }
}
