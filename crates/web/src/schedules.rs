//! Tasks that are made by the clock.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use lavra_tasks::{Error, Tasks, store};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::app::Site;
use crate::body::JsonBody;
use crate::openapi::Refused;
use crate::path::Id;
use crate::problem::Problem;

pub(crate) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::default().routes(routes!(list)).routes(routes!(put, remove))
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "name": "nightly-report",
    "type": "http",
    "cron": "17 3 * * *",
    "payload": {"url": "https://example.org/report"},
    "enabled": true,
    "next_at": "2026-11-16T03:17:00Z",
    "last_task": null,
}))]
pub(crate) struct Schedule {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    /// In UTC.
    cron: String,
    payload: Value,
    enabled: bool,
    next_at: Timestamp,
    /// The task that was made last.
    last_task: Option<Uuid>,
}

impl From<store::Schedule> for Schedule {
    fn from(schedule: store::Schedule) -> Self {
        Self {
            name: schedule.name,
            kind: schedule.kind,
            cron: schedule.cron,
            payload: schedule.payload,
            enabled: schedule.enabled,
            next_at: schedule.next_at,
            last_task: schedule.last_task.map(|task| task.0),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Schedules {
    items: Vec<Schedule>,
}

/// List schedules, by name
#[utoipa::path(
    get,
    path = "/schedules",
    tag = "schedules",
    operation_id = "list_schedules",
    responses((status = 200, description = "All of them", body = Schedules)),
)]
pub(crate) async fn list(State(tasks): State<Tasks>) -> Result<Json<Schedules>, Problem> {
    let found = tasks.store().schedules().await?;
    Ok(Json(Schedules { items: found.into_iter().map(Schedule::from).collect() }))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "type": "http",
    "cron": "17 3 * * *",
    "payload": {"url": "https://example.org/report"},
}))]
pub(crate) struct NewSchedule {
    #[serde(rename = "type")]
    #[schema(pattern = "^[A-Za-z][A-Za-z0-9_.-]{0,127}$")]
    kind: String,
    /// Minute, hour, day of the month, month, day of the week; in UTC.
    cron: String,
    /// `{}` if absent.
    payload: Option<Value>,
}

/// Store a schedule under its name
///
/// Its first task is made at the next due time from now.
#[utoipa::path(
    put,
    path = "/schedules/{name}",
    tag = "schedules",
    operation_id = "put_schedule",
    params(("name" = String, Path, pattern = "^[A-Za-z][A-Za-z0-9_.-]{0,127}$", example = "nightly-report")),
    request_body = NewSchedule,
    responses(
        (status = 201, description = "It is new", body = Schedule),
        (status = 200, description = "It was there and is replaced", body = Schedule),
        (status = 422, response = Refused),
    ),
)]
pub(crate) async fn put(
    State(tasks): State<Tasks>,
    Id(name): Id<String>,
    JsonBody(request): JsonBody<NewSchedule>,
) -> Result<(StatusCode, Json<Schedule>), Problem> {
    let payload = request.payload.unwrap_or_else(|| Value::Object(Map::new()));
    let is_new = tasks.store().schedules().await?.iter().all(|schedule| schedule.name != name);
    let schedule = tasks.schedule(&name, &request.kind, &request.cron, payload).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(schedule.into())))
}

/// Remove a schedule
///
/// Tasks that it has made stay.
#[utoipa::path(
    delete,
    path = "/schedules/{name}",
    tag = "schedules",
    operation_id = "remove_schedule",
    params(("name" = String, Path, pattern = "^[A-Za-z][A-Za-z0-9_.-]{0,127}$", example = "nightly-report")),
    responses(
        (status = 204, description = "It is gone"),
        (status = 404, response = Refused),
    ),
)]
pub(crate) async fn remove(
    State(tasks): State<Tasks>,
    Id(name): Id<String>,
) -> Result<StatusCode, Problem> {
    if tasks.store().remove_schedule(name.clone()).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Error::NoSuchSchedule(name).into())
    }
}
