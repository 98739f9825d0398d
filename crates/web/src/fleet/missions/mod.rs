//! Missions: the bank, the queue, and what became of them.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use jiff::civil::Date;
use lavra_fleet::Fleet;
use lavra_fleet::bank::{Every, Wanted};
use lavra_fleet::code::ErrorCode;
use lavra_fleet::machine::mission::Wish;
use lavra_fleet::model::{Checkpoint, MediaType, Mission, MissionId, MissionStatus, WorkerId};
use lavra_fleet::service::{Granted, Made};
use lavra_fleet::store::{self, LogFilter};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::Site;
use crate::body::{JsonBody, LARGE};
use crate::openapi::Refused;
use crate::problem::Problem;
use crate::query::Params;

pub(crate) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::default()
        .routes(routes!(list, create))
        .routes(routes!(import))
        .routes(routes!(show))
        .routes(routes!(log))
        .routes(routes!(copy))
        .routes(routes!(queue))
        .routes(routes!(cancel))
        .routes(routes!(retry))
}

/// Which missions; all conditions together.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Conditions {
    /// queued, running, completed, failed or canceled.
    #[schema(value_type = Option<String>)]
    status: Option<MissionStatus>,
    /// Whether it is in the bank: never put into the queue.
    in_bank: Option<bool>,
    /// atribuido, extracao, armazenamento or finalizado.
    #[schema(value_type = Option<String>)]
    checkpoint: Option<Checkpoint>,
    /// As ERROR203.
    #[schema(value_type = Option<String>)]
    error_code: Option<ErrorCode>,
    /// all, video or image.
    #[schema(value_type = Option<String>)]
    media_type: Option<MediaType>,
    language: Option<String>,
    /// The id of a worker.
    worker: Option<String>,
    /// Its days are within these.
    #[schema(value_type = Option<String>)]
    from: Option<Date>,
    #[schema(value_type = Option<String>)]
    to: Option<Date>,
}

impl Conditions {
    fn filter(self, ids: Vec<MissionId>) -> store::Filter {
        store::Filter {
            ids,
            status: self.status,
            in_bank: self.in_bank,
            checkpoint: self.checkpoint,
            error_code: self.error_code,
            media_type: self.media_type,
            language: self.language,
            worker: self.worker.map(WorkerId),
            from: self.from,
            to: self.to,
        }
    }

    fn is_empty(&self) -> bool {
        self.clone().filter(Vec::new()) == store::Filter::default()
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Page {
    /// How many, up to 500.
    limit: Option<usize>,
    /// Where the last page ended.
    cursor: Option<String>,
    /// queued, running, completed, failed or canceled.
    #[param(value_type = Option<String>)]
    status: Option<MissionStatus>,
    /// Whether it is in the bank: never put into the queue.
    in_bank: Option<bool>,
    #[param(value_type = Option<String>)]
    checkpoint: Option<Checkpoint>,
    #[param(value_type = Option<String>)]
    error_code: Option<ErrorCode>,
    #[param(value_type = Option<String>)]
    media_type: Option<MediaType>,
    language: Option<String>,
    /// The id of a worker.
    worker: Option<String>,
    /// Its days are within these.
    #[param(value_type = Option<String>)]
    from: Option<Date>,
    #[param(value_type = Option<String>)]
    to: Option<Date>,
}

/// Missions, and where the next page begins.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Missions {
    #[schema(value_type = Vec<Object>)]
    items: Vec<Mission>,
    next_cursor: Option<String>,
}

/// List missions, newest first
#[utoipa::path(
    get,
    path = "/missions",
    tag = "missions",
    operation_id = "list_missions",
    params(Page),
    responses((status = 200, description = "A page", body = Missions)),
)]
pub(crate) async fn list(
    State(fleet): State<Fleet>,
    Params(page): Params<Page>,
) -> Result<Json<Missions>, Problem> {
    let limit = page.limit.unwrap_or(50).clamp(1, 500);
    let conditions = Conditions {
        status: page.status,
        in_bank: page.in_bank,
        checkpoint: page.checkpoint,
        error_code: page.error_code,
        media_type: page.media_type,
        language: page.language,
        worker: page.worker,
        from: page.from,
        to: page.to,
    };
    let filter = conditions.filter(Vec::new());
    let before = page.cursor.map(MissionId);
    let mut items = fleet.missions(&filter, before, limit + 1).await?;
    let more = items.len() > limit;
    items.truncate(limit);
    let next_cursor = items.last().filter(|_| more).map(|mission| mission.id.0.clone());
    Ok(Json(Missions { items, next_cursor }))
}

/// Missions that are wanted: days × media types × languages
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "from": "2025-01-01", "to": "2025-01-31", "every": "day",
    "media_types": ["video"], "languages": [["pt"], ["en", "es"]], "queue": true,
}))]
pub(crate) struct Order {
    #[schema(value_type = String)]
    from: Date,
    #[schema(value_type = String)]
    to: Date,
    /// How the days are cut: day, week, month, or range for one piece.
    #[schema(value_type = Option<String>)]
    every: Option<Every>,
    #[schema(value_type = Vec<String>)]
    media_types: Vec<MediaType>,
    /// A mission for each; several languages of one mission stand together.
    languages: Vec<Vec<String>>,
    /// Into the queue at once.
    #[serde(default)]
    queue: bool,
}

/// Make the missions that are not there yet
#[utoipa::path(
    post,
    path = "/missions",
    tag = "missions",
    operation_id = "create_missions",
    request_body = Order,
    responses(
        (status = 201, description = "Which were made", body = Object),
        (status = 422, response = Refused),
    ),
)]
pub(crate) async fn create(
    State(fleet): State<Fleet>,
    JsonBody(order): JsonBody<Order>,
) -> Result<(StatusCode, Json<Made>), Problem> {
    let wanted = Wanted {
        from: order.from,
        to: order.to,
        every: order.every.unwrap_or(Every::Day),
        media_types: order.media_types,
        languages: order.languages,
    };
    let made = fleet.add(&wanted, order.queue).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "csv": "date_start,date_end,media_type,languages\n2025-01-01,2025-01-31,video,pt en\n",
}))]
pub(crate) struct Import {
    /// With the columns date_start, date_end, media_type and languages.
    csv: String,
    #[serde(default)]
    queue: bool,
}

/// Make the missions of a CSV file that are not there yet
#[utoipa::path(
    post,
    path = "/missions/import",
    tag = "missions",
    operation_id = "import_missions",
    request_body = Import,
    responses(
        (status = 201, description = "Which were made", body = Object),
        (status = 422, response = Refused),
    ),
)]
pub(crate) async fn import(
    State(fleet): State<Fleet>,
    JsonBody(order): JsonBody<Import, LARGE>,
) -> Result<(StatusCode, Json<Made>), Problem> {
    Ok((StatusCode::CREATED, Json(fleet.import(&order.csv, order.queue).await?)))
}

/// Show a mission
#[utoipa::path(
    get,
    path = "/missions/{id}",
    tag = "missions",
    operation_id = "show_mission",
    params(("id" = String, Path)),
    responses((status = 200, description = "All of it", body = Object), (status = 404, response = Refused)),
)]
pub(crate) async fn show(
    State(fleet): State<Fleet>,
    Path(id): Path<String>,
) -> Result<Json<Mission>, Problem> {
    Ok(Json(fleet.mission(&MissionId(id)).await?))
}

/// The timeline of a mission, oldest first
#[utoipa::path(
    get,
    path = "/missions/{id}/log",
    tag = "missions",
    operation_id = "mission_log",
    params(("id" = String, Path)),
    responses((status = 200, description = "Its entries", body = Object), (status = 404, response = Refused)),
)]
pub(crate) async fn log(
    State(fleet): State<Fleet>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let mission = fleet.mission(&MissionId(id)).await?;
    let filter = LogFilter {
        mission: Some(mission.id),
        oldest_first: true,
        limit: 10_000,
        ..LogFilter::default()
    };
    Ok(Json(json!({ "items": fleet.log(&filter).await? })))
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({ "queue": true }))]
pub(crate) struct Copy {
    queue: bool,
}

/// Make a new mission like this one
#[utoipa::path(
    post,
    path = "/missions/{id}/copy",
    tag = "missions",
    operation_id = "copy_mission",
    params(("id" = String, Path)),
    request_body = Copy,
    responses((status = 201, description = "The new one", body = Object), (status = 404, response = Refused)),
)]
pub(crate) async fn copy(
    State(fleet): State<Fleet>,
    Path(id): Path<String>,
    JsonBody(order): JsonBody<Copy>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let id = fleet.copy(&MissionId(id), order.queue).await?;
    Ok((StatusCode::CREATED, Json(json!({ "id": id }))))
}

/// By id, or all that fit the conditions
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({ "filter": { "status": "failed", "error_code": "ERROR304" } }))]
pub(crate) struct Selection {
    ids: Vec<String>,
    filter: Conditions,
    /// All missions, where there is neither an id nor a condition.
    all: bool,
    /// Of a retry: scrape again, even where the data is there.
    from_scrape: bool,
}

impl Selection {
    async fn wish(self, fleet: &Fleet, wish: Wish) -> Result<Json<Granted>, Problem> {
        if self.ids.is_empty() && self.filter.is_empty() && !self.all {
            return Err(Problem::invalid("name missions by ids or filter, or say all"));
        }
        let ids = self.ids.into_iter().map(MissionId).collect();
        Ok(Json(fleet.wish(&self.filter.filter(ids), wish, "user").await?))
    }
}

/// Put missions of the bank into the queue
#[utoipa::path(
    post,
    path = "/missions/queue",
    tag = "missions",
    operation_id = "queue_missions",
    request_body = Selection,
    responses((status = 200, description = "Which were, and which were refused", body = Object)),
)]
pub(crate) async fn queue(
    State(fleet): State<Fleet>,
    JsonBody(selection): JsonBody<Selection, LARGE>,
) -> Result<Json<Granted>, Problem> {
    selection.wish(&fleet, Wish::Queue).await
}

/// Cancel missions; the jobs of those that run are told to stop
#[utoipa::path(
    post,
    path = "/missions/cancel",
    tag = "missions",
    operation_id = "cancel_missions",
    request_body = Selection,
    responses((status = 200, description = "Which were, and which were refused", body = Object)),
)]
pub(crate) async fn cancel(
    State(fleet): State<Fleet>,
    JsonBody(selection): JsonBody<Selection, LARGE>,
) -> Result<Json<Granted>, Problem> {
    selection.wish(&fleet, Wish::Cancel).await
}

/// Try failed missions again: from the write where their data is there
#[utoipa::path(
    post,
    path = "/missions/retry",
    tag = "missions",
    operation_id = "retry_missions",
    request_body = Selection,
    responses((status = 200, description = "Which were, and which were refused", body = Object)),
)]
pub(crate) async fn retry(
    State(fleet): State<Fleet>,
    JsonBody(selection): JsonBody<Selection, LARGE>,
) -> Result<Json<Granted>, Problem> {
    let from_scrape = selection.from_scrape;
    selection.wish(&fleet, Wish::Retry { from_scrape }).await
}
