//! The reports of the audit: failures, performance, proxies. A mission's timeline is its log.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use jiff::{SignedDuration, Timestamp};
use lavra_fleet::Fleet;
use lavra_fleet::model::LogId;
use lavra_fleet::report::{self, Window};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::log::{cursor, place};
use super::words::MissionStatus;
use crate::app::Site;
use crate::limit::Limit;
use crate::problem::Problem;
use crate::query::Params;
use crate::sheet::{self, Cell, Format, Row, Rows, Whole};
use crate::time::Moment;

/// Failures that are read at once where all are wanted.
const AT_ONCE: usize = 1000;
const DAY: i64 = 24;
const WEEK: i64 = 7 * DAY;

pub(crate) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::default()
        .routes(routes!(failures))
        .routes(routes!(workers))
        .routes(routes!(proxies))
}

/// From when to when, as far as it is said.
fn window(
    fleet: &Fleet,
    since: Option<Moment>,
    until: Option<Moment>,
    hours: Option<Limit<1, HOURS>>,
    usual: i64,
) -> Window {
    let until = until.map_or_else(|| fleet.store.clock().now(), |moment| moment.0);
    let back = SignedDuration::from_hours(hours.map_or(usual, |hours| hours.0 as i64));
    let since = since
        .map_or_else(|| until.saturating_sub(back).unwrap_or(Timestamp::MIN), |moment| moment.0);
    Window { since, until }
}

/// A leap year of them.
const HOURS: usize = 366 * 24;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Failed {
    /// After this time.
    #[param(value_type = Option<String>, format = DateTime, example = "2026-11-15T00:00:00Z")]
    since: Option<Moment>,
    /// Before this time; now if absent.
    #[param(value_type = Option<String>, format = DateTime, example = "2027-11-16T00:00:00Z")]
    until: Option<Moment>,
    /// How far back from there, where `since` is absent; a day if nothing is said.
    #[param(value_type = Option<usize>, minimum = 1, maximum = 8784)]
    hours: Option<Limit<1, HOURS>>,
    /// How it is written; the header `Accept` says the same.
    format: Option<Format>,
    /// Of JSON: CSV has all of it.
    #[serde(default)]
    #[param(value_type = usize, required = false, minimum = 1, maximum = 1000, default = 100)]
    limit: Limit<100, 1000>,
    /// The `next_cursor` of the page before.
    #[param(
        pattern = r"^\d{1,17}-\w{1,200}$",
        example = "1794774720000000-log_0193a1b27c3d7e4f8a5b6c7d8e9f0a1b"
    )]
    cursor: Option<String>,
}

/// A mission that failed, each time that it did.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MissionFailure, example = json!({
    "id": "mis_0193a1b27c3d7e4f8a5b6c7d8e9f0a1b",
    "status": "failed",
    "error_code": "ERROR203",
    "error_message": "the scrape failed after all retries",
    "retry_count": 2,
    "failed_at": "2026-11-15T20:32:00Z",
    "details": {"error_code": "ERROR203"},
}))]
pub(crate) struct Failure {
    id: String,
    /// What it is now.
    status: MissionStatus,
    error_code: Option<String>,
    error_message: Option<String>,
    retry_count: i32,
    failed_at: Timestamp,
    #[schema(value_type = Object)]
    details: Map<String, Value>,
}

impl From<report::Failure> for Failure {
    fn from(failure: report::Failure) -> Self {
        Self {
            id: failure.id.0,
            status: failure.status.into(),
            error_code: failure.error_code,
            error_message: failure.error_message,
            retry_count: failure.retry_count,
            failed_at: failure.failed_at,
            details: failure.details,
        }
    }
}

/// Missions that failed within a window.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MissionFailures)]
pub(crate) struct Failures {
    since: Timestamp,
    until: Timestamp,
    items: Vec<Failure>,
    /// The `cursor` of the next page; null on the last one.
    next_cursor: Option<String>,
}

/// Missions that failed, newest first
#[utoipa::path(
    get,
    path = "/fleet/reports/failures",
    tag = "fleet",
    operation_id = "report_failures",
    params(Failed),
    responses(
        (status = 200, description = "A page, or all of it as CSV", content(
            (Failures = "application/json"),
            (String = "text/csv", example = "id,status,error_code,error_message,retry_count,failed_at,details\r\n"),
        )),
    ),
)]
pub(crate) async fn failures(
    State(fleet): State<Fleet>,
    headers: HeaderMap,
    Params(wanted): Params<Failed>,
) -> Result<Response, Problem> {
    let window = window(&fleet, wanted.since, wanted.until, wanted.hours, DAY);
    let before = wanted.cursor.as_deref().map(place).transpose()?;
    if Format::wanted(wanted.format, &headers) == Format::Csv {
        let columns =
            ["id", "status", "error_code", "error_message", "retry_count", "failed_at", "details"];
        return sheet::answer("failures", &columns, All { fleet, window, before, is_over: false })
            .await;
    }
    let limit = wanted.limit.0;
    let mut found = fleet.failures(window, before, limit + 1).await?;
    let has_more = found.len() > limit;
    found.truncate(limit);
    let last = found.last().filter(|_| has_more);
    let next_cursor = last.map(|failure| cursor(failure.failed_at, &failure.log_id));
    let items = found.into_iter().map(Failure::from).collect();
    Ok(Json(Failures { since: window.since, until: window.until, items, next_cursor })
        .into_response())
}

/// All failures of a window, as rows.
struct All {
    fleet: Fleet,
    window: Window,
    before: Option<(Timestamp, LogId)>,
    is_over: bool,
}

impl Rows for All {
    async fn next(&mut self) -> Result<Vec<Row>, Problem> {
        if self.is_over {
            return Ok(Vec::new());
        }
        let found = self.fleet.failures(self.window, self.before.take(), AT_ONCE).await?;
        self.is_over = found.len() < AT_ONCE;
        self.before = found.last().map(|failure| (failure.failed_at, failure.log_id.clone()));
        let row = |failure: report::Failure| {
            vec![
                Cell::text(failure.id.0),
                Cell::plain(failure.status),
                Cell::maybe_text(failure.error_code.as_deref()),
                Cell::maybe_text(failure.error_message.as_deref()),
                Cell::plain(failure.retry_count),
                Cell::plain(failure.failed_at),
                Cell::json(failure.details),
            ]
        };
        Ok(found.into_iter().map(row).collect())
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Over {
    /// After this time.
    #[param(value_type = Option<String>, format = DateTime, example = "2026-11-15T00:00:00Z")]
    since: Option<Moment>,
    /// Before this time; now if absent.
    #[param(value_type = Option<String>, format = DateTime, example = "2027-11-16T00:00:00Z")]
    until: Option<Moment>,
    /// How far back from there, where `since` is absent; a week if nothing is said.
    #[param(value_type = Option<usize>, minimum = 1, maximum = 8784)]
    hours: Option<Limit<1, HOURS>>,
    /// How it is written; the header `Accept` says the same.
    format: Option<Format>,
}

/// What a worker did.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WorkerPerformance, example = json!({
    "worker_name": "worker-1", "completed_count": 120, "failed_count": 3,
    "avg_duration_ms": 883_000.5, "worker_id": "wrk_0193a1b27c3d7e4f8a5b6c7d8e9f0a1b",
}))]
pub(crate) struct Performance {
    worker_name: String,
    completed_count: i64,
    failed_count: i64,
    /// Of what was completed.
    avg_duration_ms: Option<f64>,
    worker_id: String,
}

impl From<report::Performance> for Performance {
    fn from(row: report::Performance) -> Self {
        Self {
            worker_name: row.worker_name,
            completed_count: row.completed_count,
            failed_count: row.failed_count,
            avg_duration_ms: row.avg_duration_ms,
            worker_id: row.worker_id.0,
        }
    }
}

/// What the workers did within a window.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PerformanceReport)]
pub(crate) struct Performances {
    since: Timestamp,
    until: Timestamp,
    items: Vec<Performance>,
}

/// What each worker did
#[utoipa::path(
    get,
    path = "/fleet/reports/workers",
    tag = "fleet",
    operation_id = "report_workers",
    params(Over),
    responses(
        (status = 200, description = "By worker; those that did nothing are left out", content(
            (Performances = "application/json"),
            (String = "text/csv", example = "worker_name,completed_count,failed_count,avg_duration_ms,worker_id\r\n"),
        )),
    ),
)]
pub(crate) async fn workers(
    State(fleet): State<Fleet>,
    headers: HeaderMap,
    Params(over): Params<Over>,
) -> Result<Response, Problem> {
    let window = window(&fleet, over.since, over.until, over.hours, WEEK);
    let found = fleet.performance(window).await?;
    if Format::wanted(over.format, &headers) == Format::Csv {
        let columns =
            ["worker_name", "completed_count", "failed_count", "avg_duration_ms", "worker_id"];
        let row = |row: report::Performance| {
            vec![
                Cell::text(row.worker_name),
                Cell::plain(row.completed_count),
                Cell::plain(row.failed_count),
                Cell::maybe(row.avg_duration_ms),
                Cell::text(row.worker_id.0),
            ]
        };
        let rows = Whole(Some(found.into_iter().map(row).collect()));
        return sheet::answer("workers", &columns, rows).await;
    }
    let items = found.into_iter().map(Performance::from).collect();
    Ok(Json(Performances { since: window.since, until: window.until, items }).into_response())
}

/// A proxy, with what went wrong behind it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "name": "proxy-br-1", "host": "10.0.0.7", "fail_count": 3, "active": false,
    "session_failures": 3, "rotations": 2, "proxy_id": "prx_0193a1b27c3d7e4f8a5b6c7d8e9f0a1b",
}))]
pub(crate) struct ProxyTrouble {
    name: Option<String>,
    host: String,
    fail_count: i32,
    active: bool,
    session_failures: i64,
    rotations: i64,
    proxy_id: String,
}

impl From<report::ProxyTrouble> for ProxyTrouble {
    fn from(row: report::ProxyTrouble) -> Self {
        Self {
            name: row.name,
            host: row.host,
            fail_count: row.fail_count,
            active: row.active,
            session_failures: row.session_failures,
            rotations: row.rotations,
            proxy_id: row.proxy_id.0,
        }
    }
}

/// What went wrong behind the proxies within a window.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ProxyReport)]
pub(crate) struct Troubles {
    since: Timestamp,
    until: Timestamp,
    items: Vec<ProxyTrouble>,
}

/// What went wrong behind each proxy
#[utoipa::path(
    get,
    path = "/fleet/reports/proxies",
    tag = "fleet",
    operation_id = "report_proxies",
    params(Over),
    responses(
        (status = 200, description = "Those that failed most often first", content(
            (Troubles = "application/json"),
            (String = "text/csv", example = "name,host,fail_count,active,session_failures,rotations,proxy_id\r\n"),
        )),
    ),
)]
pub(crate) async fn proxies(
    State(fleet): State<Fleet>,
    headers: HeaderMap,
    Params(over): Params<Over>,
) -> Result<Response, Problem> {
    let window = window(&fleet, over.since, over.until, over.hours, WEEK);
    let found = fleet.troubled_proxies(window).await?;
    if Format::wanted(over.format, &headers) == Format::Csv {
        let columns =
            ["name", "host", "fail_count", "active", "session_failures", "rotations", "proxy_id"];
        let row = |row: report::ProxyTrouble| {
            vec![
                Cell::maybe_text(row.name.as_deref()),
                Cell::text(row.host),
                Cell::plain(row.fail_count),
                Cell::plain(row.active),
                Cell::plain(row.session_failures),
                Cell::plain(row.rotations),
                Cell::text(row.proxy_id.0),
            ]
        };
        let rows = Whole(Some(found.into_iter().map(row).collect()));
        return sheet::answer("proxies", &columns, rows).await;
    }
    let items = found.into_iter().map(ProxyTrouble::from).collect();
    Ok(Json(Troubles { since: window.since, until: window.until, items }).into_response())
}
