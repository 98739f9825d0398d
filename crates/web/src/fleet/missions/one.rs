//! One mission, from all sides.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use lavra_fleet::Fleet;
use lavra_fleet::machine::mission::Wish;
use lavra_fleet::model::MissionId;
use lavra_fleet::store::LogFilter;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::body::JsonBody;
use crate::fleet::log::{self, COLUMNS, Entries};
use crate::fleet::made;
use crate::fleet::wire::{LogEntry, Mission};
use crate::headers::KeyHeader;
use crate::limit::Limit;
use crate::once::Given;
use crate::openapi::Refused;
use crate::path::Id;
use crate::problem::Problem;
use crate::query::{Page, Params};
use crate::sheet::{self, Format};

/// Show a mission
#[utoipa::path(
    get,
    path = "/missions/{id}",
    tag = "missions",
    operation_id = "show_mission",
    params(("id" = String, Path, example = "mis_0193a1b27c3d7e4f8a5b6c7d8e9f0a1b")),
    responses(
        (status = 200, description = "All of it", body = Mission),
        (status = 404, response = Refused),
    ),
)]
pub(crate) async fn show(
    State(fleet): State<Fleet>,
    Id(id): Id<String>,
) -> Result<Json<Mission>, Problem> {
    Ok(Json(fleet.mission(&MissionId(id)).await?.into()))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Part {
    /// How it is written; the header `Accept` says the same.
    format: Option<Format>,
    /// Of JSON: CSV has all of it.
    #[serde(default)]
    #[param(value_type = usize, required = false, minimum = 1, maximum = 1000, default = 1000)]
    limit: Limit<1000, 1000>,
    /// The `next_cursor` of the page before.
    #[param(
        pattern = r"^\d{1,17}-\w{1,200}$",
        example = "1794774720000000-log_0193a1b27c3d7e4f8a5b6c7d8e9f0a1b"
    )]
    cursor: Option<String>,
}

/// The timeline of a mission, oldest first
#[utoipa::path(
    get,
    path = "/missions/{id}/log",
    tag = "missions",
    operation_id = "mission_log",
    params(("id" = String, Path, example = "mis_0193a1b27c3d7e4f8a5b6c7d8e9f0a1b"), Part),
    responses(
        (status = 200, description = "Its entries", content(
            (Page<LogEntry> = "application/json"),
            (String = "text/csv", example = "timestamp,mission_id,event,details,session_id,id\r\n"),
        )),
        (status = 404, response = Refused),
    ),
)]
pub(crate) async fn log(
    State(fleet): State<Fleet>,
    Id(id): Id<String>,
    headers: HeaderMap,
    Params(part): Params<Part>,
) -> Result<Response, Problem> {
    let mission = fleet.mission(&MissionId(id)).await?.id;
    let limit = part.limit.0;
    let after = part.cursor.as_deref().map(log::place).transpose()?;
    let filter = LogFilter {
        mission: Some(mission),
        after,
        oldest_first: true,
        limit: limit + 1,
        ..LogFilter::default()
    };
    if Format::wanted(part.format, &headers) == Format::Csv {
        return sheet::answer("mission", &COLUMNS, Entries::new(fleet, filter)).await;
    }
    let found = fleet.log(&filter).await?;
    Ok(Json(Page::<LogEntry>::cut(found, limit, log::key)).into_response())
}

/// Does to one mission what is wished, and shows it.
async fn wish(fleet: &Fleet, id: String, wish: Wish) -> Result<Json<Mission>, Problem> {
    Ok(Json(fleet.wish_one(&MissionId(id), wish, "user").await?.into()))
}

/// Put a mission of the bank into the queue
#[utoipa::path(
    post,
    path = "/missions/{id}:queue",
    tag = "missions",
    operation_id = "queue_mission",
    params(("id" = String, Path, example = "mis_0193a1b27c3d7e4f8a5b6c7d8e9f0a1b")),
    responses(
        (status = 200, description = "It waits for a worker", body = Mission),
        (status = 404, response = Refused),
        (status = 409, response = Refused),
    ),
)]
pub(crate) async fn queue(
    State(fleet): State<Fleet>,
    Id(id): Id<String>,
) -> Result<Json<Mission>, Problem> {
    wish(&fleet, id, Wish::Queue).await
}

/// Cancel a mission; if it runs, its job is told to stop
#[utoipa::path(
    post,
    path = "/missions/{id}:cancel",
    tag = "missions",
    operation_id = "cancel_mission",
    params(("id" = String, Path, example = "mis_0193a1b27c3d7e4f8a5b6c7d8e9f0a1b")),
    responses(
        (status = 200, description = "It is canceled", body = Mission),
        (status = 404, response = Refused),
        (status = 409, response = Refused),
    ),
)]
pub(crate) async fn cancel(
    State(fleet): State<Fleet>,
    Id(id): Id<String>,
) -> Result<Json<Mission>, Problem> {
    wish(&fleet, id, Wish::Cancel).await
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Again {
    /// Scrape again, even where the data is there.
    #[serde(default)]
    #[param(value_type = bool, required = false, default = false)]
    from_scrape: bool,
}

/// Try a failed mission again: from the write where its data is there
#[utoipa::path(
    post,
    path = "/missions/{id}:retry",
    tag = "missions",
    operation_id = "retry_mission",
    params(("id" = String, Path, example = "mis_0193a1b27c3d7e4f8a5b6c7d8e9f0a1b"), Again),
    responses(
        (status = 200, description = "It waits again", body = Mission),
        (status = 404, response = Refused),
        (status = 409, response = Refused),
    ),
)]
pub(crate) async fn retry(
    State(fleet): State<Fleet>,
    Id(id): Id<String>,
    Params(again): Params<Again>,
) -> Result<Json<Mission>, Problem> {
    wish(&fleet, id, Wish::Retry { from_scrape: again.from_scrape }).await
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = MissionCopy, example = json!({ "queue": true }))]
pub(crate) struct Copy {
    /// Into the queue at once.
    #[serde(default)]
    queue: bool,
}

/// Make a new mission like this one
#[utoipa::path(
    post,
    path = "/missions/{id}:copy",
    tag = "missions",
    operation_id = "copy_mission",
    params(
        ("id" = String, Path, example = "mis_0193a1b27c3d7e4f8a5b6c7d8e9f0a1b"),
        KeyHeader,
    ),
    request_body = Copy,
    responses(
        (status = 201, description = "The new one", body = Mission, headers(
            ("Location" = String, description = "Its path"),
        )),
        (status = 200, description = "The one that an earlier request with this key made", body = Mission),
        (status = 404, response = Refused),
    ),
)]
pub(crate) async fn copy(
    State(fleet): State<Fleet>,
    Id(id): Id<String>,
    Given(given): Given,
    JsonBody(order): JsonBody<Copy>,
) -> Result<Response, Problem> {
    let new = given.map_or_else(|| MissionId::new(fleet.store.clock()), MissionId::of);
    let new = fleet.copy_as(new, &MissionId(id), order.queue).await?;
    let mission = fleet.mission(&new).await?;
    Ok(made(&format!("/missions/{new}"), Mission::from(mission)))
}
