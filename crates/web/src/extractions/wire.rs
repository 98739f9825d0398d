//! Extractions as they travel.

use jiff::Timestamp;
use lavra_extract::look::{self, PageLine, Shown};
use lavra_extract::model::{self, Cell};
use lavra_extract::store::Progress;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// How far a task of the plan is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schema(as = ExtractionStatus)]
pub(crate) enum Status {
    Pending,
    Discovering,
    Fetching,
    Partial,
    Complete,
    Failed,
}

impl From<model::Status> for Status {
    fn from(status: model::Status) -> Self {
        match status {
            model::Status::Pending => Self::Pending,
            model::Status::Discovering => Self::Discovering,
            model::Status::Fetching => Self::Fetching,
            model::Status::Partial => Self::Partial,
            model::Status::Complete => Self::Complete,
            model::Status::Failed => Self::Failed,
        }
    }
}

impl From<Status> for model::Status {
    fn from(status: Status) -> Self {
        match status {
            Status::Pending => Self::Pending,
            Status::Discovering => Self::Discovering,
            Status::Fetching => Self::Fetching,
            Status::Partial => Self::Partial,
            Status::Complete => Self::Complete,
            Status::Failed => Self::Failed,
        }
    }
}

/// A task of the plan, with what is stored of it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "task_id": "contratos_publicacao_2024-01-01",
    "endpoint_name": "contratos_publicacao",
    "data_date": "2024-01-01",
    "status": "PARTIAL",
    "total_pages": 216,
    "total_records": 107_709,
    "pages": 120,
    "records": 60_000,
    "bytes": 90_120_000,
    "is_final": true,
    "verdict": null,
    "last_error": null,
    "next_attempt_at": null,
    "updated_at": "2026-11-15T20:31:00Z",
}))]
pub(crate) struct Extraction {
    pub(super) task_id: String,
    pub(super) endpoint_name: String,
    #[schema(format = Date)]
    pub(super) data_date: String,
    status: Status,
    /// What the source announced last.
    total_pages: Option<i64>,
    total_records: Option<i64>,
    /// What is stored.
    pages: i64,
    records: i64,
    bytes: i64,
    /// Whether the month was over when it was fetched.
    is_final: bool,
    /// `exact`, `short by 3`, `drifted by 2`.
    verdict: Option<String>,
    last_error: Option<String>,
    /// When it is tried again by itself.
    next_attempt_at: Option<Timestamp>,
    updated_at: Timestamp,
}

impl From<Progress> for Extraction {
    fn from(progress: Progress) -> Self {
        let task = progress.task;
        Self {
            task_id: task.task_id.0,
            endpoint_name: task.endpoint_name,
            data_date: task.data_date.to_string(),
            status: task.status.into(),
            total_pages: task.total_pages,
            total_records: task.total_records,
            pages: progress.pages,
            records: progress.records,
            bytes: progress.bytes,
            is_final: task.is_final,
            verdict: task.verdict,
            last_error: task.last_error,
            next_attempt_at: task.next_attempt_at,
            updated_at: task.updated_at,
        }
    }
}

/// A month of an endpoint, in a few words.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GridMonth, example = json!({
    "month": "2024-01", "task_id": "contratos_publicacao_2024-01-01", "status": "PARTIAL",
    "records": 60_000, "percent": 55,
}))]
pub(crate) struct GridMonth {
    /// The first one of the task's: that of a year has one.
    month: String,
    task_id: String,
    status: Status,
    /// What is stored.
    records: i64,
    /// How much of it is there; 100 only when it is complete.
    #[schema(minimum = 0, maximum = 100)]
    percent: u8,
}

impl From<&Cell> for GridMonth {
    fn from(cell: &Cell) -> Self {
        Self {
            month: cell.data_date.strftime("%Y-%m").to_string(),
            task_id: model::ExtractionId::new(&cell.endpoint_name, cell.data_date).0,
            status: cell.status.into(),
            records: cell.records,
            percent: cell.percent(),
        }
    }
}

/// A task of the plan, with what is missing of it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "task_id": "contratos_publicacao_2024-01-01",
    "endpoint_name": "contratos_publicacao",
    "data_date": "2024-01-01",
    "status": "PARTIAL",
    "total_pages": 216,
    "total_records": 107_709,
    "missing": 3,
    "missing_pages": [{"first": 14, "last": 15}, {"first": 200, "last": 200}],
    "windows": [{
        "number": 1, "first_day": "2024-01-01", "last_day": "2024-01-31", "base": 0,
        "total_pages": 216, "total_records": 107_709,
    }],
    "discoveries": 1,
    "generation": 1,
    "attempts": 0,
    "is_final": true,
    "verdict": null,
    "last_error": "3 pages could not be had: status 500",
    "discovered_at": "2026-11-15T20:30:00Z",
    "failing_since": null,
    "next_attempt_at": null,
    "updated_at": "2026-11-15T20:31:00Z",
}))]
pub(crate) struct ExtractionTask {
    task_id: String,
    endpoint_name: String,
    #[schema(format = Date)]
    data_date: String,
    status: Status,
    /// What the source announced last.
    total_pages: Option<i64>,
    total_records: Option<i64>,
    /// How many pages are promised and not stored as promised.
    missing: i64,
    /// The first hundred runs of them.
    missing_pages: Vec<Run>,
    windows: Vec<Window>,
    /// How often the totals were asked for in this generation.
    discoveries: i32,
    /// Grows when all of it is to be fetched again.
    generation: i32,
    /// Failed discoveries in a row.
    attempts: i32,
    /// Whether the month was over when it was fetched.
    is_final: bool,
    /// `exact`, `short by 3`, `drifted by 2`.
    verdict: Option<String>,
    last_error: Option<String>,
    discovered_at: Option<Timestamp>,
    failing_since: Option<Timestamp>,
    /// When it is tried again by itself.
    next_attempt_at: Option<Timestamp>,
    updated_at: Timestamp,
}

/// Pages from one to another, both included.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PageRun, example = json!({"first": 14, "last": 15}))]
pub(crate) struct Run {
    first: i64,
    last: i64,
}

/// A part of a task's days that is paged by itself.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExtractionWindow, example = json!({
    "number": 1, "first_day": "2024-01-01", "last_day": "2024-01-31", "base": 0,
    "total_pages": 216, "total_records": 107_709,
}))]
pub(crate) struct Window {
    number: i32,
    #[schema(format = Date)]
    first_day: String,
    #[schema(format = Date)]
    last_day: String,
    /// What is added to its page numbers, so that those of a task never collide.
    base: i64,
    total_pages: Option<i64>,
    total_records: Option<i64>,
}

impl From<model::Window> for Window {
    fn from(window: model::Window) -> Self {
        Self {
            number: window.number,
            first_day: window.first_day.to_string(),
            last_day: window.last_day.to_string(),
            base: window.base,
            total_pages: window.totals.map(|totals| totals.pages),
            total_records: window.totals.map(|totals| totals.records),
        }
    }
}

impl From<Shown> for ExtractionTask {
    fn from(shown: Shown) -> Self {
        let runs = shown.missing_runs.into_iter();
        let task = shown.task;
        Self {
            task_id: task.task_id.0,
            endpoint_name: task.endpoint_name,
            data_date: task.data_date.to_string(),
            status: task.status.into(),
            total_pages: task.total_pages,
            total_records: task.total_records,
            missing: shown.missing,
            missing_pages: runs.map(|r| Run { first: *r.start(), last: *r.end() }).collect(),
            windows: shown.windows.into_iter().map(Window::from).collect(),
            discoveries: task.discoveries,
            generation: task.generation,
            attempts: task.attempts,
            is_final: task.is_final,
            verdict: task.verdict,
            last_error: task.last_error,
            discovered_at: task.discovered_at,
            failing_since: task.failing_since,
            next_attempt_at: task.next_attempt_at,
            updated_at: task.updated_at,
        }
    }
}

/// What is known of a page: records, no record, only failures, or nothing yet.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = PageOutcome)]
pub(crate) enum Outcome {
    Data,
    Empty,
    Failed,
    Missing,
}

impl From<look::Outcome> for Outcome {
    fn from(outcome: look::Outcome) -> Self {
        match outcome {
            look::Outcome::Data => Self::Data,
            look::Outcome::Empty => Self::Empty,
            look::Outcome::Failed => Self::Failed,
            look::Outcome::Missing => Self::Missing,
        }
    }
}

/// A page of a task.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "page": 14, "outcome": "data", "counts": true, "records": 500, "bytes": 751_000,
    "fetched_at": "2026-11-15T20:31:00Z",
    "body_hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "content_hash": "6b86b273ff34fce19d6b804eff5a3f57",
    "response_id": "0193a1b2-7c3d-7e4f-8a5b-6c7d8e9f0a1b",
    "failure": null,
}))]
pub(crate) struct ExtractionPage {
    /// Within the task: the window's base included.
    page: i64,
    outcome: Outcome,
    /// Whether it is as the source announces it now; what does not count is fetched again.
    counts: bool,
    /// Of what is stored.
    records: Option<i64>,
    bytes: Option<i64>,
    fetched_at: Option<Timestamp>,
    /// Of the bytes as they came.
    body_hash: Option<String>,
    /// Of the content, whatever the order of its keys.
    content_hash: Option<String>,
    /// Where the body is, in the table of responses.
    response_id: Option<Uuid>,
    /// The last one, of a page that does not count.
    failure: Option<Failure>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PageFailure, example = json!({
    "at": "2026-11-15T20:31:00Z", "response_code": 503, "error": "status 503",
}))]
pub(crate) struct Failure {
    at: Timestamp,
    /// 0 where there was no answer.
    response_code: i32,
    error: String,
}

impl From<PageLine> for ExtractionPage {
    fn from(line: PageLine) -> Self {
        let stored = line.stored;
        Self {
            page: line.page,
            outcome: line.outcome.into(),
            counts: line.counts,
            records: stored.as_ref().map(|page| page.stored.records),
            bytes: stored.as_ref().map(|page| page.bytes),
            fetched_at: stored.as_ref().map(|page| page.fetched_at),
            response_id: stored.as_ref().map(|page| page.response),
            body_hash: stored.as_ref().map(|page| page.body_hash.clone()),
            content_hash: stored.map(|page| page.content_hash),
            failure: line.failure.map(|failure| Failure {
                at: failure.at,
                response_code: failure.code,
                error: failure.error,
            }),
        }
    }
}
