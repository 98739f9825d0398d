//! What happened, over all missions: the raw log.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use lavra_fleet::Fleet;
use lavra_fleet::model::{self, LogId, MissionId, SessionId, WorkerId};
use lavra_fleet::store::LogFilter;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::wire::LogEntry;
use super::words::{EventKind, MissionErrorCode};
use crate::app::Site;
use crate::limit::Limit;
use crate::problem::{Code, Problem};
use crate::query::{Page, Params, Several};
use crate::sheet::{self, Cell, Format, Row, Rows};
use crate::time::Moment;

/// Entries that are read at once where all are wanted.
const AT_ONCE: usize = 1000;

pub(crate) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::default().routes(routes!(entries))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wanted {
    /// The id of a mission.
    #[param(example = "mis_0193a1b27c3d7e4f8a5b6c7d8e9f0a1b")]
    mission: Option<String>,
    /// Only entries that belong to no mission.
    without_mission: Option<bool>,
    /// One or several, with commas in between.
    #[serde(default)]
    #[param(value_type = Option<Vec<EventKind>>, style = Form, explode = false, example = json!(["scrape_failed", "session_failed"]))]
    event: Several<EventKind>,
    /// The id of a worker.
    worker: Option<String>,
    /// The name of a proxy.
    #[param(example = "proxy-br-1")]
    proxy: Option<String>,
    /// The id of a session.
    session: Option<String>,
    error_code: Option<MissionErrorCode>,
    /// From this time on.
    #[param(value_type = Option<String>, format = DateTime, example = "2026-11-15T00:00:00Z")]
    since: Option<Moment>,
    /// Before this time.
    #[param(value_type = Option<String>, format = DateTime, example = "2026-11-16T00:00:00Z")]
    until: Option<Moment>,
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

/// The place of an entry, as a cursor.
pub(super) fn key(entry: &model::LogEntry) -> String {
    cursor(entry.timestamp, &entry.id)
}

pub(super) fn cursor(time: Timestamp, id: &LogId) -> String {
    format!("{}-{id}", time.as_microsecond().max(0))
}

/// What [`cursor`] has made.
pub(super) fn place(cursor: &str) -> Result<(Timestamp, LogId), Problem> {
    let place = cursor.split_once('-').and_then(|(micros, id)| {
        let micros =
            micros.parse().ok().filter(|micros: &u64| *micros < 100_000_000_000_000_000)?;
        Some((Timestamp::from_microsecond(micros as i64).ok()?, LogId(id.to_owned())))
    });
    place.ok_or_else(|| Problem::new(Code::BadQuery, "cursor is not one of this list"))
}

/// The log of the fleet, newest first, entries without a mission included
#[utoipa::path(
    get,
    path = "/fleet/log",
    tag = "fleet",
    operation_id = "fleet_log",
    params(Wanted),
    responses((status = 200, description = "A page, or all of it as CSV", content(
        (Page<LogEntry> = "application/json"),
        (String = "text/csv", example = "timestamp,mission_id,event,details,session_id,id\r\n"),
    ))),
)]
pub(crate) async fn entries(
    State(fleet): State<Fleet>,
    headers: HeaderMap,
    Params(wanted): Params<Wanted>,
) -> Result<Response, Problem> {
    let limit = wanted.limit.0;
    let filter = LogFilter {
        mission: wanted.mission.map(MissionId),
        without_mission: wanted.without_mission.unwrap_or(false),
        events: wanted.event.0.into_iter().map(Into::into).collect(),
        worker: wanted.worker.map(WorkerId),
        proxy: wanted.proxy,
        session: wanted.session.map(SessionId),
        error_code: wanted.error_code.map(Into::into),
        since: wanted.since.map(|moment| moment.0),
        until: wanted.until.map(|moment| moment.0),
        before: wanted.cursor.as_deref().map(place).transpose()?,
        after: None,
        oldest_first: false,
        limit: limit + 1,
    };
    if Format::wanted(wanted.format, &headers) == Format::Csv {
        return sheet::answer("fleet-log", &COLUMNS, Entries::new(fleet, filter)).await;
    }
    let found = fleet.log(&filter).await?;
    Ok(Json(Page::<LogEntry>::cut(found, limit, key)).into_response())
}

pub(super) const COLUMNS: [&str; 6] =
    ["timestamp", "mission_id", "event", "details", "session_id", "id"];

/// All entries of a filter, as rows.
pub(super) struct Entries {
    fleet: Fleet,
    filter: LogFilter,
    is_over: bool,
}

impl Entries {
    pub(super) fn new(fleet: Fleet, filter: LogFilter) -> Self {
        let filter = LogFilter { limit: AT_ONCE, ..filter };
        Self { fleet, filter, is_over: false }
    }
}

impl Rows for Entries {
    async fn next(&mut self) -> Result<Vec<Row>, Problem> {
        if self.is_over {
            return Ok(Vec::new());
        }
        let found = self.fleet.log(&self.filter).await?;
        self.is_over = found.len() < AT_ONCE;
        let last = found.last().map(|entry| (entry.timestamp, entry.id.clone()));
        if self.filter.oldest_first {
            self.filter.after = last;
        } else {
            self.filter.before = last;
        }
        Ok(found.into_iter().map(row).collect())
    }
}

fn row(entry: model::LogEntry) -> Row {
    vec![
        Cell::plain(entry.timestamp),
        Cell::maybe_text(entry.mission_id.as_ref().map(|id| id.0.as_str())),
        Cell::plain(entry.event),
        Cell::json(entry.details),
        Cell::maybe_text(entry.session_id.as_ref().map(|id| id.0.as_str())),
        Cell::text(entry.id.0),
    ]
}
