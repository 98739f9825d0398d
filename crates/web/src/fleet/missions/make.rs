//! Missions in bulk: from a range of days, or from a file.

use axum::Json;
use axum::extract::{FromRequest, Request, State};
use axum::http::StatusCode;
use lavra_fleet::Fleet;
use lavra_fleet::bank::Wanted;
use lavra_fleet::service;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{IntoParams, PartialSchema, ToSchema};

use crate::body::{JsonBody, LARGE, TextBody, essence};
use crate::fleet::words::{Every, MediaType};
use crate::headers::KeyHeader;
use crate::openapi::Refused;
use crate::problem::Problem;
use crate::query::Params;
use crate::time::Day;

/// Missions that are wanted: days × media types × languages
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewMissions, example = json!({
    "from": "2025-01-01", "to": "2025-01-31", "every": "day",
    "media_types": ["video"], "languages": [["pt"], ["en", "es"]], "queue": true,
}))]
pub(crate) struct Order {
    #[schema(value_type = String, format = Date)]
    from: Day,
    #[schema(value_type = String, format = Date)]
    to: Day,
    /// `day` if absent; `range` makes one mission of all days.
    every: Option<Every>,
    #[schema(min_items = 1)]
    media_types: Vec<MediaType>,
    /// A mission for each; several languages of one mission stand together.
    #[schema(value_type = Vec<Languages>, min_items = 1)]
    languages: Vec<Vec<String>>,
    /// Into the queue at once.
    #[serde(default)]
    queue: bool,
}

/// The languages of one mission, as they are described.
#[derive(Debug)]
pub(crate) struct Languages;

impl PartialSchema for Languages {
    fn schema() -> RefOr<Schema> {
        let language = ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some("^[A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8})*$"))
            .examples([json!("pt-BR")]);
        ArrayBuilder::new().items(language).min_items(Some(1)).into()
    }
}

impl ToSchema for Languages {}

/// What came of missions that were asked for.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MissionsMade, example = json!({
    "added": ["mis_0193a1b27c3d7e4f8a5b6c7d8e9f0a1b"], "known": 30, "queued": 1,
}))]
pub(crate) struct Made {
    added: Vec<String>,
    /// Those that were there already: the same days, media type and languages.
    known: usize,
    queued: usize,
}

impl From<service::Made> for Made {
    fn from(made: service::Made) -> Self {
        let added = made.added.into_iter().map(|id| id.0).collect();
        Self { added, known: made.known, queued: made.queued }
    }
}

/// Make the missions that are not there yet: one, or all of a range of days
#[utoipa::path(
    post,
    path = "/missions",
    tag = "missions",
    operation_id = "create_missions",
    params(KeyHeader),
    request_body = Order,
    responses(
        (status = 201, description = "Which were made", body = Made),
        (status = 200, description = "What an earlier request with this key made", body = Made),
        (status = 422, response = Refused),
    ),
)]
pub(crate) async fn create(
    State(fleet): State<Fleet>,
    JsonBody(order): JsonBody<Order>,
) -> Result<(StatusCode, Json<Made>), Problem> {
    let wanted = Wanted {
        from: order.from.0,
        to: order.to.0,
        every: order.every.map_or(lavra_fleet::bank::Every::Day, Into::into),
        media_types: order.media_types.into_iter().map(Into::into).collect(),
        languages: order.languages,
    };
    let made = fleet.add(&wanted, order.queue).await?;
    Ok((StatusCode::CREATED, Json(made.into())))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = MissionFile, example = json!({
    "csv": "date_start,date_end,media_type,languages\n2025-01-01,2025-01-31,video,pt en\n",
}))]
pub(crate) struct File {
    /// With the columns date_start, date_end, media_type and languages.
    csv: String,
    /// Into the queue at once.
    #[serde(default)]
    queue: bool,
}

/// A file as the body itself, or within JSON.
#[derive(Debug)]
pub(crate) enum Import {
    Json(File),
    Csv(String),
}

impl<S: Send + Sync> FromRequest<S> for Import {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        if essence(request.headers()) == "text/csv" {
            let TextBody(text) = TextBody::<LARGE>::from_request(request, state).await?;
            return Ok(Self::Csv(text));
        }
        let JsonBody(file) = JsonBody::<File, LARGE>::from_request(request, state).await?;
        Ok(Self::Json(file))
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct How {
    /// Into the queue at once, where the body is the file itself.
    #[serde(default)]
    #[param(value_type = bool, required = false, default = false)]
    queue: bool,
}

/// Make the missions of a CSV file that are not there yet
///
/// Several languages of a mission have a space, `;` or `|` in between.
#[utoipa::path(
    post,
    path = "/missions:import",
    tag = "missions",
    operation_id = "import_missions",
    params(
        How,
        KeyHeader,
    ),
    request_body(content(
        (File = "application/json"),
        (String = "text/csv", example = "date_start,date_end,media_type,languages\n2025-01-01,2025-01-31,video,pt en\n"),
    )),
    responses(
        (status = 201, description = "Which were made", body = Made),
        (status = 200, description = "What an earlier request with this key made", body = Made),
        (status = 422, response = Refused),
    ),
)]
pub(crate) async fn import(
    State(fleet): State<Fleet>,
    Params(how): Params<How>,
    import: Import,
) -> Result<(StatusCode, Json<Made>), Problem> {
    let (csv, queue) = match import {
        Import::Json(file) => (file.csv, file.queue || how.queue),
        Import::Csv(text) => (text, how.queue),
    };
    Ok((StatusCode::CREATED, Json(fleet.import(&csv, queue).await?.into())))
}
