//! What happened, over all missions: the raw log and the reports.

use axum::Json;
use axum::extract::{Path, State};
use jiff::{SignedDuration, Timestamp};
use lavra_fleet::Fleet;
use lavra_fleet::code::ErrorCode;
use lavra_fleet::model::{EventKind, LogId, MissionId, WorkerId};
use lavra_fleet::report;
use lavra_fleet::store::LogFilter;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::Site;
use crate::openapi::Refused;
use crate::problem::{Code, Problem};
use crate::query::Params;

pub(crate) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::default().routes(routes!(entries)).routes(routes!(report))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wanted {
    mission: Option<String>,
    /// Only entries that belong to no mission.
    without_mission: Option<bool>,
    /// As `scrape_failed`.
    #[param(value_type = Option<String>)]
    event: Option<EventKind>,
    /// The id of a worker.
    worker: Option<String>,
    #[param(value_type = Option<String>)]
    error_code: Option<ErrorCode>,
    #[param(value_type = Option<String>)]
    since: Option<Timestamp>,
    #[param(value_type = Option<String>)]
    until: Option<Timestamp>,
    /// Where the last page ended.
    cursor: Option<String>,
    /// How many, up to 1000.
    limit: Option<usize>,
}

/// The log of the fleet, newest first
#[utoipa::path(
    get,
    path = "/fleet/log",
    tag = "fleet",
    operation_id = "fleet_log",
    params(Wanted),
    responses((status = 200, description = "A page", body = Object)),
)]
pub(crate) async fn entries(
    State(fleet): State<Fleet>,
    Params(wanted): Params<Wanted>,
) -> Result<Json<Value>, Problem> {
    let limit = wanted.limit.unwrap_or(100).clamp(1, 1000);
    let before = match wanted.cursor.as_deref().map(|text| text.split_once('/')) {
        None => None,
        Some(Some((time, id))) => {
            let time = time.parse().map_err(|_| Problem::new(Code::BadQuery, "cursor"))?;
            Some((time, LogId(id.to_owned())))
        }
        Some(None) => return Err(Problem::new(Code::BadQuery, "cursor is not one of ours")),
    };
    let filter = LogFilter {
        mission: wanted.mission.map(MissionId),
        without_mission: wanted.without_mission.unwrap_or(false),
        events: wanted.event.into_iter().collect(),
        worker: wanted.worker.map(WorkerId),
        error_code: wanted.error_code,
        since: wanted.since,
        until: wanted.until,
        before,
        oldest_first: false,
        limit: limit + 1,
    };
    let mut items = fleet.log(&filter).await?;
    let more = items.len() > limit;
    items.truncate(limit);
    let last = items.last().filter(|_| more);
    let next = last.map(|entry| format!("{}/{}", entry.timestamp, entry.id));
    Ok(Json(json!({ "items": items, "next_cursor": next })))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Window {
    /// How far back, in hours [default: 24 for failures, 168 otherwise].
    hours: Option<i64>,
}

/// A report: failures, workers or proxies
#[utoipa::path(
    get,
    path = "/fleet/reports/{name}",
    tag = "fleet",
    operation_id = "fleet_report",
    params(("name" = String, Path, description = "failures, workers or proxies", example = "failures"), Window),
    responses((status = 200, description = "Its rows", body = Object), (status = 404, response = Refused)),
)]
pub(crate) async fn report(
    State(fleet): State<Fleet>,
    Path(name): Path<String>,
    Params(window): Params<Window>,
) -> Result<Json<Value>, Problem> {
    let now = fleet.store.clock().now();
    let since = |usual: i64| {
        let hours = window.hours.unwrap_or(usual).clamp(1, 24 * 366);
        now.saturating_sub(SignedDuration::from_hours(hours)).unwrap_or(Timestamp::MIN)
    };
    let (day, week) = (since(24), since(24 * 7));
    let (since, items) = match name.as_str() {
        "failures" => (day, json!(fleet.failures(report::Window::since(day), None, 10_000).await?)),
        "workers" => (week, json!(fleet.performance(report::Window::since(week)).await?)),
        "proxies" => (week, json!(fleet.troubled_proxies(report::Window::since(week)).await?)),
        other => {
            let detail = format!("there are failures, workers and proxies, not {other:?}");
            return Err(Problem::new(Code::FleetNotFound, detail));
        }
    };
    Ok(Json(json!({ "since": since, "items": items })))
}
